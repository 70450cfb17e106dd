"""What is said of a model on each board: what it needs, how long it takes, what is missing and what to do about it."""

from __future__ import annotations

from pathlib import Path

from emberlet.micro.builder.boards import ALIASES, BOARDS, KB
from emberlet.micro.builder.cost import Cost, report, size_text, time_text
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_reports.txt")
WEIGHTS = ("file", "romfs", "frozen", "partition-copied")


def needs(kb: float, weights: str, is_float: bool = False) -> Cost:
    """A model whose weights take so many KB, and its arena and code a share of it."""
    size = int(kb * KB)
    in_ram = size if weights in ("file", "module", "partition-copied") else 0
    code = 0 if weights == "frozen" else size // 5 + 700
    return Cost(size + code, size // 3, code, size, in_ram, 1184, "conv_4", 977 * size, "conv2", is_float, 1.7e3 * size)


def test_the_table_of_boards() -> None:
    lines = [f"{key}: {board}" for key, board in BOARDS.items()]
    assert_recorded(RECORDED, "boards", "\n".join([*lines, str(ALIASES)]))
    assert all(key == board.name for key, board in BOARDS.items()) and set(ALIASES.values()) <= set(BOARDS)


def test_what_reports_say() -> None:
    for weights in WEIGHTS:
        lines: list[str] = []
        for kb, is_float in ((30, False), (90, False), (300, True), (3000, True)):
            lines += report("net", needs(kb, weights, is_float), list(BOARDS.values()), weights)
        assert_recorded(RECORDED, f"weights in a {weights}", "\n".join(lines))


def test_sizes_and_times_have_units() -> None:
    assert [size_text(n) for n in (0, 1000, 10 * KB - 1, 10 * KB, 1500 * KB)] == [
        "0 B", "1,000 B", "10,239 B", "10.0 KB", "1,500.0 KB",
    ]  # fmt: skip
    assert [time_text(n) for n in (0.01234, 12.34, 998.9, 999, 12345)] == [
        "0.0123 ms", "12.3 ms", "999 ms", "0.999 s", "12.3 s",
    ]  # fmt: skip
