"""Quantized operators."""

from __future__ import annotations

from typing import Any

import onnx
from emberlet import functional as F

from .call import Call, handles


def _dtype(code: int | None) -> str | None:
    return onnx.helper.tensor_dtype_to_np_dtype(code).name if code else None


@handles("QuantizeLinear")
def quantize_linear(c: Call) -> Any:
    return F.quantize_linear(
        *c.tensors(),
        axis=c.get("axis", 1),
        block_size=c.get("block_size", 0),
        dtype=_dtype(c.get("output_dtype", 0)),
        saturate=bool(c.get("saturate", 1)),
    )


@handles("DequantizeLinear")
def dequantize_linear(c: Call) -> Any:
    return F.dequantize_linear(
        *c.tensors(),
        axis=c.get("axis", 1),
        block_size=c.get("block_size", 0),
        dtype=_dtype(c.get("output_dtype", 0)),
    )


@handles("DynamicQuantizeLinear")
def dynamic_quantize_linear(c: Call) -> Any:
    return F.dynamic_quantize_linear(c.tensor(0))


@handles("MatMulInteger")
def matmul_integer(c: Call) -> Any:
    return F.matmul_integer(*c.tensors())


def _conv(c: Call, weight: int) -> dict[str, Any]:
    spatial = len(c.arrays[0].shape) - 2  # type: ignore[union-attr]
    padding: Any = c.pads(spatial)
    if c.get("auto_pad", "NOTSET") == "SAME_UPPER":
        padding = "same"
    return {
        "stride": c.get("strides", 1),
        "dilation": c.get("dilations", 1),
        "groups": c.get("group", 1),
        "padding": padding,
    }


@handles("ConvInteger")
def conv_integer(c: Call) -> Any:
    return F.conv_integer(*c.tensors(), **_conv(c, 1))


@handles("QLinearMatMul")
def qlinear_matmul(c: Call) -> Any:
    return F.qlinear_matmul(*c.tensors())


@handles("QLinearConv")
def qlinear_conv(c: Call) -> Any:
    return F.qlinear_conv(*c.tensors(), **_conv(c, 3))


@handles("com.microsoft.MatMulIntegerToFloat")
def matmul_integer_to_float(c: Call) -> Any:
    return F.matmul_integer_to_float(*c.tensors())


@handles("com.microsoft.DynamicQuantizeMatMul")
def dynamic_quantize_matmul(c: Call) -> Any:
    return F.dynamic_quantize_matmul(*c.tensors())


@handles("com.microsoft.QGemm")
def qgemm(c: Call) -> Any:
    return F.qgemm(*c.tensors(), alpha=c.get("alpha", 1.0), trans_a=c.get("transA", 0), trans_b=c.get("transB", 0))


@handles("com.microsoft.MatMulNBits")
def matmul_nbits(c: Call) -> Any:
    return F.matmul_nbits(
        *c.tensors(), rows=c.get("K"), columns=c.get("N"), bits=c.get("bits", 4), block_size=c.get("block_size")
    )


@handles("com.microsoft.GatherBlockQuantized")
def gather_block_quantized(c: Call) -> Any:
    return F.gather_block_quantized(
        *c.tensors(),
        gather_axis=c.get("gather_axis", 0),
        quantize_axis=c.get("quantize_axis", 1),
        block_size=c.get("block_size", 128),
        bits=c.get("bits", 4),
    )


@handles("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def qlinear_binary(c: Call) -> Any:
    t = c.tensors()
    return F.qlinear(F.add if "Add" in c.node.op_type else F.multiply, [t[:3], t[3:6]], *t[6:])


def _pool(c: Call, x: Any) -> Any:
    if c.get("channels_last", 0):
        x = x.moveaxis(-1, 1)
    out = F.avg_pool(
        x,
        c.get("kernel_shape"),
        c.get("strides"),
        c.pads(2),
        ceil_mode=bool(c.get("ceil_mode", 0)),
        count_include_pad=bool(c.get("count_include_pad", 0)),
    )
    return out.moveaxis(1, -1) if c.get("channels_last", 0) else out


@handles(
    *("com.microsoft.QLinear" + op for op in ("Sigmoid", "LeakyRelu", "Softmax", "AveragePool", "GlobalAveragePool"))
)
def qlinear_one(c: Call) -> Any:
    functions = {
        "QLinearSigmoid": F.sigmoid,
        "QLinearLeakyRelu": lambda x: F.leaky_relu(x, c.get("alpha", 0.01)),
        "QLinearSoftmax": lambda x: F.softmax(x, c.get("axis", -1)),
        "QLinearAveragePool": lambda x: _pool(c, x),
        "QLinearGlobalAveragePool": F.global_avg_pool,
    }
    t = c.tensors()
    return F.qlinear(functions[c.node.op_type], [t[:3]], *t[3:])


@handles("com.microsoft.QLinearConcat")
def qlinear_concat(c: Call) -> Any:
    scale, zero, *rest = c.tensors()
    inputs = [rest[i : i + 3] for i in range(0, len(rest), 3)]
    return F.qlinear(lambda *x: F.concat(x, c.get("axis")), inputs, scale, zero)
