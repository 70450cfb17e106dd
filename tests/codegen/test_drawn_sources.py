"""The code of drawn modules and of small models is as recorded, letter by letter.

The results are compared in test_drawn_modules.py and test_repetition.py; this test shows decisions that change the
code and no result: names, order, what is a class, a list or a loop. Each line holds the size of a source and its
digest. After a deliberate change, `UPDATE_SNAPSHOTS=1 pytest FILE` records them again; print a source of before and
after to see what changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.hierarchy import writer
from models.index import cases
from support.drawn_modules import Drawn
from support.nameless import stripped
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "sources.txt"
MODELS = sorted({case.model for case in cases(contrib=False)})
GROUP = 8
CLASS = "\nclass "


def described(model: onnx.ModelProto) -> str:
    source = translate(model, "net", weights_name="w.bpk")[1].source
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{len(source.splitlines())} lines, classes: {source.count(CLASS)}, {digest}"


@pytest.mark.parametrize("first", range(0, 120, GROUP))
def test_the_code_of_drawn_modules_is_as_recorded(first: int) -> None:
    lines = [f"{seed}: {described(Drawn(seed).model())}" for seed in range(first, first + GROUP)]
    assert_recorded(RECORDED, f"drawn modules from {first} on", "\n".join(lines))


@pytest.mark.parametrize("first", range(0, 64, GROUP))
def test_the_code_with_a_class_for_each_module_is_as_recorded(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_shorter", lambda first, other: other)
    monkeypatch.setattr(writer, "repeats", lambda root: True)
    lines = [f"{seed}: {described(Drawn(seed).model())}" for seed in range(first, first + GROUP)]
    assert_recorded(RECORDED, f"a class for each drawn module from {first} on", "\n".join(lines))


@pytest.mark.parametrize("first", range(0, 64, GROUP))
def test_the_code_of_blocks_without_names_is_as_recorded(first: int) -> None:
    lines = [f"{seed}: {described(stripped(Drawn(seed).model(), seed))}" for seed in range(first, first + GROUP)]
    assert_recorded(RECORDED, f"drawn modules without names from {first} on", "\n".join(lines))


@pytest.mark.parametrize("path", MODELS, ids=lambda p: p.parent.name)
def test_the_code_of_a_model_of_the_tests_is_as_recorded(path: Path) -> None:
    model = onnx.load(path)
    lines = [f"named: {described(model)}", f"without names: {described(stripped(model))}"]
    assert_recorded(RECORDED, f"model {path.parent.name}", "\n".join(lines))
