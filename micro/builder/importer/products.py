"""Convolution, dense layers, normalization by constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops.convolution import Conv, ConvTranspose
from emberlet.codegen.ops.linear_algebra import Gemm, MatMul
from emberlet.codegen.ops.normalization import BatchNormalization

from ..kernels.depthwise import MOST_TAPS, DepthwiseFloat
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.layer import Array
from ..kernels.move import Move, Part, strides
from ..kernels.nest import Axis
from ..kernels.window import Window
from .activations import with_tensor
from .layout import StoredTensor, channels_last, dims_of
from .normalizations import product_of_tensors
from .state import Importer
from .table import translates


def window_of(
    kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[tuple[int, int], ...]
) -> Window:
    """A window over one or two spatial axes."""
    if len(kernel) == 1:
        (low, high) = padding[0]
        return Window((1, kernel[0]), (1, stride[0]), (1, dilation[0]), (0, low, 0, high))
    (top, bottom), (left, right) = padding
    return Window(kernel, stride, dilation, (top, left, bottom, right))  # type: ignore[arg-type]


@translates(Conv)
def conv(t: Importer, node: Conv) -> None:
    held = t.image(node.inputs[0])
    weight = t.array(node, 1, "a convolution's weights")
    window = node.window()
    geometry = window_of(window.kernel, window.stride, window.dilation, window.padding(held.dims[2:]))
    bias = _bias(t, node, len(weight))
    _convolution(t, node, held, np.moveaxis(weight, 1, -1), bias, geometry, node.config.groups)


def _bias(t: Importer, node: Node[Any], channels: int) -> Array:
    bias = t.array(node, 2, "a bias") if node.has(2) else np.zeros(channels, np.float32)
    return np.broadcast_to(bias.reshape(-1), (channels,))


def _convolution(
    t: Importer, node: Node[Any], held: StoredTensor, weight: Array, bias: Array, window: Window, groups: int
) -> None:
    """weight: (out, *kernel, in / groups)."""
    shape = t.layout.shapes[held.name]
    n = len(weight)
    weight = weight.reshape(n, *window.kernel, weight.shape[-1])
    out = t.define(node.outputs[0], channels_last(len(held.dims)))
    t.grids.keep_scales(node, node.inputs[1], 0, n)
    taps = window.kernel[0] * window.kernel[1]
    if weight.shape[3] == 1 and groups == shape[-1] and groups > 1 and taps <= MOST_TAPS:
        t.add(DepthwiseFloat(node.name, (held.name,), out.name, shape, window, weight[..., 0], bias))
    else:
        t.add(DotFloat(node.name, (held.name,), out.name, shape, window, groups, weight, bias))


@translates(ConvTranspose)
def conv_transpose(t: Importer, node: ConvTranspose) -> None:
    """A convolution over the input with zeros inserted between its elements."""
    held = t.image(node.inputs[0])
    weight = t.array(node, 1, "a convolution's weights")
    window, padding, extra = node.geometry()
    groups = node.config.groups
    if any(p > (k - 1) * d for pair, k, d in zip(padding, window.kernel, window.dilation, strict=True) for p in pair):
        raise Problem("a transposed convolution whose padding is wider than its kernel is not supported")
    spread = _spread(t, held, window.stride)
    pads = tuple(
        ((k - 1) * d - low, (k - 1) * d - high + e)
        for (low, high), k, d, e in zip(padding, window.kernel, window.dilation, extra, strict=True)
    )
    inputs, each = weight.shape[:2]
    turned = np.flip(weight, tuple(range(2, weight.ndim))).reshape(groups, inputs // groups, each, *weight.shape[2:])
    turned = np.moveaxis(turned, 1, -1).reshape(groups * each, *weight.shape[2:], inputs // groups)
    ones = (1,) * len(window.kernel)
    geometry = window_of(window.kernel, ones, window.dilation, pads)
    _convolution(t, node, spread, turned, _bias(t, node, groups * each), geometry, groups)


def _spread(t: Importer, held: StoredTensor, stride: tuple[int, ...]) -> StoredTensor:
    """The image with stride - 1 zeros between its elements."""
    if all(s == 1 for s in stride):
        return held
    shape = t.layout.shapes[held.name]
    wide = tuple((n - 1) * s + 1 for n, s in zip(shape[:-1], stride, strict=True)) + shape[-1:]
    steps, out = strides(shape), strides(wide)
    axes = tuple(Axis(n, (a, b * s)) for n, a, b, s in zip(shape, steps, out, (*stride, 1), strict=True))
    name = t.layout.fresh(f"{held.name}:spread")
    t.layout.shapes[name] = wide
    t.add(Move(f"spread {held.name}", (held.name,), name, wide, (Part(0, 0, axes),), 0.0))
    return StoredTensor(name, (*held.dims[:2], *wide[:-1]), held.order)


def _dense(t: Importer, node: Node[Any], matrix: Array, bias: Array, axis: int, factor: float = 1.0) -> None:
    """matrix: (out, in), the constant times `factor`; axis: the constant's output axis, along which its scales run."""
    held = t.of(node.inputs[0], flat=True)
    rank, n = len(held.dims), len(matrix)
    plain = tuple(range(rank))
    shape = t.layout.shapes[held.name]
    if held.name in t.layout.flattened:
        # The model flattened channels first, but elements are stored channels last, so the weights are reordered.
        matrix = matrix[:, t.layout.flattened[held.name]]
    else:
        held = t.ordered(held, plain)
        shape = t.layout.shapes[held.name]
    out = t.define(node.outputs[0], tuple(range(len(dims_of(node.outputs[0])))))
    t.grids.keep_scales(node, node.inputs[1], axis, n, factor)
    weight = matrix.reshape(n, 1, 1, -1)
    t.add(DotFloat(node.name, (held.name,), out.name, shape or (1,), Window((1, 1)), 1, weight, bias))


