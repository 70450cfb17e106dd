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


@handles("com.microsoft.Attention")
def self_attention(c: Call) -> Any:
    x, weight, bias, mask, past, score_bias = (c.tensor(i) for i in range(6))
    return F.self_attention(
        x,
        weight,
        bias,
        mask,
        past,
        score_bias,
        num_heads=c.get("num_heads"),
        qkv_sizes=c.get("qkv_hidden_sizes"),
        is_causal=c.get("unidirectional", 0),
        scale=c.get("scale"),
        mask_filter_value=c.get("mask_filter_value", -10000.0),
    )


@handles("com.microsoft.MultiHeadAttention")
def multi_head_attention(c: Call) -> Any:
    return F.multi_head_attention(
        *(c.tensor(i) for i in range(8)),
        num_heads=c.get("num_heads"),
        scale=c.get("scale"),
        is_causal=c.get("unidirectional", 0),
        mask_filter_value=c.get("mask_filter_value", -10000.0),
    )


@handles("com.microsoft.GroupQueryAttention")
def group_query_attention(c: Call) -> Any:
    rotary = c.get("do_rotary", 0)
    return F.group_query_attention(
        *(c.tensor(i) for i in range(6)),
        c.value(6),
        c.tensor(7) if rotary else None,
        c.tensor(8) if rotary else None,
        *(c.tensor(i) for i in range(9, 12)),
        num_heads=c.get("num_heads"),
        kv_num_heads=c.get("kv_num_heads"),
        scale=c.get("scale"),
        softcap=c.get("softcap", 0.0),
        window=c.get("local_window_size", -1),
        interleaved=c.get("rotary_interleaved", 0),
    )


@handles("LinearAttention")
def linear_attention(c: Call) -> Any:
    q, k, v, state, decay, beta = (c.tensor(i) for i in range(6))
    return F.linear_attention(
        q,
        k,
        v,
        state,
        decay,
        beta,
        num_heads=c.get("q_num_heads"),
        kv_num_heads=c.get("kv_num_heads"),
        scale=c.get("scale", 0.0),
        update_rule=c.get("update_rule", "gated_delta"),
    )


@handles("CausalConvWithState")
def causal_conv(c: Call) -> Any:
    return F.causal_conv(*(c.tensor(i) for i in range(4)), c.get("activation", "none"))


@handles("SwiGLU")
def swiglu(c: Call) -> Any:
    return F.swiglu(*c.tensors(), alpha=c.get("alpha", 1.0))
