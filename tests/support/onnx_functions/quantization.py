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
