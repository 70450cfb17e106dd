"""attention, flex_attention, rotary_embedding and linear_attention in cases that ONNX's own do not cover."""

from __future__ import annotations

import tracemalloc
from typing import Any

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import ShapeError
from support.backends import array, tensor


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


Q, K, V = normal(1, 2, 4, 3, 8), normal(2, 2, 2, 5, 8), normal(3, 2, 2, 5, 6)


def test_a_query_that_sees_nothing_gives_zeros(backend: Any) -> None:
    mask = np.ones((3, 5), bool)
    mask[1] = False
    out = array(F.attention(tensor(Q), tensor(K), tensor(V), tensor(mask)))
    assert (out[:, :, 1] == 0).all()
    assert np.isfinite(out).all()
    scores = F.attention_outputs(tensor(Q), tensor(K), tensor(V), tensor(mask), scores_output=3)[3]
    assert (array(scores)[:, :, 1] == 0).all()


def test_a_short_mask_hides_the_rest(backend: Any) -> None:
    short, full = np.ones((3, 2), bool), np.arange(5) < 2
    one = F.attention(tensor(Q), tensor(K), tensor(V), tensor(short))
    two = F.attention(tensor(Q), tensor(K), tensor(V), tensor(full))
    np.testing.assert_allclose(array(one), array(two), rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "lengths"),
    [
        ("int64", (1 << 40, (1 << 63) - 1, 3, 0, -(1 << 33) + 2)),
        ("uint32", (1 << 31, (1 << 32) - 1, 3, 0, 1)),
        ("uint64", (1 << 31, (1 << 64) - 1, 3, 0, 1)),
        ("int32", (5, (1 << 31) - 1, 3, 0, -2)),
        ("uint8", (5, 255, 3, 0, 1)),
    ],
)
def test_a_length_hides_the_keys_behind_it_however_large_it_is(backend: Any, dtype: str, lengths: Any) -> None:
    q, k, v = normal(1, 5, 1, 2, 4), normal(2, 5, 1, 5, 4), normal(3, 5, 1, 5, 4)
    given = np.array(lengths, dtype)
    seen = np.array([[j < n for j in range(5)] for n in lengths]).reshape(5, 1, 1, 5)
    tensors = [tensor(x) for x in (q, k, v, given, seen)]
    got, want = F.attention(*tensors[:3], kv_lengths=tensors[3]), F.attention(*tensors[:3], tensors[4])
    assert np.array_equal(array(got), array(want))


def test_step_by_step_equals_all_at_once(backend: Any) -> None:
    q, k, v = normal(4, 1, 4, 6, 8), normal(5, 1, 2, 6, 8), normal(6, 1, 2, 6, 8)
    whole = array(F.attention(tensor(q), tensor(k), tensor(v), is_causal=True))
    past_key, past_value = tensor(k[:, :, :0]), tensor(v[:, :, :0])
    for t in range(6):
        now = [tensor(a[:, :, t : t + 1]) for a in (q, k, v)]
        out, past_key, past_value, _ = F.attention_outputs(
            *now, past_key=past_key, past_value=past_value, is_causal=True
        )
        np.testing.assert_allclose(array(out)[:, :, 0], whole[:, :, t], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(array(past_key), k)


def test_a_window_is_a_mask(backend: Any) -> None:
    q, k, v = normal(4, 1, 2, 6, 8), normal(5, 1, 2, 6, 8), normal(6, 1, 2, 6, 8)
    i, j = np.ogrid[:6, :6]
    mask = (j >= i - 2) & (j <= i + 1)
    one = F.attention(tensor(q), tensor(k), tensor(v), window=(2, 1))
    two = F.attention(tensor(q), tensor(k), tensor(v), tensor(mask))
    np.testing.assert_allclose(array(one), array(two), rtol=1e-5, atol=1e-6)


def test_a_window_of_earlier_keys_only_gives_the_first_query_no_keys(backend: Any) -> None:
    q, k, v = Q, np.repeat(K, 2, axis=1)[:, :, :3], np.repeat(V, 2, axis=1)[:, :, :3]
    found = F.attention_outputs(tensor(q), tensor(k), tensor(v), window=(None, -1), scores_output=3)
    assert not array(found[0])[:, :, 0].any() and not array(found[3])[:, :, 0].any()
    expected = softmax(np.where(np.tri(3, k=-1) > 0, q @ k.swapaxes(2, 3) / np.sqrt(8), -np.inf)[:, :, 1:]) @ v
    np.testing.assert_allclose(array(found[0])[:, :, 1:], expected, rtol=1e-5, atol=1e-6)


def test_flex_attention_calls_its_functions(backend: Any) -> None:
    plain = array(F.attention(tensor(Q), tensor(K), tensor(V)))
    np.testing.assert_allclose(array(F.flex_attention(tensor(Q), tensor(K), tensor(V))), plain, rtol=1e-5, atol=1e-6)
    capped = F.flex_attention(tensor(Q), tensor(K), tensor(V), lambda s: F.tanh(s / 2.0) * 2.0, lambda p: p * 0.5)
    expected = F.attention(tensor(Q), tensor(K), tensor(V), softcap=2.0) * 0.5
    np.testing.assert_allclose(array(capped), array(expected), rtol=1e-5, atol=1e-6)


def test_linear_attention_goes_on_from_its_state(backend: Any) -> None:
    q, k, v = normal(1, 1, 6, 8), normal(2, 1, 6, 4), normal(3, 1, 6, 6)
    decay, beta = -abs(normal(4, 1, 6, 1)), abs(normal(5, 1, 6, 1))

    def run(part: slice, state: Any) -> Any:
        q_, k_, v_, d, b = (tensor(np.ascontiguousarray(a[:, part])) for a in (q, k, v, decay, beta))
        return F.linear_attention(q_, k_, v_, state, d, b, num_heads=2, kv_num_heads=1)

    whole, last = run(slice(None), None)
    first, state = run(slice(0, 4), None)
    second, end = run(slice(4, 6), state)
    np.testing.assert_allclose(np.concatenate([array(first), array(second)], 1), array(whole), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(array(end), array(last), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("heads", "length", "limit"), [(8, 1024, 6 << 20), (64, 256, 12 << 20)])
def test_scores_of_long_sequences_are_never_held_all_at_once(heads: int, length: int, limit: int) -> None:
    """Query heads that share one key head would have 32 or 64 MB of scores for 1024 rows."""
    q = tensor(normal(1, 1, heads, 1024, 8), "numpy")
    k, v = (tensor(normal(n, 1, 1, length, 8), "numpy") for n in (2, 3))
    F.attention(q, k, v)  # imports
    tracemalloc.start()
    try:
        out = F.attention(q, k, v)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.shape == (1, heads, 1024, 8)
    assert peak < limit, peak


@pytest.mark.parametrize("shape", [(3, 8), (1, 3, 8), (4, 3, 8)])
def test_a_mask_for_each_head_is_refused(shape: tuple[int, ...]) -> None:
    mask = el.zeros((2, 3, 3), dtype="bool")
    with pytest.raises(ShapeError, match="the same for all heads"):
        nn.MultiHeadAttention(8, 2)(el.zeros(shape), mask_attn=mask)
