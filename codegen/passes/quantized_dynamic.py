"""Layers that quantize their input by the range of each call, out of DynamicQuantizeLinear, MatMulInteger or
ConvInteger, and the scaling of the sums."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes

from ..ir.argument import ABSENT, Argument
from ..ir.graph import Node
from ..ir.value import Fill, Value
from ..ops.arithmetic import Add, Mul
from ..ops.base import reshaped
from ..ops.constant import Cast
from ..ops.convolution import ConvConfig
from ..ops.quantization import (
    ConvInteger,
    DequantizeLinear,
    DynamicQuantizeLinear,
    MatMulInteger,
    QuantizeConfig,
)
from ..ops.quantized_layers import (
    Grids,
    QuantizedConv,
    QuantizedConvConfig,
    QuantizedLinear,
    QuantizedLinearConfig,
)
from ..records import replace
from .quantized import SAID, Weight, unpacked
from .rewriting import Change, Walk, instead, value_of, with_constant

DYNAMIC = Grids(None, None)


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Add):
        return biased(node, walk)
    if not isinstance(node, Mul) or node.dtype(0) is not dtypes.float32:
        return None
    for total, scale in (node.inputs, node.inputs[::-1]):
        layer = scaled(node, total, scale, walk)
        if layer is not None:
            return instead(node, SAID, layer)
    return None


def scaled(node: Mul, total: Argument, scale: Argument, walk: Walk) -> Node[Any] | None:
    """The layer, if `total` are sums of integers and `scale` is that of the input times those of the weight."""
    cast, scales = walk.made_by(total, Cast), walk.made_by(scale, Mul)
    if cast is None or scales is None or not walk.alone(total) or not walk.alone(cast.inputs[0]):
        return None
    product = walk.producer(cast.inputs[0])
    if not isinstance(product, MatMulInteger | ConvInteger):
        return None
    before = walk.made_by(product.inputs[0], DynamicQuantizeLinear)
    if before is None or not walk.visible(before) or product.value(1) is None or not product.has(2):
        return None
    for given, constant in (scales.inputs, scales.inputs[::-1]):
        read = (product.inputs[0].name, given.name, product.inputs[2].name)
        if constant.value is not None and read == tuple(o.name for o in before.outputs):
            return layer_of(node, product, before.inputs[0], constant.value)
    return None


def layer_of(node: Mul, product: MatMulInteger | ConvInteger, x: Argument, scale: Value) -> Node[Any] | None:
    value = product.value(1)
    dense = isinstance(product, MatMulInteger)
    assert value is not None
    if (len(value.shape) != 2) if dense else not 3 <= len(value.shape) <= 5:
        return None
    axis = 1 if dense else 0
    channels = value.shape[axis]
    rank = product.tensor(0).rank if dense else len(value.shape)
    if len(scale.shape) > (1 if rank is None else rank):  # the result has the rank of the scale
        return None
    along = len(scale.shape) - (1 if dense else len(value.shape) - 1)  # the axis of the sums' channels
    if scale.size != 1 and (scale.size != channels or along < 0 or scale.shape[along] != channels):
        return None
    weight = weight_of(product, axis, reshaped(scale, () if scale.size == 1 else (channels,)))
    if weight is None or weight.block is not None:
        return None
    inputs = (x, *weight.parts(node), ABSENT)
    if isinstance(product, MatMulInteger):
        config = QuantizedLinearConfig(value.shape[0], channels, weight.packing, DYNAMIC)
        return QuantizedLinear(node.name, inputs, node.outputs, config)
    c = product.config
    conv = ConvConfig(product.window(), c.groups, value.shape[1] * c.groups, channels)
    return QuantizedConv(
        node.name, inputs, node.outputs, QuantizedConvConfig(conv, value.shape, weight.packing, DYNAMIC)
    )


def weight_of(product: MatMulInteger | ConvInteger, axis: int, scale: Value) -> Weight | None:
    """The weight of a product, packed."""
    inputs = [product.inputs[1], value_of(f"{product.name}::scale", scale)]
    if product.has(3):
        zero = product.value(3)
        if zero is None or zero.size not in (1, scale.size):
            return None
        if zero.size == scale.size:
            zero = reshaped(zero, scale.shape)
        else:
            zero = Value(zero.dtype, scale.shape, Fill(zero.ints()[0]), zero.origin)
        inputs.append(value_of(product.inputs[3].name, zero))
    dq = DequantizeLinear(product.name, tuple(inputs), product.outputs, QuantizeConfig(axis, 0, None, True))
    return unpacked(dq, axis, True)


def biased(node: Add, walk: Walk) -> Change | None:
    """The convolution with its bias."""
    for layer, given, value in with_constant(node, QuantizedConv, walk):
        channels, grids = layer.config.shape[0], layer.config.grids
        shape = (channels, *(1 for _ in layer.config.shape[2:]))
        fits = value.shape in (shape, (1, *shape)) and value.dtype is dtypes.float32
        if fits and not layer.has(4) and grids is not None and grids.output is None:
            bias = value_of(given.name, reshaped(value, (channels,)))
            made = replace(layer, inputs=(*layer.inputs[:4], bias), outputs=node.outputs)
            return instead(node, "joined {} convolutions with their bias", made)
    return None
