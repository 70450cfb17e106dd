"""onnxruntime's fused attentions, in layouts and with masks that the committed models do not cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import IndexingError
from support.backends import tensor
from support.every_backend import EVERY
from support.onnxruntime_node import run_node

BATCH, HEADS, SHARED, SIZE = 2, 4, 2, 16


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tensors(backend: str, *arrays: Any) -> list[Any]:
    return [None if a is None else tensor(a, backend) for a in arrays]


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


def apart(packed: Any) -> list[Any]:
    """(batch, length, heads, parts, size) as (batch, length, heads * size) arrays, as onnxruntime's CPU requires."""
    batch, length, heads, parts, size = packed.shape
    return [np.ascontiguousarray(packed[:, :, :, i]).reshape(batch, length, heads * size) for i in range(parts)]


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("masked", [False, True])
def test_queries_keys_and_values_packed_in_one(masked: bool, backend: str) -> None:
    qkv, bias = normal(1, BATCH, 5, HEADS, 3, SIZE), normal(4, 3 * HEADS * SIZE)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32) if masked else None
    expected = run_node("MultiHeadAttention", [*apart(qkv), bias, mask], domain="com.microsoft", num_heads=HEADS)
    t, b, m = tensors(backend, qkv, bias, mask)
    agree(F.multi_head_attention(t, bias=b, mask=m, num_heads=HEADS)[0], expected[0])


def test_keys_and_values_packed_in_one() -> None:
    q, kv, bias = normal(2, BATCH, 3, HEADS * SIZE), normal(3, BATCH, 6, HEADS, 2, SIZE), normal(4, 3 * HEADS * SIZE)
    expected = run_node("MultiHeadAttention", [q, *apart(kv), bias], domain="com.microsoft", num_heads=HEADS)
    tq, tkv, tb = tensors("numpy", q, kv, bias)
    agree(F.multi_head_attention(tq, tkv, bias=tb, num_heads=HEADS)[0], expected[0])


@pytest.mark.parametrize(
    "mask",
    [
        np.array([4, 2], np.int32),
        np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32),
        (np.arange(24).reshape(2, 3, 4) % 5 != 0).astype(np.int32),
    ],
    ids=["lengths", "keys", "queries and keys"],
)
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_of_integers(mask: Any, causal: int) -> None:
    q, k, v = normal(5, BATCH, 3, HEADS * SIZE), normal(6, BATCH, 4, HEADS * SIZE), normal(7, BATCH, 4, HEADS * SIZE)
    if causal:
        k, v = k[:, :3], v[:, :3]
        mask = mask[..., :3] if mask.ndim > 1 else np.minimum(mask, 3)
    inputs = [q, np.ascontiguousarray(k), np.ascontiguousarray(v), None, np.ascontiguousarray(mask)]
    expected = run_node("MultiHeadAttention", inputs, domain="com.microsoft", num_heads=HEADS, unidirectional=causal)
    q, k, v, _, m = tensors("numpy", *inputs)
    agree(F.multi_head_attention(q, k, v, mask=m, num_heads=HEADS, is_causal=causal)[0], expected[0])


@pytest.mark.parametrize("backend", EVERY)
def test_queries_before_the_first_key_see_none(backend: str) -> None:
    q, k, v = tensors(backend, normal(0, 1, 3, 4), normal(1, 1, 1, 4), normal(2, 1, 1, 2))
    found = np.asarray(F.multi_head_attention(q, k, v, num_heads=2, is_causal=True)[0])
    wanted = np.zeros((1, 3, 2), np.float32)
    wanted[:, 2:] = np.asarray(v)
    np.testing.assert_array_equal(found, wanted)


