"""QLinearConv, QLinearMatMul and QGemm with constant weights and scales as layers that take and give integers."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes
from emberlet.tensor import Tensor

from ..emit.emitter import shortest
from ..ir.argument import ABSENT, Argument
from ..ir.graph import Node
from ..ir.value import Value
from ..ops.base import reshaped
from ..ops.convolution import ConvConfig
from ..ops.microsoft_quantized_products import QGemm
from ..ops.microsoft_quantized_products import QLinearConv as MicrosoftConv
from ..ops.quantization import DequantizeLinear, QLinearConv, QLinearMatMul, QuantizeConfig
from ..ops.quantized_layers import (
    Grid,
    Grids,
    QuantizedConv,
    QuantizedConvConfig,
    QuantizedLinear,
    QuantizedLinearConfig,
)
from .quantized import SAID, Weight, made, unpacked
from .rewriting import Change, Walk, instead, value_of

EXACT = 1 << 21  # biases below it are the same integers again after they were multiplied by a scale and divided


def step(node: Node[Any], walk: Walk) -> Change | None:
    if not isinstance(node, QLinearConv | MicrosoftConv | QLinearMatMul | QGemm):
        return None
    layer = layer_of(node)
    return None if layer is None else instead(node, SAID, layer)


def layer_of(node: Node[Any]) -> QuantizedConv | QuantizedLinear | None:
    """The layer of an operator; None where its parts are computed, or have another form."""
    if isinstance(node, MicrosoftConv):
        return None if node.config.channels_last else convolution(node.conv(), node)
    if isinstance(node, QLinearConv):
        return convolution(node, node)
    if isinstance(node, QGemm):
        c = node.config
        turned, bias, results = c.trans_b, 6, (7, 8)
        if c.trans_a or c.alpha != 1.0 or not node.has(7):
            return None
    else:
        turned, bias, results = False, 9, (6, 7)
    axis = 0 if turned else 1
    found = parts(node, (*results, bias), axis)
    value = node.value(3)
    if found is None or value is None or len(value.shape) != 2:
        return None
    grids, weight, rest = found
    config = QuantizedLinearConfig(value.shape[1 - axis], value.shape[axis], weight.packing, grids)
    return QuantizedLinear(node.name, (node.inputs[0], *weight.parts(node), rest), node.outputs, config)


def convolution(node: QLinearConv, original: Node[Any]) -> QuantizedConv | None:
    found = parts(node, (6, 7, 8), 0)
    value = node.value(3)
    if found is None or value is None or not 3 <= len(value.shape) <= 5:
        return None
    grids, weight, rest = found
    c = node.config
    conv = ConvConfig(node.window(), c.groups, value.shape[1] * c.groups, value.shape[0])
    config = QuantizedConvConfig(conv, value.shape, weight.packing, grids)
    inputs = (node.inputs[0], *weight.parts(original), rest)
    return QuantizedConv(original.name, inputs, original.outputs, config)


def parts(node: Node[Any], at: tuple[int, int, int], axis: int) -> tuple[Grids, Weight, Argument] | None:
    """The grids, the weight and the bias of an operator. at: the inputs with the result's scale and zero point, and the
    bias; axis: that of the weight's channels."""
    scale, zero, bias = at
    before, after = grid(node, 1, 2), grid(node, scale, zero)
    dq = DequantizeLinear(node.name, node.inputs[3:6], node.outputs, QuantizeConfig(axis, 0, None, True))
    if before is None or after is None or node.value(3) is None:
        return None
    weight = unpacked(dq, axis, True)
    if weight is None or weight.block is not None:
        return None
    if not node.has(bias):
        return Grids(before, after), weight, ABSENT
    whole = node.value(bias)
    channels = weight.scale.size
    if whole is None or whole.dtype is not dtypes.int32 or whole.size != channels or max(whole.shape) != channels:
        return None
    if bool((abs(whole.tensor().astype(dtypes.float64)) > float(EXACT)).any()):
        return None
    return Grids(before, after), weight, value_of(node.inputs[bias].name, real_bias(whole, weight.scale, before.scale))


def real_bias(bias: Value, scales: Value, scale: float) -> Value:
    """int32 multiples of the scales' products as float32."""

    def read() -> Tensor:
        found: Tensor = bias.tensor().reshape((-1,)).astype(dtypes.float32) * (scales.tensor() * scale)
        return found

    key = ("bias", bias.content(), scales.key(), scale)
    return made(key, bias.origin, dtypes.float32, (bias.size,), read)


def grid(node: Node[Any], scale: int, zero: int) -> Grid | None:
    """The grid that a scale and a zero point say, if both are constants of one element."""
    factor, point = node.value(scale), node.value(zero)
    if factor is None or point is None or factor.size != 1 or point.size != 1:
        return None
    if factor.dtype is not dtypes.float32 or point.dtype not in (dtypes.uint8, dtypes.int8):
        return None
    number, level = shortest(reshaped(factor, ())), shortest(reshaped(point, ()))
    if not isinstance(number, float) or not isinstance(level, int) or not 0.0 < number < float("inf"):
        return None
    return Grid(number, level, point.dtype)
