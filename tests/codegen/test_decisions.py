"""The result of the passes for each pattern, and for every graph that differs from it in one place, is as recorded.

tests/codegen/test_near_misses.py compares the results. This test shows which graphs a pass still rewrites.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from emberlet.errors import EmberletError
from support import near_misses
from support.more_pass_patterns import MORE_PATTERNS
from support.pass_patterns import PATTERNS as FIRST_PATTERNS
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "decisions.txt"

PATTERNS = {**FIRST_PATTERNS, **MORE_PATTERNS}


def left(model: onnx.ModelProto) -> str:
    """The operators after all passes."""
    try:
        return " ".join(n.op() for n in run_passes(read_model(model).graph)[0].nodes)
    except EmberletError:
        return "refused"


@pytest.mark.parametrize("name", PATTERNS)
def test_the_passes_decide_as_recorded(name: str) -> None:
    model = PATTERNS[name].model()
    made = {"as it is": left(model)}
    for kind in near_misses.KINDS.values():
        made.update((label, left(changed)) for label, changed in kind(model))
    whole = made["as it is"]
    same = [label for label, ops in made.items() if ops == whole]
    lines = [f"{whole}: {'; '.join(same)}"]
    lines += [f"  {label}: {ops}" for label, ops in made.items() if ops != whole]
    assert_recorded(RECORDED, name, "\n".join(lines))
