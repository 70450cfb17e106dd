"""A small file of each format with one byte changed, and every beginning of it: what is read, or why it is refused, is
as recorded.

The record lists the outcomes with numbers and texts left out, how often each occurs, and a digest of all of them.
`python -m tests.store.test_changed_bytes NAME` prints them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.recorded import assert_recorded
from support.small_files import FILES, outcome

RECORDED = Path(__file__).parent / "recorded_changed_bytes.txt"
SMALL = 600  # bytes: of a larger file fewer changes are tried


def outcomes(name: str) -> Iterator[tuple[str, str]]:
    """(what was changed, what came of it)."""
    kind, data, rebuilt = FILES[name]()
    yield "as it is", outcome(rebuilt(data), kind)
    for at, byte in enumerate(data):
        for change in (1, -1, 128) if len(data) < SMALL else (1,):
            made = bytes([*data[:at], (byte + change) % 256, *data[at + 1 :]])
            yield f"byte {at}: {byte} {change:+}", outcome(rebuilt(made), kind)
        if len(data) < SMALL or at % 5 == 0:
            yield f"{at} bytes", outcome(rebuilt(data[:at]), kind)


def general(said: str) -> str:
    """A refusal without its numbers and texts; of what is read only that it is."""
    if not re.match(r"\w+Error: ", said):
        return "read" if "Error: " not in said else "read, but for a tensor"
    return re.sub(r"0x[0-9a-f]+|(?<!\w)-?\d+", "#", re.sub(r"'[^']*'", "'…'", said))[:160]


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_byte_changed_is_read_or_refused_as_recorded(name: str) -> None:
    found = list(outcomes(name))
    counts = Counter(general(said) for _, said in found)
    digest = hashlib.sha256("\n".join(f"{change}: {said}" for change, said in found).encode()).hexdigest()[:12]
    lines = [f"{count} {said}" for said, count in sorted(counts.items())]
    assert_recorded(RECORDED, name, "\n".join([*found[0][1].splitlines(), *lines, f"all: {digest}"]))


if __name__ == "__main__":
    import sys

    for what, came in outcomes(sys.argv[1]):
        print(f"{what}: {came}")
