"""Dead code: nodes whose outputs nobody reads, in the graph and in its subgraphs."""

from __future__ import annotations

from dataclasses import replace

from ..ir.argument import Argument
from ..ir.graph import Graph


def run(graph: Graph) -> tuple[Graph, str]:
    out = without_dead(graph)
    gone = len(graph.nodes) - len(out.nodes)
    return out, f"removed {gone} nodes that nobody reads" if gone else ""


def without_dead(graph: Graph) -> Graph:
    """The graph with only the nodes that its outputs depend on."""
    wanted = {a.name for a in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if any(o.present and o.value is None and o.name in wanted for o in node.outputs):
            kept.append(node)
            wanted |= {a.name for a in node.uses() if a.present and a.value is None}
    return replace(graph, nodes=tuple(reversed(kept)))


def reads(graph: Graph) -> dict[str, list[Argument]]:
    """Who reads what: value name -> the arguments that stand for it, the graph's outputs included."""
    out: dict[str, list[Argument]] = {}
    for node in graph.nodes:
        for a in node.uses():
            out.setdefault(a.name, []).append(a)
    for a in graph.outputs:
        out.setdefault(a.name, []).append(a)
    return out
