"""Folds batch normalization into the convolution or product before or after it.

Both are linear: normalizing a layer's outputs scales its weight and bias; a layer after a normalization absorbs the
scale into its weight and the shift into its bias (unless padding adds zeros). The new weights are computed when they
are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberlet import dtypes
from emberlet import functional as F
from emberlet.tensor import Tensor

from ..checkpoint_names import folded
from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.value import Buffer, Stored, Value
from ..ops.convolution import Conv, ConvTranspose
from ..ops.internal import Linear
from ..ops.linear_algebra import Gemm, MatMul
from ..ops.normalization import BatchNormalization
from ..records import replace
from .rewriting import Change, Walk, instead, value_of

BEHIND = "folded {} batch normalizations into the layers before them"
BEFORE = "folded {} batch normalizations into the layers after them"


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, BatchNormalization):
        layer = walk.producer(node.inputs[0])
        if layer is not None and walk.alone(node.inputs[0]) and _constant(node, walk):
            return behind(layer, node, walk)
    if isinstance(node, Conv | Gemm | MatMul):
        norm = walk.made_by(node.inputs[0], BatchNormalization)
        if norm is not None and walk.alone(node.inputs[0]) and _constant(norm, walk):
            return before(norm, node, walk)
    return None


def _constant(node: BatchNormalization, walk: Walk) -> bool:
    """Whether a normalization is a constant scale and shift per channel, of floats."""
    values = [node.value(i) for i in range(1, 5)]
    return (
        not node.config.training
        and walk.only_output(node)
        and node.dtype(0).is_float
        and all(v is not None and len(v.shape) == 1 and v.dtype is node.dtype(0) for v in values)
    )


def behind(layer: Node[Any], norm: BatchNormalization, walk: Walk) -> Change | None:
    """The layer, then the normalization, which scales and shifts the layer's outputs."""
    weight = layer.value(1) if len(layer.inputs) > 1 else None
    bias = layer.value(2) if layer.has(2) else None
    if weight is None or (layer.has(2) and bias is None) or not walk.only_output(layer):
        return None
    if isinstance(layer, Conv):
        axis, groups = 0, 1
    elif isinstance(layer, ConvTranspose):
        axis, groups = 1, layer.config.groups
    elif isinstance(layer, Gemm) and plain(layer):
        axis, groups = (0 if layer.config.trans_b else 1), 1
    elif isinstance(layer, MatMul) and len(weight.shape) == 2 and norm.tensor(0).rank == 2:
        axis, groups = 1, 1
    else:
        return None
    size = weight.shape[axis] * groups
    if bias is not None and bias.size != size:
        return None
    scaled = _scaled(weight, norm, axis, groups)
    shifted = _computed(
        (size,), weight, lambda: _shift(norm, bias), ("shift", norm.name, _keys(norm), bias and bias.key())
    )
    origins = [folded(part, layer, norm.inputs[1:5], norm.config.epsilon, axis, groups) for part in ("weight", "bias")]
    scaled, shifted = (replace(v, origin=o) for v, o in zip((scaled, shifted), origins, strict=True))
    inputs = (layer.inputs[0], *_named(layer, norm.name, scaled, shifted))
    made: Node[Any] = replace(layer, name=norm.name, inputs=inputs, outputs=norm.outputs[:1])
    if isinstance(layer, MatMul):
        made = Linear(norm.name, inputs, norm.outputs[:1], None)
    return instead(norm, BEHIND, made)


