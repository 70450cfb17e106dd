"""The result of the passes for each pattern, and for every graph that differs from it in one place, is as recorded.

tests/codegen/test_near_misses.py compares the results. This test shows which graphs a pass still rewrites, and groups
those that become the same graph. `support.graph_text.graph_text` prints one whose digest differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from emberlet.errors import EmberletError
from support import near_misses
from support.graph_text import graph_text
from support.more_pass_patterns import MORE_PATTERNS
from support.pass_patterns import PATTERNS as FIRST_PATTERNS
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "decisions.txt"
PAIRS = Path(__file__).parent / "snapshots" / "decisions_of_pairs.txt"

PATTERNS = {**FIRST_PATTERNS, **MORE_PATTERNS}


def left(model: onnx.ModelProto) -> str:
    """The operators after all passes, and a digest of the whole graph: what each reads, its config and its types."""
    try:
        graph = run_passes(read_model(model).graph)[0]
    except EmberletError:
        return "refused"
    digest = hashlib.sha256(graph_text(graph).encode()).hexdigest()[:6]
    return f"{' '.join(n.op() for n in graph.nodes)} ({digest})"


@pytest.mark.parametrize("name", PATTERNS)
def test_the_passes_decide_as_recorded(name: str) -> None:
    model = PATTERNS[name].model()
    changes = [change for kind in near_misses.KINDS.values() for change in kind(model)]
    assert_recorded(RECORDED, name, grouped([("as it is", model), *changes]))


@pytest.mark.parametrize("name", PATTERNS)
def test_the_passes_decide_as_recorded_about_two_changes(name: str) -> None:
    changes = near_misses.drawn_pairs(PATTERNS[name].model(), 12, sum(map(ord, name)))
    assert_recorded(PAIRS, name, grouped(changes))


def grouped(models: Iterable[tuple[str, onnx.ModelProto]]) -> str:
    """A line for each graph that the passes make, with what it was made from."""
    alike: dict[str, list[str]] = {}
    for label, model in dict(models).items():
        alike.setdefault(left(model), []).append(label)
    return "\n".join(f"{graph}: {'; '.join(labels)}" for graph, labels in alike.items())
