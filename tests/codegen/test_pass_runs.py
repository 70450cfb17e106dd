"""Which passes run, in which order, and how often."""

from __future__ import annotations

import pytest
from emberlet.codegen import passes
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.passes import PASSES, Pass, run_passes
from emberlet.codegen.passes.rewriting import Rewrite
from emberlet.codegen.reader import read_model
from support.onnx_models import parse

NEGATIONS = "g (float[4] x) => (float[4] y) { a = Neg(x)  b = Neg(a)  y = Exp(b) }"
UNUSED = "g (float[4] x) => (float[4] y) { a = Relu(x)  y = Exp(x) }"
PLAIN = "g (float[4] x) => (float[4] y) { y = Exp(x) }"


def graph_of(text: str) -> Graph:
    return read_model(parse(text)).graph


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["idempotent"], ["Neg", "Exp"]),
        (["idempotent", "dead"], ["Exp"]),
        (["dead"], ["Neg", "Neg", "Exp"]),
        ([], ["Neg", "Neg", "Exp"]),
    ],
)
def test_unused_nodes_go_where_that_is_asked_for(names: list[str], left: list[str]) -> None:
    graph = run_passes(graph_of(NEGATIONS), names)[0]
    assert [n.op() for n in graph.nodes] == left
    unused = run_passes(graph_of(UNUSED), names)[0]
    assert [n.op() for n in unused.nodes] == (["Exp"] if "dead" in names else ["Relu", "Exp"])


def test_the_rounds_end_with_passes_that_undo_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round changes the graph here."""
    turns: list[int] = []

    class Endless(Pass):
        def __call__(self, graph: Graph) -> Rewrite:
            turns.append(1)
            return passes.replace(graph, nodes=graph.nodes), {"turned {} nodes": 1}  # type: ignore[return-value]

    monkeypatch.setitem(PASSES, "common", Endless("common"))
    assert run_passes(graph_of(PLAIN), ["common"])[1] == ("common: turned 8 nodes",)
    assert len(turns) == 8


def test_outputs_keep_the_types_of_the_file() -> None:
    """An output that was a node's own result is now the input, of which less is known."""
    model = parse("g (float[N, 4] x) => (float[2, 4] y) { a = Identity(x)  y = Identity(a) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    graph = run_passes(read_model(model).graph)[0]
    assert graph.outputs[0].type.shape == (2, 4)  # type: ignore[union-attr]
    constant = parse("g (float[4] x) => (float[1] y) <float[1] c = {2.0}> { y = Identity(c) }")
    assert run_passes(read_model(constant).graph)[0].outputs[0].value is not None
