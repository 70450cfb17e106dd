"""Normalization by the input's own statistics, and products of two tensors."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.normalization import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    RMSNormalization,
)

from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.layer import Array
from ..kernels.move import strides
from ..kernels.normalize import MOST, NormalizeFloat
from ..kernels.norms import NormFloat
from ..kernels.product import ProductFloat
from .activations import repeated
from .layout import StoredTensor, dims_of
from .state import Importer
from .table import translates

NOTHING = 1e-30
"""Added to a divisor that may be zero. float32 represents it, and it changes no other number."""


@translates(LayerNormalization, RMSNormalization)
def last_axes(t: Importer, node: LayerNormalization | RMSNormalization) -> None:
    if any(o.present and o.name in t.outputs.read for o in node.outputs[1:]):
        raise Problem("the outputs mean and standard deviation are not supported")
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    length = prod(held.dims[len(held.dims) - node.axes() :])
    factors = _each(t, node, 1, length, 1.0)
    shifts = _each(t, node, 2, length, 0.0)
    _normalize(t, node, held, length, factors, shifts, 0, isinstance(node, LayerNormalization), node.config.epsilon)


@translates(InstanceNormalization)
def instance(t: Importer, node: InstanceNormalization) -> None:
    """Each channel is normalized separately, so its elements must be contiguous."""
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    if held.dims[0] != 1:
        raise Problem(f"the batch size is {held.dims[0]}; only 1 is supported")
    channels, length = held.dims[1], prod(held.dims[2:])
    factors, shifts = _each(t, node, 1, channels, 1.0), _each(t, node, 2, channels, 0.0)
    _normalize(t, node, held, length, factors, shifts, 1, True, node.config.epsilon)


@translates(GroupNormalization)
def group(t: Importer, node: GroupNormalization) -> None:
    """Each group of channels is normalized separately, with one factor per channel (before opset 21, per group)."""
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    if held.dims[0] != 1:
        raise Problem(f"the batch size is {held.dims[0]}; only 1 is supported")
    c = node.config
    channels, groups = held.dims[1], c.groups
    given = groups if c.per_group else channels
    factors, shifts = (np.repeat(_each(t, node, i, given, v), channels // given) for i, v in ((1, 1.0), (2, 0.0)))
    length = prod(held.dims[1:]) // groups
    _normalize(t, node, held, length, factors, shifts, channels // groups, True, c.epsilon)


@translates(LpNormalization)
def to_length_one(t: Importer, node: LpNormalization) -> None:
    """L2: RMS normalization without the factor sqrt(length). L1: a quotient by the sum."""
    held = t.of(node.inputs[0])
    axis = node.config.axis % len(held.dims)
    if node.config.p not in (1, 2):
        raise Problem(f"p is {node.config.p}; 1 and 2 are supported")
    order = tuple(k for k in held.order if k != axis or held.dims[k] == 1)
    held = t.ordered(held, order if len(order) == len(held.dims) else (*order, axis))
    length = held.dims[axis]
    if node.config.p == 2:
        factors = np.full(length, length**-0.5, np.float32)
        _normalize(t, node, held, length, factors, np.zeros(length, np.float32), 0, False, NOTHING)
        return
    rows = prod(held.dims) // length
    total, bounded = (t.layout.fresh(f"{held.name}:{what}") for what in ("total", "bounded"))
    shape = tuple(1 if k == axis else held.dims[k] for k in held.order)[len(held.order) - len(held.shape) :]
    t.layout.shapes[total] = t.layout.shapes[bounded] = shape
    t.add(NormFloat(f"{node.name} total", (held.name,), total, (rows, length, 1), "l1"))
    t.add(MapFloat(f"{node.name} bounded", (total,), bounded, shape, (("clip", (NOTHING, inf)),)))
    narrow = tuple(1 if k == axis else n for k, n in enumerate(held.dims))
    wide = repeated(t, StoredTensor(bounded, narrow, held.order), held.dims)
    out = t.define(node.outputs[0], held.order)
    t.add(BinaryFloat(node.name, (held.name, wide.name), out.name, "div", out.shape, out.shape, None))


def _each(t: Importer, node: Node[Any], i: int, count: int, default: float) -> Array:
    if not node.has(i):
        return np.full(count, default, np.float32)
    given = t.array(node, i, "a factor or a shift").astype(np.float32).reshape(-1)
    if given.size not in (1, count):
        raise Problem(f"got {given.size} factors for {count} elements")
    return np.broadcast_to(given, (count,))


def _normalize(
    t: Importer,
    node: Node[Any],
    held: StoredTensor,
    length: int,
    factors: Array,
    shifts: Array,
    each: int,
    centered: bool,
    epsilon: float,
) -> None:
    if not 0 < length <= MOST:
        raise Problem(f"rows have {length} elements; at most {MOST} are supported")
    out = t.define(node.outputs[0], held.order)
    rows = prod(held.dims) // length
    t.add(NormalizeFloat(node.name, (held.name,), out.name, rows, length, factors, shifts, each, centered, epsilon))


def product_of_tensors(t: Importer, node: Node[Any]) -> None:
    """Both operands are read in place, and leading axes of size 1 are broadcast."""
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
