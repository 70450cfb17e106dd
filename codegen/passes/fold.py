"""Constant folding: replaces nodes with constant inputs by the result of their generated code.

Small values are computed now. Of large ones only the shape is computed now, the elements when the weights are written,
so that a model's weights are never all in memory. A large value is folded only if that does not enlarge the burnpack or
turn a fill into data. Weights of a few bits are never folded into floats.
"""

from __future__ import annotations

from typing import Any

from ..budget import ELEMENTS
from ..evaluation import SMALL, computation, evaluate, foldable, named
from ..ir.argument import Constant
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType
from ..ir.value import Buffer, Fill, Stored, Value
from ..records import replace
from .rewriting import Change, Walk

SAID = "folded {} nodes with constant inputs"
MODEST = 1 << 16


def step(node: Node[Any], walk: Walk) -> Change | None:
    present = [o for o in node.outputs if o.present]
    if node.widens or not foldable(node) or not present or any(o.value is not None for o in present):
        return None
    values = folded(node)
    if values is None:
        return None
    arguments = {}
    for o, value in zip(present, values, strict=True):
        arguments[o.name] = replace(o, type=TensorType(value.dtype, value.shape), source=Constant(value))
    return Change(SAID, (), arguments)


def folded(node: Node[Any]) -> list[Value] | None:
    """The node's value, or None if the node is better left unchanged."""
    free = node.folded()
    if free is not None:
        return [free]
    read = [a.value for a in node.inputs if a.value is not None]
    types = [o.type for o in node.outputs if o.present]
    if any(t.dtype.kind == "string" for t in [*read, *types] if isinstance(t, Value | TensorType)):
        return None
    shapes = [t.static_shape if isinstance(t, TensorType) else None for t in types]
    sizes = [None if s is None else Value(t.dtype, s, Fill(0)).nbytes for t, s in zip(types, shapes, strict=True)]  # type: ignore[union-attr]
    if any(s is None for s in sizes):
        small = sum(v.size for v in read) <= SMALL
        return _now(node) if small else None
    total, given = sum(s for s in sizes if s is not None), sum(v.nbytes for v in read)
    if total <= MODEST and given <= 64 * MODEST:
        return _now(node)
    stored = sum(v.nbytes for v in read if not isinstance(v.source, Fill))
    if len(types) != 1 or total > stored or not isinstance(types[0], TensorType) or shapes[0] is None:
        return None
    elements = sum(v.size for v in read if not isinstance(v.source, Fill))
    if any(v.size > ELEMENTS + 8 * elements for v in read):
        return None
    key = computation(node)

    def load() -> Buffer:
        (value,) = evaluate(node, elements)
        if value is None or value.shape != shapes[0]:
            raise Problem(f"node {node.name!r}: on constants its result is not a tensor of shape {shapes[0]}")
        return value.raw()

    return [Value(types[0].dtype, shapes[0], Stored(load, ("folded", key)), key)]


def _now(node: Node[Any]) -> list[Value] | None:
    try:
        values = evaluate(node)
    except Problem:
        return None  # the error will be raised when it runs
    pairs = zip(node.outputs, values, strict=True)
    found = [named(node, i, v) for i, (o, v) in enumerate(pairs) if o.present and v is not None]
    kept = [v for v in found if v is not None]
    return kept if len(kept) == sum(o.present for o in node.outputs) else None
