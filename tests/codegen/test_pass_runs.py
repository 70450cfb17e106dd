"""Which passes run, in which order, and how often."""

from __future__ import annotations

import pytest
from emberlet.codegen import passes
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.passes import LATE, PASSES, Pass, classes_of, run_passes, singular
from emberlet.codegen.passes.rewriting import Rewrite
from emberlet.codegen.reader import read_model
from support.onnx_models import parse

NEGATIONS = "g (float[4] x) => (float[4] y) { a = Neg(x)  b = Neg(a)  y = Exp(b) }"
UNUSED = "g (float[4] x) => (float[4] y) { a = Relu(x)  y = Exp(x) }"
PLAIN = "g (float[4] x) => (float[4] y) { y = Exp(x) }"
EVERY = [name for name, run in PASSES.items() if run.starts is None]


def graph_of(text: str) -> Graph:
    return read_model(parse(text)).graph


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the passes in the order in which they run."""
    called: list[str] = []

    class Noted(Pass):
        def __init__(self, name: str, inner: Pass) -> None:
            self.name, self.inner, self.starts = name, inner, inner.starts

        def __call__(self, graph: Graph) -> Rewrite:
            called.append(self.name)
            return self.inner(graph)

    for name, run in list(PASSES.items()):
        monkeypatch.setitem(PASSES, name, Noted(name, run))
    return called


def test_a_graph_without_what_passes_start_at_is_left_to_the_others_once(runs: list[str]) -> None:
    run_passes(graph_of(PLAIN))
    assert runs == EVERY


def test_passes_run_again_only_on_a_changed_graph(runs: list[str]) -> None:
    """After the negations are gone nothing is left for `idempotent`; `dead` runs after each change and in its turn."""
    graph, said = run_passes(graph_of(NEGATIONS))
    assert [n.op() for n in graph.nodes] == ["Exp"]
    first = [n for n in PASSES if PASSES[n].starts is None or n == "idempotent"]
    before = first[: first.index("idempotent")]
    assert runs == [*first, *(n for n in before if n != "sizes")]
    assert len(said) == 2


def test_only_the_passes_asked_for_run(runs: list[str]) -> None:
    run_passes(graph_of(NEGATIONS), ["fold", "common"])
    assert runs == ["fold", "common"]


def test_a_late_pass_waits_for_a_round_without_changes(runs: list[str]) -> None:
    text = """g (float[8] x) => (float[2] y) <int64[1] i = {1}, int64[1] j = {3}> {
        a = Neg(x)  b = Neg(a)  y = Slice(b, i, j) }"""
    run_passes(graph_of(text))
    assert "slices" in LATE
    assert runs.index("slices") > [i for i, name in enumerate(runs) if name == "fold"][1]
    assert runs.count("slices") == 1


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


def test_the_classes_of_a_graph_are_those_of_nodes_types_and_their_bases() -> None:
    found = classes_of(graph_of(PLAIN))
    assert {"Exp", "Node", "TensorType"} <= found
    assert "InputSize" not in found


@pytest.mark.parametrize(
    ("said", "one"),
    [
        ("removed {} nodes that return their input", "removed 1 node that return their input"),
        ("removed {} unused nodes", "removed 1 unused node"),
        ("{} masses", "1 masse"),
        ("was {} less this axis is its nodes", "was 1 less this axi is its nodes"),
        ("joined {} was is its this less", "joined 1 was is its this less"),
    ],
)
def test_one_of_something_is_said_in_the_singular(said: str, one: str) -> None:
    assert singular(said) == one
