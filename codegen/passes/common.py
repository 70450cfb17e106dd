"""Common subexpressions: of equal nodes with equal inputs, only the first is kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..ir.graph import Graph, Node
from ..ir.keys import node_key
from .rewriting import Change, Rewrite, Walk, rewrite


def run(graph: Graph) -> Rewrite:
    alike: dict[Hashable, Node[Any]] = {}
    seen: dict[Hashable, Node[Any]] = {}
    keyed: set[Hashable] = set()

    def step(node: Node[Any], walk: Walk) -> Change | None:
        # Most nodes are the only one of their operator on their inputs; that is cheaper to check than the whole key.
        rough = (type(node), *(a.name for a in node.inputs if a.value is None))
        before = alike.setdefault(rough, node)
        if before is node:
            return None
        if rough not in keyed:
            keyed.add(rough)
            seen.setdefault(node_key(before), before)
        key = node_key(node)
        if key is None:
            return None
        first = seen.get(key)
        if first is None or not walk.visible(first):  # values computed in a branch cannot be read outside it
            seen[key] = node
            return None
        pairs = zip(node.outputs, first.outputs, strict=True)
        return Change("merged {} equal nodes", (), {o.name: f for o, f in pairs if o.present})

    return rewrite(graph, step)
