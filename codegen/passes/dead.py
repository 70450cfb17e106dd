"""Dead code: removes nodes whose outputs are never read, in the graph and its subgraphs."""

from __future__ import annotations

from collections import Counter

from ..ir.graph import Graph
from ..records import replace
from .rewriting import Rewrite, with_graphs


def run(graph: Graph) -> Rewrite:
    before = sum(1 for _ in graph.walk())
    out = without_dead(graph)
    gone = before - sum(1 for _ in out.walk())
    return out if gone else graph, Counter({"removed {} unused nodes": gone} if gone else {})


def without_dead(graph: Graph) -> Graph:
    """The graph with only the nodes that its outputs depend on, in its subgraphs too."""
    wanted = {a.name for a in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if any(o.present and o.value is None and o.name in wanted for o in node.outputs):
            node = with_graphs(node, without_dead)
            kept.append(node)
            wanted |= {a.name for a in node.uses() if a.present and a.value is None}
    return replace(graph, nodes=tuple(reversed(kept)))
