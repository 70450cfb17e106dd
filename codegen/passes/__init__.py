"""Passes: functions from graph to graph that change results by no more than rounding. Each can be selected by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from emberlet.errors import ModelError

from ..ir.argument import Argument
from ..ir.graph import Graph
from ..ir.types import TensorType, refine
from ..records import replace
from . import dead, sizes

if TYPE_CHECKING:
    from .rewriting import Rewrite


class Pass:
    """One pass, a file of this folder, which has a `run` for the graph, or only a `step` for each node (rewriting.py).
    Called with a graph, it returns the new graph and {what it did, as a text with {} for the number: count}.

    starts: classes of operators, and of outputs' types. Without any of these in the graph the pass does nothing, and
    neither its file nor those of its operators are imported. None: it always runs.
    """

    def __init__(self, file: str, starts: str | None = None) -> None:
        self.file = file
        self.starts = None if starts is None else frozenset(starts.split())

    def __call__(self, graph: Graph) -> Rewrite:
        file = import_module(f"{__name__}.{self.file}")
        if hasattr(file, "run"):
            run: Callable[[Graph], Rewrite] = file.run
            return run(graph)
        from .rewriting import rewrite

        return rewrite(graph, file.step)


PASSES: dict[str, Pass] = {
    "sizes": Pass("sizes"),
    "constant-if": Pass("constant_if", "If"),
    "fold": Pass("fold"),
    "tied": Pass("tied", "Gather"),
    "unfused": Pass("unfused", "Activation FusedConv FusedGemm FusedMatMul QuickGelu"),
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
    "pooling": Pass("pooling", "Div"),
    "gathered": Pass("gathered", "GatherElements GatherND"),
    "common": Pass("common"),
    "quantized-recurrent": Pass("quantized_recurrent", "DynamicQuantizeLSTM"),
    "recurrent": Pass("recurrent", "Recurrent RecurrentLayer Reshape Squeeze Transpose"),
    "batch-norm": Pass("batch_norm", "BatchNormalization"),
    "linear": Pass("linear", "Add Reshape"),
    "tables": Pass("tables", "Gather"),
    "quantized": Pass("quantized", "DequantizeLinear GatherBlockQuantized MatMulNBits QuantizedLinear"),
    "quantized-operators": Pass("quantized_operators", "QGemm QLinearConv QLinearMatMul"),
    "quantized-dynamic": Pass("quantized_dynamic", "DynamicQuantizeLinear"),
    "quantized-activations": Pass("quantized_activations", "QuantizeLinear QuantizedConv QuantizedLinear"),
    "packed": Pass("heads.packed", "Gather Slice Split Transpose"),
    "rotary": Pass("rotary", "Mul RotaryEmbedding"),
    "attention": Pass("attention", "Attention Softmax"),
    "masks": Pass("masks", "Attention"),
    "lengths": Pass("masks.lengths", "Attention"),
    "heads": Pass("heads", "Attention"),
    "slices": Pass("slices", "Slice"),
    "dead": Pass("dead"),
}
ROUNDS = 8  # one pass may create the pattern that another looks for
LATE = ("heads", "slices")  # passes that wait until the others find nothing more


def run_passes(graph: Graph, names: Iterable[str] | None = None) -> tuple[Graph, tuple[str, ...]]:
    """(the graph after the passes called `names`, None for all; what they did, one line each). They run in a fixed
    order, repeatedly until none finds anything.

    Raises ModelError for an unknown name.
    """
    wanted = set(PASSES) if names is None else set(names)
    unknown = sorted(wanted - set(PASSES))
    if unknown:
        raise ModelError(f"there is no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    read = graph.outputs
    done: dict[str, Counter[str]] = {name: Counter() for name in PASSES}
    found = classes_of(graph)
    settled: dict[str, Graph] = {}  # pass -> the graph in which it found nothing more
    for turn in range(ROUNDS):
        before = graph
        for name, run in PASSES.items():
            if name not in wanted or (turn and name == "sizes") or (run.starts and not run.starts & found):
                continue
            if settled.get(name) is graph or (name in LATE and graph is not before):
                continue
            after, what = run(graph)
            if after is graph:
                settled[name] = graph
                continue
            done[name] += what
            if "dead" in wanted:
                after, gone = dead.run(after)  # dead readers must not hide single uses
                done["dead"] += gone
            graph, found = after, classes_of(after)
        if graph is before:
            break
    graph = sizes.forgotten(graph) if wanted else graph
    return replace(graph, outputs=_with_types(graph.outputs, read)), tuple(
        f"{name}: {said.format(count) if count != 1 else singular(said)}"
        for name, counts in done.items()
        for said, count in counts.items()
    )


def classes_of(graph: Graph) -> set[str]:
    """The names of the classes of a graph's nodes and of their outputs' types, and of their base classes."""
    kinds: set[type] = set()
    for node in graph.walk():
        kinds.add(type(node))
        kinds.update(type(o.type) for o in node.outputs)
    return {c.__name__ for kind in kinds for c in kind.__mro__}


def _with_types(outputs: Iterable[Argument], read: Iterable[Argument]) -> tuple[Argument, ...]:
    """The outputs with the types that the file declares, which are lost if a node that returns its input is removed."""
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
