"""Attention in ONNX and com.microsoft, and rotary positions."""

from __future__ import annotations

from typing import Any

import onnx
from emberlet import functional as F

from .call import Call, handles


def _dtype(code: int | None) -> str | None:
    return None if code is None else onnx.helper.tensor_dtype_to_np_dtype(code).name


def _side(value: int) -> int | None:
    return None if value < 0 else value


@handles("Attention")
def attention(c: Call) -> Any:
    outputs = F.attention_outputs(
        *c.tensors()[:4],
        past_key=c.tensor(4),
        past_value=c.tensor(5),
        kv_lengths=c.tensor(6),
        is_causal=c.get("is_causal", 0),
        scale=c.get("scale"),
        softcap=c.get("softcap", 0.0),
        num_heads=c.get("q_num_heads"),
        kv_num_heads=c.get("kv_num_heads"),
        window=(_side(c.get("left_window_size", -1)), _side(c.get("right_window_size", -1))),
        softmax_dtype=_dtype(c.get("softmax_precision")),
        scores_output=c.get("qk_matmul_output_mode", 0) if c.wants(3) else None,
    )
    return [x if c.wants(i) else None for i, x in enumerate(outputs)]


@handles("RotaryEmbedding")
def rotary_embedding(c: Call) -> Any:
    return F.rotary_embedding(
        *c.tensors(),
        interleaved=c.get("interleaved", 0),
        rotary_dim=c.get("rotary_embedding_dim", 0),
        num_heads=c.get("num_heads"),
    )


@handles("com.microsoft.RotaryEmbedding")
def rotary_embedding_contrib(c: Call) -> Any:
    x, position, cos, sin = c.tensors()
    return F.rotary_embedding(
        x,
        cos,
        sin,
        position,
        interleaved=c.get("interleaved", 0),
        rotary_dim=c.get("rotary_embedding_dim", 0),
        num_heads=c.get("num_heads"),
    )
