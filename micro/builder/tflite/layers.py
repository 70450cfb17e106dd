"""Converters of layers with weights, products and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem

from .movement import reshaped
from .reading import FileOperator, values
from .table import Inputs, converts

if TYPE_CHECKING:
    from .importing import Converting


VALID = 1
"""The number of a padding without zeros; the other one is SAME."""


def padding(op: FileOperator, sizes: Sequence[int], kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """ONNX's pads of a window: (top, left, bottom, right). Raises Problem."""
    strides = (op.integer("StrideH"), op.integer("StrideW"))
    if min(*strides, *dilations, *kernel) < 1:
        raise Problem(
            f"strides {strides}, dilations {tuple(dilations)} and a kernel of {tuple(kernel)} are not supported"
        )
    if op.integer("Padding") == VALID:
        return (0, 0, 0, 0)
    before, after = [], []
    for size, k, d, s in zip(sizes, kernel, dilations, strides, strict=True):
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)


def _window(t: Converting, op: FileOperator, image: Argument, kernel: Sequence[int]) -> dict[str, Any]:
    dilations = (op.integer("DilationHFactor", 1), op.integer("DilationWFactor", 1))
    pads = padding(op, t.dims(image)[2:], kernel, dilations)
    strides = (op.integer("StrideH"), op.integer("StrideW"))
    return {"pads": pads, "strides": strides, "dilations": dilations, "kernel_shape": tuple(kernel)}


def _weights(t: Converting, n: int, order: Sequence[int], channel: int) -> Argument:
    """Constant weights with their axes reordered; records the scales of their channels. Raises Problem.

    channel: the axis of the file's tensor that counts output channels.
    """
    file = t.file.tensors[n]
    array = t.array(t.argument(n), "weights")
    if array.ndim != len(order):
        raise Problem(f"the weights have shape {array.shape}, expected {len(order)} axes")
    moved = t.constant(np.transpose(array, order))
    if t.is_quantized and file.is_quantized:
        if file.dtype not in ("INT8", "UINT8") or len(set(file.zeros)) != 1:
            raise Problem("the weights must be int8 or uint8 with one zero point for all channels")
        if len(file.scales) > 1 and file.axis != channel:
            raise Problem(f"the weights have a scale for each index of axis {file.axis}, expected axis {channel}")
        zero = file.zeros[0] + (128 if file.dtype == "INT8" else 0)
        t.importer.grids.weights[moved.name] = np.asarray(file.scales, np.float64), 0, zero
    return moved


def _bias(t: Converting, op: FileOperator, given: Inputs) -> list[Argument]:
    if len(given) < 3 or not given[2].present:
        return []
    file = t.file.tensors[op.inputs[2]]
    stored = t.array(given[2], "a bias")
    if not t.is_quantized or file.dtype == "FLOAT32":
        return [given[2]]
    # A bias is in steps of the sums, whatever scale the file states.
    x, w = t.file.tensors[op.inputs[0]], t.file.tensors[op.inputs[1]]
    steps = values(file, "a bias").astype(np.float64)
    wanted = "INT64" if x.dtype == "INT16" else "INT32"
    if file.dtype != wanted or steps.ndim != 1 or len(w.scales) not in (1, steps.size) or not x.scales:
        raise Problem(
            f"the bias has type {file.dtype} and shape {stored.shape}, expected {wanted.lower()} and one number for "
            "each channel"
        )
    return [t.constant(steps * (np.asarray(w.scales, np.float64) * x.scales[0]))]


@converts("CONV_2D")
def conv(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    weights = _weights(t, op.inputs[1], (0, 3, 1, 2), 0)
    each = t.dims(weights)[1]
    channels = t.dims(image)[1]
    if channels % each:
        raise Problem(f"the input has {channels} channels, but the weights are for {each}")
    window = _window(t, op, image, t.dims(weights)[2:])
    out = t.node("Conv", [image, weights, *_bias(t, op, given)], group=channels // each, **window)
    return t.channels_last(t.activated(out, merged=True))


@converts("DEPTHWISE_CONV_2D")
def depthwise(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    weights = _weights(t, op.inputs[1], (3, 0, 1, 2), 3)
    if t.dims(weights)[1] != 1:
        raise Problem(f"depthwise weights of shape {t.dims(given[1])} are not supported")
    window = _window(t, op, image, t.dims(weights)[2:])
    out = t.node("Conv", [image, weights, *_bias(t, op, given)], group=t.dims(image)[1], **window)
    return t.channels_last(t.activated(out, merged=True))


@converts("TRANSPOSE_CONV")
def conv_transpose(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if t.is_quantized:
        raise Problem("quantized transposed convolutions are not supported; build from the float model")
    image = t.channels_first(given[2])
    weights = _weights(t, op.inputs[1], (3, 0, 1, 2), 0)
    size = t.ints(given[0], "the shape of the output")
    if len(size) != 4:
        raise Problem(f"an output of shape {size} is not supported")
    kernel, strides = t.dims(weights)[2:], (op.integer("StrideH"), op.integer("StrideW"))
    pads = padding(op, size[1:3], kernel, (1, 1))
    whole = [(n - 1) * s + k for n, s, k in zip(t.dims(image)[2:], strides, kernel, strict=True)]
    extra = [n - w + a + b for n, w, a, b in zip(size[1:3], whole, pads[:2], pads[2:], strict=True)]
    if min(extra) < 0:
        raise Problem(f"an output of shape {size} does not fit an input of shape {t.dims(given[2])}")
    attributes: dict[str, Any] = {"strides": strides, "pads": pads, "output_padding": tuple(extra)}
    bias = [given[3]] if len(given) > 3 and given[3].present else []
    return t.channels_last(t.activated(t.node("ConvTranspose", [image, weights, *bias], **attributes), merged=True))


@converts("FULLY_CONNECTED")
def dense(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    if op.integer("WeightsFormat"):
        raise Problem("shuffled weights are not supported")
    weights = _weights(t, op.inputs[1], (0, 1), 0)
    dims, (n, k) = t.dims(given[0]), t.dims(weights)
    rows = int(np.prod(dims)) // k
    if rows * k != np.prod(dims):
        raise Problem(f"an input of shape {dims} does not fit weights of {n} x {k}")
    flat = given[0] if dims == (rows, k) else reshaped(t, given[0], (rows, k))
    out = t.activated(t.node("Gemm", [flat, weights, *_bias(t, op, given)], transB=1), merged=True)
    shape = (*dims[:-1], n) if op.integer("KeepNumDims") else (rows, n)
    return out if shape == (rows, n) else reshaped(t, out, shape)


@converts("BATCH_MATMUL")
def matmul(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    operands = [_turned(t, a, bool(op.options.get(k))) for a, k in zip(given, ("AdjX", "AdjY"), strict=True)]
    return t.node("MatMul", operands)


def _turned(t: Converting, a: Argument, turned: bool) -> Argument:
    rank = len(t.dims(a))
    return t.node("Transpose", [a], perm=(*range(rank - 2), rank - 1, rank - 2)) if turned else a


@converts("MAX_POOL_2D", "AVERAGE_POOL_2D")
def pool(t: Converting, op: FileOperator, given: Inputs) -> Argument:
    image = t.channels_first(given[0])
    window = _window(t, op, image, (op.integer("FilterHeight"), op.integer("FilterWidth")))
    if op.kind == "AVERAGE_POOL_2D":
        del window["dilations"]
    out = t.node("MaxPool" if op.kind == "MAX_POOL_2D" else "AveragePool", [image], **window)
    return t.channels_last(t.activated(out))
