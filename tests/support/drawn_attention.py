"""Attention of drawn shapes, masks and heads, in one pass, against float64."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import emberlet
import numpy as np
from emberlet.functional.transformer.dot_product_attention import dot_product_attention
from emberlet.wgpu_backend.wasm.kernels import attention as kernel

Array = np.ndarray[Any, Any]
EPSILON = 2.0**-23


def expected(q: Array, k: Array, v: Array, bias: Array | None, scale: float, cap: float, sink: Array | None) -> Array:
    """Attention in float64; a query that sees no key gets 0."""
    groups = q.shape[1] // k.shape[1]
    wide = [np.repeat(a.astype(np.float64), n, 1) for a, n in ((q, 1), (k, groups), (v, groups))]
    scores = wide[0] @ wide[1].swapaxes(2, 3) * scale
    if cap:
        scores = cap * np.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    if sink is not None:
        column = np.broadcast_to(sink.astype(np.float64)[:, None, None], (*scores.shape[:3], 1))
        scores = np.concatenate([scores, column], 3)
    top = scores.max(3, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = weights.sum(3, keepdims=True)
    shares = weights / np.where(total == 0, 1, total)
    found: Array = shares[..., : k.shape[2]] @ wide[2]
    return found


def one_pass(*arguments: Any, **options: Any) -> Any:
    """`dot_product_attention` by its kernel also where that is not faster."""
    with patch.multiple(kernel, LEAST_ROWS=1, LEAST_KEYS=1, LEAST_WIDE_KEYS=1, LEAST_SCORES=1):
        found = dot_product_attention(*arguments, **options)
        np.asarray(found)
    return found


def attention(seed: int, backend: Any) -> None:
    """With masks, rows that see no key, NaN, shared heads, a limit of the scores, sinks."""
    choose, numbers = random.Random(seed), np.random.default_rng(seed)
    groups = choose.choice([1, 1, 2, 4])
    shared = choose.randint(1, 8 // groups)
    heads = groups * shared
    length, keys = (int(300 ** choose.random()) for _ in range(2))
    size, depth = (choose.randint(4, 80) for _ in range(2))
    batch = choose.choice([1, 1, 2])
    q, k, v = (
        numbers.standard_normal(shape).astype(np.float32)
        for shape in ((batch, heads, length, size), (batch, shared, keys, size), (batch, shared, keys, depth))
    )
    bias = None
    kind = choose.choice(["none", "causal", "mask", "bias"])
    if kind == "causal":
        bias = np.where(np.tri(length, keys, keys - length) > 0, 0, -np.inf)
    elif kind == "mask":
        bias = np.where(numbers.random((batch, 1, length, keys)) < choose.random(), 0, -np.inf)
        bias[:, :, length // 2] = -np.inf
    elif kind == "bias":
        bias = numbers.standard_normal((heads, 1, keys))
    if choose.random() < 0.2:
        q[0, -1, length - 1, 0] = np.nan
    sink = numbers.standard_normal(heads).astype(np.float32) if choose.random() < 0.2 else None
    cap = choose.choice([0.0, 0.0, 0.0, 2.0])
    scale = choose.choice([size**-0.5, 0.25])
    bias = None if bias is None else bias.astype(np.float32)
    want = expected(q, k, v, bias, scale, cap, sink)
    given = [None if a is None else emberlet.asarray(a, backend=backend) for a in (q, k, v, bias, sink)]
    found = one_pass(*given[:4], scale=scale, softcap=cap, sink=given[4])
    bound = 4 * EPSILON * (size + keys) ** 0.5 * max(1.0, float(np.nanmax(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), want, rtol=0, atol=bound)
