"""The code of drawn modules and of small models is as recorded, letter by letter.

The results are compared in test_drawn_modules.py and test_repetition.py; this test shows decisions that change the
code and no result: names, order, what is a class, a list or a loop. Each line holds the size of a source and its
digest. After a deliberate change, `UPDATE_SNAPSHOTS=1 pytest FILE` records them again; print a source of before and
after to see what changed.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from emberlet.codegen.hierarchy import writer
from models.index import cases
from support import near_misses
from support.drawn_modules import Drawn
from support.drawn_networks import DrawnNetwork
from support.nameless import stripped
from support.recorded import assert_recorded
from support.sources import listed

RECORDED = Path(__file__).parent / "snapshots" / "sources.txt"
MODELS = sorted({case.model for case in cases(contrib=False)})
GROUP = 8


@pytest.mark.parametrize("first", range(0, 80, GROUP))
def test_the_code_of_drawn_modules_is_as_recorded(first: int) -> None:
    models = ((seed, Drawn(seed).model()) for seed in range(first, first + GROUP))
    assert_recorded(RECORDED, f"drawn modules from {first} on", listed(models))


@pytest.mark.parametrize("first", range(0, 48, GROUP))
def test_the_code_with_a_class_for_each_module_is_as_recorded(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_shorter", lambda first, other: other)
    monkeypatch.setattr(writer, "repeats", lambda root: True)
    models = ((seed, Drawn(seed).model()) for seed in range(first, first + GROUP))
    assert_recorded(RECORDED, f"a class for each drawn module from {first} on", listed(models))


@pytest.mark.parametrize("first", range(0, 48, GROUP))
def test_the_code_of_blocks_without_names_is_as_recorded(first: int) -> None:
    models = ((seed, stripped(Drawn(seed).model(), seed)) for seed in range(first, first + GROUP))
    assert_recorded(RECORDED, f"drawn modules without names from {first} on", listed(models))


@pytest.mark.parametrize("first", range(0, 80, GROUP))
def test_the_code_of_drawn_networks_is_as_recorded(first: int) -> None:
    """Their blocks differ in numbers and in optional parts."""
    models = ((seed, DrawnNetwork(seed).model()) for seed in range(first, first + GROUP))
    assert_recorded(RECORDED, f"drawn networks from {first} on", listed(models))


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.parent.name)
def test_the_code_of_a_model_of_the_tests_is_as_recorded(path: Path) -> None:
    model = onnx.load(path)
    models = [("named", model), ("without names", stripped(model))]
    assert_recorded(RECORDED, f"model {path.parent.name}", listed(models))


@pytest.mark.parametrize("first", range(0, 16, GROUP))
def test_the_code_of_drawn_modules_with_a_change_is_as_recorded(first: int) -> None:
    """A node, a number or an operand of one block differs from those of the others."""
    for nameless in (False, True):
        models: list[tuple[str, onnx.ModelProto]] = []
        for seed in range(first, first + GROUP):
            model = stripped(Drawn(seed).model(), seed) if nameless else Drawn(seed).model()
            models += [(f"{seed}, {label}", changed) for label, changed in near_misses.drawn(model, 4, seed)]
        title = f"changed modules {'without names ' if nameless else ''}from {first} on"
        assert_recorded(RECORDED, title, listed(models))
