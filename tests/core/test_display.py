"""`print(x)` shows, line by line, what Burn 0.22 printed for the same tensors (fixtures/burn_display.txt)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest

FIXTURE = Path(__file__).parent / "fixtures" / "burn_display.txt"
# Each tensor, in words that MicroPython runs as well.
TENSORS = {
    "rank 1": "ramp(3)",
    "rank 2": "ramp(2, 3)",
    "rank 3": "ramp(2, 3, 2)",
    "precision 2": "ramp(2, 2, 2)",
    "int": "emberlet.asarray([[[1, -2], [3, 400]], [[5, 6], [7, 8]]])",
    "bool": "emberlet.asarray([[True, False], [False, True]])",
    "1001 elements": "ramp(1001)",
    "40x40": "ramp(40, 40)",
}
RAMP = """
def ramp(*shape):
    n = 1
    for d in shape:
        n *= d
    return emberlet.asarray([i * 0.5 - 1.25 for i in range(n)]).reshape(shape)
"""


def printed() -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name = line[2:]
            out[name] = []
        elif not line.startswith(("  device:", "  dtype:")):
            out[name].append(line)
    return out


def own(text: str) -> list[str]:
    """The lines but those of the device and the dtype, which have other names here."""
    return [line for line in text.splitlines() if not line.startswith(("  device:", "  dtype:"))]


def test_every_tensor_of_the_fixture_is_held() -> None:
    assert set(TENSORS) == set(printed())


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_print_as_burns_do(backend: Any, name: str) -> None:
    scope: dict[str, Any] = {"emberlet": emberlet}
    exec(RAMP, scope)
    x = eval(TENSORS[name], scope)
    assert own(f"{x:.2f}" if name == "precision 2" else str(x)) == printed()[name]


def test_micropython_prints_the_same(unix_port: Any) -> None:
    lines = "".join(f"print('# {name}')\nprint({text})\n" for name, text in TENSORS.items() if name != "precision 2")
    shown = unix_port.run("import emberlet\n" + RAMP + lines, heap="2M").check().stdout
    expected = [line for name, found in printed().items() if name != "precision 2" for line in (f"# {name}", *found)]
    assert own(shown) == expected


def test_no_line_holds_a_lone_comma(backend: Any) -> None:
    for shape in itertools.product((1, 2, 9), repeat=4):
        x = emberlet.asarray(np.arange(np.prod(shape)).reshape(shape))
        with emberlet.print_options(threshold=20, edge_items=2):
            lines = emberlet.functional.describe_tensor(x).splitlines()
        assert all(line.strip(" ,") for line in lines)
        assert all(not line.strip().startswith(",") for line in lines)


def test_repr_keeps_pythons_words(backend: Any) -> None:
    x = emberlet.asarray([[[True], [False]]])
    assert repr(x).startswith("Tensor([[[True],\n         [False]]], dtype=bool")
