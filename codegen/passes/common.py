"""Common subexpressions: of equal nodes on equal inputs, the first."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any

from ..ir.argument import Argument
from ..ir.graph import Graph
from ..ir.node import Node
from ..ir.value import Value
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


def node_key(node: Node[Any]) -> Hashable | None:
    """Equal for two nodes only where one can stand for the other; None for those without equals."""
    if not node.pure or node.graphs():
        return None
    inputs = tuple(_argument_key(a) for a in node.inputs)
    present = tuple(o.present for o in node.outputs)
    return (type(node), inputs, present, _key(node.config))


def _argument_key(a: Argument) -> Hashable:
    return a.name if a.value is None else a.value.key()


def _key(held: Any) -> Hashable:
    """A config as something hashable."""
    if isinstance(held, Value):
        return held.key()
    if is_dataclass(held) and not isinstance(held, type):
        return (type(held).__name__, *(_key(getattr(held, f.name)) for f in fields(held)))
    if isinstance(held, tuple):
        return tuple(_key(v) for v in held)
    if isinstance(held, float):
        return repr(held)
    return held
