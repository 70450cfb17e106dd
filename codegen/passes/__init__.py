"""Passes: functions from graph to graph that never change a result beyond rounding; each has a name to switch it by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emberlet.errors import ModelError

from ..ir.graph import Graph
from . import dead

Pass = Callable[[Graph], tuple[Graph, str]]
"""Returns the new graph, and what was done ("" where nothing was)."""

PASSES: dict[str, Pass] = {
    "dead": dead.run,
}


def run_passes(graph: Graph, names: Iterable[str] | None = None) -> tuple[Graph, tuple[str, ...]]:
    """The graph after the passes called `names` (all where None), in their fixed order, and what they did.

    Raises ModelError for a name that no pass has.
    """
    wanted = set(PASSES) if names is None else set(names)
    unknown = sorted(wanted - set(PASSES))
    if unknown:
        raise ModelError(f"there is no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    notes = []
    for name, function in PASSES.items():
        if name in wanted:
            graph, note = function(graph)
            if note:
                notes.append(f"{name}: {note}")
    return graph, tuple(notes)
