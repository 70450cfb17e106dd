"""What passes share: rewriting nodes, values and subgraphs of a graph that is frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ..ir.graph import Graph
from ..ir.node import Node


def with_graphs(node: Node[Any], change: Callable[[Graph], Graph]) -> Node[Any]:
    """The node with each subgraph of its config changed."""
    if not is_dataclass(node.config) or isinstance(node.config, type):
        return node
    changed = {}
    for f in fields(node.config):
        held = getattr(node.config, f.name)
        if isinstance(held, Graph):
            new = change(held)
            if new is not held:
                changed[f.name] = new
    return replace(node, config=replace(node.config, **changed)) if changed else node
