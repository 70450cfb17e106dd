"""Normalization by statistics of the input itself, and products of two tensors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.normalization import InstanceNormalization, LayerNormalization, RMSNormalization

from ..kernels.layer import Array
from ..kernels.move import strides
from ..kernels.normalize import MOST, NormalizeFloat
from ..kernels.product import ProductFloat
from .state import Importer, StoredTensor, dims_of
from .table import translates


@translates(LayerNormalization, RMSNormalization)
def last_axes(t: Importer, node: LayerNormalization | RMSNormalization) -> None:
    if any(o.present and o.name in t.read for o in node.outputs[1:]):
        raise Problem("the mean and the deviation as outputs")
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    length = prod(held.dims[len(held.dims) - node.axes() :])
    factors = _each(t, node, 1, length, 1.0)
    shifts = _each(t, node, 2, length, 0.0)
    _normalize(t, node, held, length, factors, shifts, False, isinstance(node, LayerNormalization), node.config.epsilon)


@translates(InstanceNormalization)
def instance(t: Importer, node: InstanceNormalization) -> None:
    """Each channel by itself: its elements have to lie side by side."""
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    if held.dims[0] != 1:
        raise Problem(f"a batch of {held.dims[0]}; one at a time is supported")
    channels, length = held.dims[1], prod(held.dims[2:])
    factors, shifts = _each(t, node, 1, channels, 1.0), _each(t, node, 2, channels, 0.0)
    _normalize(t, node, held, length, factors, shifts, True, True, node.config.epsilon)


def _each(t: Importer, node: Node[Any], i: int, count: int, default: float) -> Array:
    if not node.has(i):
        return np.full(count, default, np.float32)
    given = t.array(node, i, "a factor or a shift").astype(np.float32).reshape(-1)
    if given.size not in (1, count):
        raise Problem(f"{given.size} factors for {count} elements")
    return np.broadcast_to(given, (count,))


def _normalize(
    t: Importer,
    node: Node[Any],
    held: StoredTensor,
    length: int,
    factors: Array,
    shifts: Array,
    by_row: bool,
    centered: bool,
    epsilon: float,
) -> None:
    if not 0 < length <= MOST:
        raise Problem(f"rows of {length} elements; at most {MOST} are supported")
    out = t.define(node.outputs[0], held.order)
    rows = prod(held.dims) // length
    t.add(NormalizeFloat(node.name, (held.name,), out.name, rows, length, factors, shifts, by_row, centered, epsilon))


def product_of_tensors(t: Importer, node: Node[Any]) -> None:
    """Both operands are read where they lie; leading axes of size 1 are repeated."""
    sides = [t.of(a) for a in node.inputs]
    dims = dims_of(node.outputs[0])
    if any(len(s.dims) < 2 for s in sides):
        raise Problem("a product with a vector is not supported")
    rank = len(dims)
    steps, sizes = [], []
    for s in sides:
        own = dict(zip(s.order, strides([s.dims[k] for k in s.order]), strict=True))
        more = rank - len(s.dims)
        sizes.append((1,) * more + s.dims)
        steps.append([0] * more + [own[k] for k in range(len(s.dims))])
    batches = tuple(
        (n, *(step[k] if size[k] > 1 else 0 for step, size in zip(steps, sizes, strict=True)))
        for k, n in enumerate(dims[:-2])
        if n > 1
    )
    a, b = steps
    depth = sizes[0][-1]
    out = t.define(node.outputs[0], tuple(range(rank)))
    names = tuple(s.name for s in sides)
    shape = (dims[-2], depth, dims[-1], (a[-2], a[-1]), (b[-2], b[-1]))
    t.add(ProductFloat(node.name, names, out.name, *shape, batches))  # type: ignore[arg-type]
