"""Constant If: an If whose condition is known is replaced by the branch that it takes."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Node
from ..ops.control import If
from .rewriting import Change, Walk


def step(node: Node[Any], walk: Walk) -> Change | None:
    if not isinstance(node, If):
        return None
    condition = node.value(0)
    if condition is None:
        return None
    taken = node.config.then_branch if condition.item() else node.config.else_branch
    values = {o.name: a for o, a in zip(node.outputs, taken.outputs, strict=False) if o.present}
    return Change("replaced {} constant If by the branch taken", taken.nodes, values)
