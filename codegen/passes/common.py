"""Common subexpressions: of equal nodes on equal inputs, only the first is kept."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..ir.graph import Graph, Node
from ..ir.keys import node_key
from .rewriting import Change, Rewrite, Walk, rewrite


def run(graph: Graph) -> Rewrite:
    seen: dict[Hashable, Node[Any]] = {}

    def step(node: Node[Any], walk: Walk) -> Change | None:
        key = node_key(node)
        if key is None:
            return None
        first = seen.get(key)
        if first is None or not walk.visible(first):  # what a branch computes cannot be read outside it
            seen[key] = node
            return None
        pairs = zip(node.outputs, first.outputs, strict=True)
        return Change("merged {} equal nodes", (), {o.name: f for o, f in pairs if o.present})

    return rewrite(graph, step)