@translates(Gemm)
def gemm(t: Importer, node: Gemm) -> None:
    c = node.config
    if c.trans_a:
        raise Problem("a transposed first operand is not supported")
    matrix = t.array(node, 1, "the second operand") * np.float32(c.alpha)
    matrix = matrix if c.trans_b else matrix.T
    if node.has(2) and node.value(2) is None:
        product = Argument(f"{node.outputs[0].name}:product", node.outputs[0].type)
        one = replace(node, name=f"{node.name} product", inputs=node.inputs[:2], outputs=(product,))
        gemm(t, one)
        added = t.of(node.inputs[2])
        if c.beta != 1:
            scaled = StoredTensor(t.layout.part_of(added, "scaled"), added.dims, added.order)
            at = (f"{node.name} scale", (added.name,), scaled.name, t.layout.shapes[scaled.name])
            t.add(MapFloat(*at, (("affine", (c.beta, 0.0)),)))
            added = scaled
        with_tensor(t, node, "add", t.layout.held[product.name], added)
        return
    if node.has(2):
        given = t.array(node, 2, "the third operand")
        if given.size not in (1, len(matrix)):
            raise Problem(f"the third operand has shape {given.shape}, expected one number per column")
        bias = np.broadcast_to(given.reshape(-1) * np.float32(c.beta), (len(matrix),))
    else:
        bias = np.zeros(len(matrix), np.float32)
    _dense(t, node, matrix, bias, 0 if c.trans_b else 1, c.alpha)


@translates(MatMul)
def matmul(t: Importer, node: MatMul) -> None:
    if node.value(0) is None and node.value(1) is None:
        product_of_tensors(t, node)
        return
    matrix = t.array(node, 1, "the second operand of a matrix product")
    if matrix.ndim > 2:
        raise Problem(f"the second operand has shape {matrix.shape}, expected a matrix")
    if matrix.ndim == 2:
        _dense(t, node, matrix.T, np.zeros(matrix.shape[1], np.float32), 1)
        return
    dims = dims_of(node.outputs[0])
    column = Argument(f"{node.outputs[0].name}:column", TensorType(node.dtype(0), (*dims, 1)))
    _dense(t, replace(node, outputs=(column,)), matrix.reshape(1, -1), np.zeros(1, np.float32), 1)
    t.alias(node.outputs[0], t.layout.held[column.name], tuple(range(len(dims))))


@translates(BatchNormalization)
def batch_norm(t: Importer, node: BatchNormalization) -> None:
    """One factor and one shift per channel."""
    if node.config.training:
        raise Problem("training mode is not supported")
    gamma, beta, mean, variance = (t.array(node, k, "statistics").astype(np.float64) for k in range(1, 5))
    factor = gamma / np.sqrt(variance + node.config.epsilon)
    held = t.of(node.inputs[0])
    held = t.ordered(held, channels_last(len(held.dims)))
    shape = t.layout.shapes[held.name]
    scaled = t.layout.fresh(f"{held.name}:scaled")
    t.layout.shapes[scaled] = shape
    out = t.define(node.outputs[0], channels_last(len(held.dims)))
    per_channel = (len(factor),)
    t.add(BinaryFloat(f"{node.name} scale", (held.name,), scaled, "mul", shape, per_channel, factor))
    t.add(BinaryFloat(node.name, (scaled,), out.name, "add", shape, per_channel, beta - mean * factor))
