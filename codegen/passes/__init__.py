"""Passes: functions from graph to graph that change no result beyond rounding; each has a name to switch it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from emberlet.errors import ModelError

from ..ir.argument import Argument
from ..ir.graph import Graph
from ..ir.types import TensorType, refine
from . import (
    activations,
    attention,
    batch_norm,
    common,
    constant_if,
    dead,
    fold,
    idempotent,
    identity,
    linear,
    masks,
    moves,
    norms,
    recurrent,
    rotary,
    shapes,
    sizes,
)
from .rewriting import Rewrite

Pass = Callable[[Graph], Rewrite]
"""Returns the new graph, and how often each thing was done; the text of one has a {} for the number."""

PASSES: dict[str, Pass] = {
    "sizes": sizes.run,
    "constant-if": constant_if.run,
    "fold": fold.run,
    "norms": norms.run,
    "activations": activations.run,
    "identity": identity.run,
    "idempotent": idempotent.run,
    "shapes": shapes.run,
    "moves": moves.run,
    "common": common.run,
    "recurrent": recurrent.run,
    "batch-norm": batch_norm.run,
    "linear": linear.run,
    "rotary": rotary.run,
    "attention": attention.run,
    "masks": masks.run,
    "dead": dead.run,
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
    for turn in range(ROUNDS):
        before = graph
        for name, run in PASSES.items():
            if name not in wanted or (turn and name == "sizes"):
                continue
            after, what = run(graph)
            if "dead" in wanted and name != "dead" and after is not graph:
                after, gone = dead.run(after)  # what nobody reads must not hide from the next pass that a value is free
                done["dead"] += gone
            done[name] += what
            graph = after
        if graph is before:
            break
    graph = sizes.forgotten(graph) if wanted else graph
    return replace(graph, outputs=_with_types(graph.outputs, read)), tuple(
        f"{name}: {said.format(count) if count != 1 else singular(said)}"
        for name, counts in done.items()
        for said, count in counts.items()
    )


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
