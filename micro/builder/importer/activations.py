"""Functions of one tensor, and arithmetic on two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops import activations
from emberlet.codegen.ops import arithmetic as a
from emberlet.codegen.ops import elementwise as e
from emberlet.codegen.ops.constant import Cast
from emberlet.codegen.ops.movement import Identity
from emberlet.codegen.ops.normalization import Dropout
from emberlet.codegen.ops.quantization import DequantizeLinear, QuantizeLinear
from emberlet.codegen.ops.softmax import LogSoftmax, Softmax, SoftmaxLike

from ..functions import Chain
from ..graph import Grid
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.layer import Array
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from ..kernels.softmax import SoftmaxFloat
from . import dynamic
from .layout import Order, StoredTensor, channels_last, dims_of, dtype_of
from .masks import hidden, hides, with_mask
from .state import Importer
from .table import translates

NAMED = (
    *(e.Sigmoid, e.Tanh, e.Softplus, e.Softsign, e.Mish, e.Exp, e.Log, e.Sqrt, e.Reciprocal, e.Abs, e.Erf, e.IsNaN),
    *(e.Sin, e.Cos, e.Tan, e.Asin, e.Acos, e.Atan, e.Sinh, e.Cosh, e.Asinh, e.Acosh, e.Atanh),
    *(e.Round, e.Floor, e.Ceil, e.Sign),
)
"""Operators whose functions have their names."""

PLAIN: dict[type[Node[Any]], Chain] = {
    **{kind: ((kind.__name__.lower(), ()),) for kind in NAMED},
    e.Relu: (("clip", (0.0, inf)),),
    e.HardSwish: (("hard_swish", ()),),
    e.Neg: (("affine", (-1.0, 0.0)),),
}

CONFIGURED: dict[type[Node[Any]], Callable[[Any], Chain]] = {
    activations.LeakyRelu: lambda c: (("leaky_relu", (c.alpha,)),),
    activations.Elu: lambda c: (("elu", (c.alpha,)),),
    activations.Celu: lambda c: (("celu", (c.alpha,)),),
    activations.ThresholdedRelu: lambda c: (("thresholded_relu", (c.alpha,)),),
    activations.Selu: lambda c: (("selu", (c.alpha, c.gamma)),),
    activations.HardSigmoid: lambda c: (("hard_sigmoid", (c.alpha, c.beta)),),
    activations.Shrink: lambda c: (("shrink", (c.bias, c.lambd)),),
    activations.Swish: lambda c: (("start", ()), ("affine", (c.alpha, 0.0)), ("sigmoid", ()), ("times_start", ())),
    activations.Gelu: lambda c: (("gelu" if c.approximate == "none" else "gelu_tanh", ()),),
}


def apply_chain(t: Importer, node: Node[Any], chain: Chain) -> None:
    held = t.of(node.inputs[0], flat=True)
    out = t.define(node.outputs[0], held.order)
    t.add(MapFloat(node.name, (held.name,), out.name, t.layout.shapes[held.name], chain))
    if held.name in t.layout.flattened:
        before = t.layout.unflattened[held.name]
        t.layout.flattened[out.name] = t.layout.flattened[held.name]
        t.layout.unflattened[out.name] = StoredTensor(out.name, before.dims, before.order)


@translates(*PLAIN)
def plain(t: Importer, node: Node[Any]) -> None:
    apply_chain(t, node, PLAIN[type(node)])


@translates(*CONFIGURED)
def configured(t: Importer, node: Node[Any]) -> None:
    apply_chain(t, node, CONFIGURED[type(node)](node.config))


@translates(activations.PRelu)
def prelu(t: Importer, node: activations.PRelu) -> None:
    """With one slope per channel, the sum of the positive part and the slopes times the negative part."""
    slope = t.array(node, 1, "the slope")
    if np.all(slope == slope.reshape(-1)[0]):
        apply_chain(t, node, (("leaky_relu", (float(slope.reshape(-1)[0]),)),))
        return
    held = t.of(node.inputs[0])
    positive, negative = (t.layout.part_of(held, name) for name in ("positive", "negative"))
    t.add(
        MapFloat(f"{node.name} {positive}", (held.name,), positive, t.layout.shapes[positive], (("clip", (0.0, inf)),))
    )
    t.add(
        MapFloat(f"{node.name} {negative}", (held.name,), negative, t.layout.shapes[negative], (("clip", (-inf, 0.0)),))
    )
    scaled = Argument(f"{node.outputs[0].name}:scaled", node.outputs[0].type)
    source = StoredTensor(negative, held.dims, held.order)
    with_constant(t, replace(node, outputs=(scaled,)), "mul", source, slope, False, None)
    with_tensor(t, node, "add", StoredTensor(positive, held.dims, held.order), t.layout.held[scaled.name])


@translates(Identity, Dropout)
def identity(t: Importer, node: Node[Any]) -> None:
    if isinstance(node, Dropout) and node.trains():
        raise Problem("training mode is not supported")
    t.layout.held[node.outputs[0].name] = t.of(node.inputs[0], flat=True)


@translates(Cast)
def cast(t: Importer, node: Cast) -> None:
    """Floats are truncated to integers; other casts keep the numbers. An input's bytes cast to floats are whole
    numbers."""
    if dynamic.cast(t, node):
        return
    held, given, to = t.layout.held.get(node.inputs[0].name), dtype_of(node.inputs[0]), dtype_of(node.outputs[0])
    if held is not None and held.name in t.grids.integers and to.is_float:
        whole = Grid(1.0, t.grids.integers[held.name])
        if t.grids.tensors.get(held.name, whole) != whole:
            raise Problem("bytes that are also dequantized with a scale other than 1 are not supported")
        identity(t, node)
        return
    if any(d.is_integer and d.bits <= 16 for d in (given, to)):
        raise Problem(
            f"a cast from {given} to {to} is not supported; use QuantizeLinear and DequantizeLinear, or cast to int32"
        )
    if to.is_bool and not given.is_bool:
        apply_chain(t, node, (("nonzero", ()),))
        return
    if to.is_integer and given.is_float:
        apply_chain(t, node, (("trunc", ()),))
        return
    identity(t, node)


OPERATIONS = {a.Add: "add", a.Sub: "sub", a.Mul: "mul", a.Div: "div"}


@translates(a.Add, a.Sub, a.Mul)
def pairwise(t: Importer, node: a.Pairwise) -> None:
    if isinstance(node, a.Mul) and dynamic.multiply(t, node):
        return
    if node.config.axis is not None:
        raise Problem("operands aligned along an axis (before opset 7) are not supported")
    operation = OPERATIONS[type(node)]
    first, second = node.value(0), node.value(1)
    if first is not None or second is not None:
        reverse = first is not None
        which = 0 if reverse else 1
        hiding = operation == "add" and node.outputs[0].name in t.outputs.only_softmax
        if hiding and hides(t.array(node, which, "an operand", limits=True)):
            _masked(t, node, which)
            return
        constant, held = t.array(node, which, "an operand"), t.of(node.inputs[1 - which])
        grid = t.grids.constants.get(node.inputs[which].name)
        if grid is None and constant.size > 1 and operation != "div" and not (reverse and operation == "sub"):
            grid = t.grids.of_constant(node.inputs[which])
        with_constant(t, node, operation, held, constant, reverse, grid)
    else:
        with_tensor(t, node, operation, t.of(node.inputs[0]), t.of(node.inputs[1]))


def _masked(t: Importer, node: a.Pairwise, which: int) -> None:
    """A sum with a constant that masks some elements; its other numbers are added."""
    constant, dims = t.array(node, which, "an operand", limits=True), dims_of(node.outputs[0])
    held = repeated(t, widened(t, t.of(node.inputs[1 - which]), len(dims)), dims)
    rest = np.where(hidden(constant), np.float32(0), constant)
    if rest.any():
        added = Argument(f"{node.outputs[0].name}:added", node.outputs[0].type)
        with_constant(t, replace(node, name=f"{node.name} added", outputs=(added,)), "add", held, rest, False, None)
        held = t.layout.held[added.name]
    with_mask(t, node, held, constant)


def with_constant(
    t: Importer, node: Node[Any], operation: str, held: StoredTensor, c: Array, reverse: bool, grid: Grid | None
) -> None:
    dims = dims_of(node.outputs[0])
    held = repeated(t, widened(t, held, len(dims)), dims)
    c = c.reshape((1,) * (len(dims) - c.ndim) + c.shape).astype(np.float64)
    source = held.name
    if reverse and operation in ("sub", "div"):
        if grid is not None:
            raise Problem(f"a quantized constant as the first operand of {operation} is not supported")
        # c - x is -x + c, and c / x is 1/x · c.
        chain: Chain = (("affine", (-1.0, 0.0)),) if operation == "sub" else (("reciprocal", ()),)
        source = t.layout.fresh(f"{held.name}:turned")
        t.layout.shapes[source] = t.layout.shapes[held.name]
        t.add(MapFloat(f"{node.name} turn", (held.name,), source, t.layout.shapes[held.name], chain))
        operation = {"sub": "add", "div": "mul"}[operation]
    out = t.define(node.outputs[0], held.order)
    shape = t.layout.shapes[held.name]
    laid, other = laid_out(held, c, shape)
    known = None if grid is None else (grid.scale, grid.zero)
    t.add(BinaryFloat(node.name, (source,), out.name, operation, shape, other, laid, grid=known))


def _stored(held: StoredTensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """A shape in the order of a tensor's elements, without the leading batch axis if the tensor has none."""
    return sizes[len(sizes) - len(held.shape) :]