def before(norm: BatchNormalization, layer: Conv | Gemm | MatMul, walk: Walk) -> Change | None:
    """The normalization, then the layer: its weight absorbs the scale, its bias the weight applied to the shift."""
    weight = layer.value(1)
    bias = layer.value(2) if layer.has(2) else None
    if weight is None or (layer.has(2) and bias is None) or not walk.only_output(layer):
        return None
    if isinstance(layer, Conv):
        window = layer.window()
        if any(window.pads) or window.auto_pad not in ("NOTSET", "VALID"):
            return None
        axis, groups, out = 1, layer.config.groups, weight.shape[0]
    elif len(weight.shape) != 2 or norm.tensor(0).rank != 2 or (isinstance(layer, Gemm) and not plain(layer)):
        return None
    else:
        columns = isinstance(layer, Gemm) and layer.config.trans_b
        axis, groups, out = (1 if columns else 0), 1, weight.shape[0 if columns else 1]
    if bias is not None and bias.size != out:
        return None
    scaled = _scaled(weight, norm, axis, groups)

    def shift() -> Tensor:
        """bias + the contribution of the shift to each output."""
        _, moved = _affine(norm)
        w = _wide(weight)
        if isinstance(layer, Conv):
            each = w.reshape((out, weight.shape[1], -1)).sum(axis=2)  # (out, in / groups)
            per = moved.reshape((groups, 1, weight.shape[1]))
            total = (each.reshape((groups, out // groups, weight.shape[1])) * per).sum(axis=2).reshape((out,))
        else:
            total = (w * moved.reshape((1, -1) if axis == 1 else (-1, 1))).sum(axis=axis)
        return total if bias is None else total + _wide(bias).reshape((out,))

    key = ("before", layer.name, weight.key(), _keys(norm), bias and bias.key())
    inputs = (norm.inputs[0], *_named(layer, layer.name, scaled, _computed((out,), weight, shift, key)))
    made: Node[Any] = replace(layer, inputs=inputs)
    if isinstance(layer, MatMul):
        made = Linear(layer.name, inputs, layer.outputs, None)
    return instead(layer, BEFORE, made)


def plain(layer: Gemm) -> bool:
    """Whether a Gemm is x @ weight + bias."""
    c = layer.config
    return c.alpha == 1.0 and c.beta == 1.0 and not c.trans_a


def _scaled(weight: Value, norm: BatchNormalization, axis: int, groups: int) -> Value:
    """The weight times the scale along an axis. groups: the number of parts of the scale, each for a part of axis 0
    (the outputs of a convolution, the inputs of a transposed one)."""

    def compute() -> Tensor:
        scale, _ = _affine(norm)
        w = _wide(weight)
        if groups == 1:
            shape = [1] * len(weight.shape)
            shape[axis] = -1
            return w * scale.reshape(tuple(shape))
        parts = w.reshape((groups, weight.shape[0] // groups, *weight.shape[1:]))
        ones = (1,) * (len(weight.shape) - 2)
        return (parts * scale.reshape((groups, 1, weight.shape[1], *ones))).reshape(weight.shape)

    return _computed(weight.shape, weight, compute, ("scaled", weight.key(), _keys(norm), axis, groups))


def _affine(norm: BatchNormalization) -> tuple[Tensor, Tensor]:
    """(scale, shift) of each channel, as float64."""
    weight, bias, mean, var = (_wide(v) for i in range(1, 5) if (v := norm.value(i)) is not None)
    scale = weight / F.sqrt(var + norm.config.epsilon)
    return scale, bias - mean * scale


def _shift(norm: BatchNormalization, bias: Value | None) -> Tensor:
    scale, shift = _affine(norm)
    return shift if bias is None else shift + _wide(bias).reshape((-1,)) * scale


def _wide(value: Value) -> Tensor:
    return value.tensor().astype(dtypes.float64)


def _computed(shape: tuple[int, ...], like: Value, compute: Callable[[], Tensor], key: object) -> Value:
    def load() -> Buffer:
        x = compute().astype(like.dtype)
        return bytes(x.backend.to_bytes(x))

    return Value(like.dtype, shape, Stored(load, key))


def _keys(norm: BatchNormalization) -> object:
    return (norm.config.epsilon, *(v.key() for i in range(1, 5) if (v := norm.value(i)) is not None))


def _named(layer: Node[Any], name: str, weight: Value, bias: Value) -> tuple[Argument, Argument]:
    """The weight and bias as arguments. They keep their names, which say which module they belong to."""
    first = layer.inputs[1].name
    second = (
        layer.inputs[2].name if layer.has(2) else first.rpartition(".")[0] + ".bias" if "." in first else name + "_bias"
    )
    return value_of(first, weight), value_of(second, bias)
