"""Passes: functions from graph to graph that change no result beyond rounding; each has a name to switch it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from emberlet.errors import ModelError

from ..ir.argument import Argument
from ..ir.graph import Graph
from ..ir.types import TensorType, refine
from . import dead, sizes

if TYPE_CHECKING:
    from .rewriting import Rewrite


class Pass:
    """One pass, a file of this folder. Called with a graph it returns the new one, and how often each thing was done;
    the text of one has a {} for the number.

    starts: classes of operators, and of outputs' types. Without one of them in the graph the pass does nothing, and its
    file, with those of the operators that it knows, is not imported. None: it always runs.
    """

    def __init__(self, file: str, starts: str | None = None) -> None:
        self.file = file
        self.starts = None if starts is None else frozenset(starts.split())

    def __call__(self, graph: Graph) -> Rewrite:
        run: Callable[[Graph], Rewrite] = import_module(f"{__name__}.{self.file}").run
        return run(graph)


PASSES: dict[str, Pass] = {
    "sizes": Pass("sizes"),
    "constant-if": Pass("constant_if", "If"),
    "fold": Pass("fold"),
    "norms": Pass("norms", "Add Mul"),
    "activations": Pass("activations", "Div Mul"),
    "identity": Pass(
        "identity",
        "Add Cast CastLike Concat Div Dropout Expand Flatten Identity Max Mean Min Mul Pad Pow Reshape Slice Split "
        "Squeeze Sub Sum Tile Transpose Unsqueeze",
    ),
    "idempotent": Pass("idempotent", "Abs Cast Ceil Clip Floor Neg Not Relu Round Sign"),
    "shapes": Pass("shapes", "ScalarType ShapeType Where"),
    "moves": Pass("moves", "Flatten Reshape Squeeze Transpose Unsqueeze"),
    "common": Pass("common"),
    "recurrent": Pass("recurrent", "Recurrent RecurrentLayer Reshape Squeeze Transpose"),
    "batch-norm": Pass("batch_norm", "BatchNormalization"),
    "linear": Pass("linear", "Add Reshape"),
    "rotary": Pass("rotary", "Mul RotaryEmbedding"),
    "attention": Pass("attention", "Attention Softmax"),
    "masks": Pass("masks", "Attention"),
    "dead": Pass("dead"),
}
ROUNDS = 8  # what one pass leaves may be what another looks for


def run_passes(graph: Graph, names: Iterable[str] | None = None) -> tuple[Graph, tuple[str, ...]]:
    """The graph after the passes called `names` (all where None), in their fixed order and again until none finds
    anything, and what they did, a line each.

    Raises ModelError for a name that no pass has.
    """
    wanted = set(PASSES) if names is None else set(names)
    unknown = sorted(wanted - set(PASSES))
    if unknown:
        raise ModelError(f"there is no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    read = graph.outputs
    done: dict[str, Counter[str]] = {name: Counter() for name in PASSES}
    found = classes_of(graph)
    for turn in range(ROUNDS):
        before = graph
        for name, run in PASSES.items():
            if name not in wanted or (turn and name == "sizes") or (run.starts and not run.starts & found):
                continue
            after, what = run(graph)
            if "dead" in wanted and name != "dead" and after is not graph:
                after, gone = dead.run(after)  # what nobody reads must not hide from the next pass that a value is free
                done["dead"] += gone
            done[name] += what
            if after is not graph:
                graph = after
                found = classes_of(graph)
        if graph is before:
            break
    graph = sizes.forgotten(graph) if wanted else graph
    return replace(graph, outputs=_with_types(graph.outputs, read)), tuple(
        f"{name}: {said.format(count) if count != 1 else singular(said)}"
        for name, counts in done.items()
        for said, count in counts.items()
    )


def classes_of(graph: Graph) -> set[str]:
    """The names of the classes of a graph's nodes and of their outputs' types, with those that they derive from."""
    kinds: set[type] = set()
    for node in graph.walk():
        kinds.add(type(node))
        kinds.update(type(o.type) for o in node.outputs)
    return {c.__name__ for kind in kinds for c in kind.__mro__}


def _with_types(outputs: Iterable[Argument], read: Iterable[Argument]) -> tuple[Argument, ...]:
    """Outputs with what the file says of their types, which may go with a node that returns its input."""
    return tuple(
        replace(a, type=refine(a.type, b.type)) if a.value is None and isinstance(a.type, TensorType) else a
        for a, b in zip(outputs, read, strict=True)
    )


def singular(said: str) -> str:
    """ "removed {} nodes that …" as "removed 1 node that …"."""
    head, _, tail = said.partition("{} ")
    words = tail.split(" ")
    for i, word in enumerate(words):
        if word.endswith("s") and word not in ("was", "is", "its", "this", "less"):
            words[i] = word[:-1]
            break
    return f"{head}1 {' '.join(words)}"