def test_self_attention_takes_ends_and_starts() -> None:
    x, weight, bias = normal(8, BATCH, 5, 32), normal(9, 32, 96) * 0.2, normal(10, 96) * 0.2
    mask = np.array([5, 4, 1, 0], np.int32)
    expected = run_node("Attention", [x, weight, bias, mask], domain="com.microsoft", num_heads=HEADS)
    tx, tw, tb, tm = tensors("numpy", x, weight, bias, mask)
    agree(F.self_attention(tx, tw, tb, tm, num_heads=HEADS)[0], expected[0])


def grouped(past: int, new: int, lengths: list[int], **attributes: Any) -> None:
    """A decoder's call with a cache of `past` positions, of which each sequence uses its own number."""
    angle = np.arange(32)[:, None] * 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    sink = attributes.pop("sink", None)
    inputs = [
        normal(11, BATCH, new, HEADS * SIZE),
        normal(12, BATCH, new, SHARED * SIZE),
        normal(13, BATCH, new, SHARED * SIZE),
        normal(14, BATCH, SHARED, past, SIZE),
        normal(15, BATCH, SHARED, past, SIZE),
        np.array(lengths, np.int32) - 1,
        np.array([max(lengths)], np.int32),
        cos,
        sin,
        None,
        None,
        sink,
    ]
    expected = run_node(
        "GroupQueryAttention",
        inputs[: 12 if sink is not None else 9],
        3,
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=SHARED,
        do_rotary=1,
        **attributes,
    )
    for backend in ("python", "numpy"):
        t = tensors(backend, *inputs)
        found = F.group_query_attention(
            *t[:6],
            max(lengths),
            t[7],
            t[8],
            sink=t[11],
            num_heads=HEADS,
            kv_num_heads=SHARED,
            window=attributes.get("local_window_size", -1),
            softcap=attributes.get("softcap", 0.0),
        )
        agree(found[0], expected[0])
        for cache, wanted in zip(found[1:], expected[1:], strict=True):
            assert cache.shape == wanted.shape
            for i, n in enumerate(lengths):  # the rows after it are undefined
                np.testing.assert_allclose(np.asarray(cache)[i, :, :n], wanted[i, :, :n], rtol=1e-4, atol=1e-5)


def test_each_sequence_goes_on_where_it_ended() -> None:
    grouped(6, 1, [5, 3])
    grouped(6, 1, [7, 4])


def test_a_first_call_with_an_empty_cache() -> None:
    grouped(0, 4, [4, 4])


def test_a_window_over_a_cache() -> None:
    grouped(6, 1, [7, 7], local_window_size=3)


def test_a_sink_takes_its_share() -> None:
    grouped(6, 1, [7, 7], sink=normal(16, HEADS))


@pytest.mark.parametrize("backend", EVERY)
def test_a_cache_of_integers_is_attended_as_floats(backend: str) -> None:
    q, k, v, last = normal(1, 1, 2, 4), normal(2, 1, 2, 2), np.float32([[[3, -2], [1, 4]]]), np.array([3])
    past, values = normal(4, 1, 1, 4, 2), np.arange(8, dtype=np.int32).reshape(1, 1, 4, 2)
    heads = {"num_heads": 2, "kv_num_heads": 1}
    y, _, present = F.group_query_attention(*tensors(backend, q, k, v, past, values, last), 4, **heads)
    same, *_ = F.group_query_attention(*tensors("numpy", q, k, v, past, values.astype(np.float32), last), 4, **heads)
    agree(y, np.asarray(same))
    np.testing.assert_array_equal(np.asarray(present)[0, 0], [[0, 1], [2, 3], [3, -2], [1, 4]])


@pytest.mark.parametrize("backend", EVERY)
def test_a_last_key_beyond_the_cache_is_refused(backend: str) -> None:
    q, k, past = normal(1, 1, 1, 4), normal(2, 1, 1, 2), normal(4, 1, 1, 3, 2)
    with pytest.raises(IndexingError, match=r"index 9.*axis 2.*length 3"):
        F.group_query_attention(*tensors(backend, q, k, k, past, past, np.array([9])), 3, num_heads=2, kv_num_heads=1)