def laid_out(held: StoredTensor, c: Array, shape: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """A constant and its shape, for a kernel: with as many axes as a tensor and in the order of its elements. The
    kernel repeats an axis of size 1 if it is a side of the image."""
    laid = np.transpose(c, held.order)
    other = _stored(held, laid.shape)
    if fits_image(other, shape):
        return laid.reshape(other), other
    return np.broadcast_to(laid.reshape(other), shape), shape


def fits_image(other: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a kernel can broadcast a tensor of shape `other` to `shape`, both seen as images."""
    lead, wanted = other[:-2], shape[:-2]
    return lead == wanted or all(n == 1 for n in lead)


def widened(t: Importer, held: StoredTensor, rank: int) -> StoredTensor:
    """The tensor with axes of size 1 in front, to `rank`."""
    more = rank - len(held.dims)
    if not more:
        return held
    dims = (1,) * more + held.dims
    return t.shaped(StoredTensor(held.name, dims, (*range(more), *(k + more for k in held.order))))


def with_tensor(t: Importer, node: Node[Any], operation: str, x: StoredTensor, y: StoredTensor) -> None:
    dims = dims_of(node.outputs[0])
    x, y, swapped = aligned(t, dims, x, y, operation != "div")
    if swapped and operation == "sub":
        negated = t.layout.part_of(x, "turned")
        t.add(MapFloat(f"{node.name} turn", (x.name,), negated, t.layout.shapes[x.name], (("affine", (-1.0, 0.0)),)))
        x, operation = StoredTensor(negated, x.dims, x.order), "add"
    out = t.define(node.outputs[0], x.order)
    t.add(
        BinaryFloat(
            node.name, (x.name, y.name), out.name, operation, t.layout.shapes[x.name], t.layout.shapes[y.name], None
        )
    )


def aligned(
    t: Importer, dims: tuple[int, ...], x: StoredTensor, y: StoredTensor, may_swap: bool = True
) -> tuple[StoredTensor, StoredTensor, bool]:
    """Two operands in the same axis order, for a kernel: the first of shape `dims`, the second broadcast by the kernel.

    The third result is whether they were swapped.
    """
    x, y = widened(t, x, len(dims)), widened(t, y, len(dims))
    swapped = x.dims != dims and y.dims == dims and may_swap
    if swapped:
        x, y = y, x
    x = repeated(t, x, dims)
    if not y.has_order(x.order):
        order: Order = channels_last(len(dims)) if len(dims) > 2 else tuple(range(len(dims)))
        x, y = t.ordered(x, order), t.ordered(y, order)
    y = t.shaped(StoredTensor(y.name, y.dims, x.order), _stored(x, tuple(y.dims[k] for k in x.order)))
    if not fits_image(t.layout.shapes[y.name], t.layout.shapes[x.name]):
        y = repeated(t, y, dims)
    return x, y, swapped


def repeated(t: Importer, held: StoredTensor, dims: tuple[int, ...]) -> StoredTensor:
    """The tensor with every element of an axis of size 1 repeated, to the shape `dims` of as many axes."""
    if held.dims == dims:
        return held
    name = t.layout.fresh(f"{held.name}:repeated")
    out = StoredTensor(name, dims, held.order)
    steps = strides([held.dims[k] for k in held.order])
    to = strides([dims[k] for k in held.order])
    axes = tuple(
        Axis(dims[k], (step if held.dims[k] > 1 else 0, after))
        for k, step, after in zip(held.order, steps, to, strict=True)
    )
    t.layout.shapes[name] = out.shape
    t.add(Move(f"repeat {held.name}", (held.name,), name, out.shape, (Part(0, 0, axes),)))
    return out


@translates(a.Clip)
def clip(t: Importer, node: a.Clip) -> None:
    given = [node.config.low, node.config.high]
    for i in (1, 2):
        if node.has(i):
            given[i - 1] = float(t.array(node, i, "a bound", limits=True).reshape(-1)[0])
    low, high = (-inf if given[0] is None else given[0]), (inf if given[1] is None else given[1])
    apply_chain(t, node, (("clip", (min(low, high), high)),))  # min(max(x, low), high) for crossed bounds, too


@translates(Softmax, LogSoftmax)
def softmax(t: Importer, node: SoftmaxLike) -> None:
    held = t.of(node.inputs[0])
    rank = len(held.dims)
    axis = node.config.axis % rank
    if node.config.flattened and any(n != 1 for n in held.dims[axis + 1 :]):
        raise Problem("softmax over several axes (before opset 13) is not supported")
    order = held.order
    large = [k for k in order if held.dims[k] != 1]
    if large and held.dims[axis] != 1 and large[-1] != axis:
        order = (*(k for k in range(rank) if k != axis), axis)
        held = t.ordered(held, order)
    out = t.define(node.outputs[0], order)
    size = int(np.prod(held.dims))
    length = held.dims[axis]
    rows = size // length
    t.add(SoftmaxFloat(node.name, (held.name,), out.name, rows, length, isinstance(node, LogSoftmax)))


@translates(QuantizeLinear)
def quantize(t: Importer, node: QuantizeLinear) -> None:
    """A layer that saturates and rounds to the grid. `fuse` merges it into the preceding layer if possible."""
    grid, own = grid_of(t, node), node.outputs[0]
    out = replace(own, name=t.outputs.given.get(own.name, own.name))
    apply_chain(t, replace(node, outputs=(out,)), ())
    held = t.layout.held[own.name] = t.layout.held[out.name]
    t.grids.tensors[held.name] = grid


@translates(DequantizeLinear)
def dequantize(t: Importer, node: DequantizeLinear) -> None:
    held = t.of(node.inputs[0], flat=True)
    grid = grid_of(t, node)
    if t.grid_behind(held, grid) != grid:
        raise Problem("the tensor is quantized and dequantized with different scales")
    t.layout.held[node.outputs[0].name] = held


def grid_of(t: Importer, node: QuantizeLinear | DequantizeLinear) -> Grid:
    """The grid of bytes, or of words, that a node's scale and zero point define."""
    scale = t.array(node, 1, "a scale")
    zero = t.array(node, 2, "a zero point") if node.has(2) else np.zeros(1, np.uint8)
    if scale.size != 1 or zero.size != 1:
        raise Problem("an activation with a scale for each channel is not supported; use one scale for the tensor")
    if scale.reshape(-1)[0] <= 0:
        raise Problem(f"the scale is {scale.reshape(-1)[0]}, expected a positive number")
    if zero.dtype not in (np.int8, np.uint8, np.int16, np.uint16):
        raise Problem(f"the zero point has dtype {zero.dtype}, expected int8, uint8, int16 or uint16")
    stored = int(zero.reshape(-1)[0]) - int(np.iinfo(zero.dtype).min)
    return Grid(float(scale.reshape(-1)[0]), stored, 8 * zero.dtype.itemsize)
