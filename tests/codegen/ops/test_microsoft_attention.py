"""Attention of com.microsoft against onnxruntime: layouts, masks and caches that the test models do not cover."""

from typing import Any

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.errors import ModelError
from support.contrib_node import check, fed, generated, levels, normal, number, one_node, reference

HEADS, SIZE = 4, 8
WIDTH = HEADS * SIZE
W, B = normal(1, WIDTH, 3 * WIDTH, scale=0.2), normal(2, 3 * WIDTH, scale=0.2)
FLOATS = (np.float32,) * 3


def ints(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    "mask",
    [
        ints([5, 3]),
        ints([5, 4, 0, 2]),  # ends, then starts
        ints([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]]),
        np.tril(np.ones((2, 5, 5), dtype=np.int32)),
    ],
    ids=["lengths", "ends_and_starts", "keys", "queries_and_keys"],
)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_each_kind_of_mask(mask: np.ndarray, causal: int) -> None:
    check("Attention", [normal(3, 2, 5, WIDTH), W, B, mask], constants=(1, 2), num_heads=HEADS, unidirectional=causal)


def test_attention_with_weights_that_are_inputs_and_no_bias() -> None:
    x = normal(3, 2, 5, WIDTH)
    want = plain("Attention", [x, W, np.zeros_like(B)], num_heads=HEADS)  # which wants a bias
    check("Attention", [x, W], want=want, num_heads=HEADS)


def test_attention_returns_keys_and_values_without_a_past() -> None:
    check("Attention", [normal(3, 2, 5, WIDTH), W, B], results=FLOATS[:2], num_heads=HEADS)


def test_attention_with_past_and_mask() -> None:
    past, mask = normal(4, 2, 2, HEADS, 3, SIZE), ints(np.ones((2, 8)))
    mask[1, :2] = 0
    check("Attention", [normal(3, 2, 5, WIDTH), W, B, mask, past], results=FLOATS[:2], num_heads=HEADS)


def qkv(t: int, s: int, v_width: int = WIDTH) -> list[np.ndarray]:
    return [normal(6, 2, t, WIDTH), normal(7, 2, s, WIDTH), normal(8, 2, s, v_width)]


@pytest.mark.parametrize(
    "mask", [ints([6, 4]), ints([[1] * 6, [0, 1, 1, 1, 1, 0]]), ints(np.tri(4, 6, 2)[None].repeat(2, 0))]
)
def test_multi_head_attention_with_each_kind_of_mask(mask: np.ndarray) -> None:
    check("MultiHeadAttention", [*qkv(4, 6), None, mask], num_heads=HEADS, mask_filter_value=-1e4)


@pytest.mark.parametrize("value", [-10000.0, -2.0, 0.0])
@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_what_is_added_where_a_mask_hides_a_key(value: float, scale: float) -> None:
    """A value near 0 hides little, so the result shows which one was used."""
    given = {"num_heads": HEADS, "mask_filter_value": value, "scale": scale}
    mask = ints([[1] * 5, [0, 1, 1, 1, 0]])
    check("MultiHeadAttention", [*qkv(5, 5), None, mask], **given)
    check("Attention", [normal(3, 2, 5, WIDTH), W, B, mask], constants=(1, 2), **given)


def test_multi_head_attention_returns_keys_and_values() -> None:
    check("MultiHeadAttention", qkv(5, 5), results=FLOATS, num_heads=HEADS)


def test_multi_head_attention_with_values_of_another_width() -> None:
    bias = normal(9, 2 * WIDTH + 16)
    check("MultiHeadAttention", [*qkv(5, 5, 16), bias], constants=(3,), num_heads=HEADS, scale=0.2)


def test_multi_head_attention_on_queries_keys_and_values_packed_together() -> None:
    packed = normal(10, 2, 5, HEADS, 3, SIZE)
    parts = [np.ascontiguousarray(packed[:, :, :, i]).reshape(2, 5, WIDTH) for i in range(3)]
    want = plain("MultiHeadAttention", parts, num_heads=HEADS)
    check("MultiHeadAttention", [packed], want=want, num_heads=HEADS)


def test_multi_head_attention_on_keys_and_values_packed_together() -> None:
    packed = normal(10, 2, 5, HEADS, 2, SIZE)
    parts = [np.ascontiguousarray(packed[:, :, :, i]).reshape(2, 5, WIDTH) for i in range(2)]
    q = normal(6, 2, 4, WIDTH)
    want = plain("MultiHeadAttention", [q, *parts], num_heads=HEADS)
    check("MultiHeadAttention", [q, packed], want=want, num_heads=HEADS)


def plain(op: str, inputs: list[np.ndarray], **attributes: Any) -> list[np.ndarray]:
    """onnxruntime's first output."""
    return reference(one_node(op, inputs, FLOATS[:1], **attributes), fed(inputs))


@pytest.mark.parametrize("past", [False, True])
def test_attention_with_a_quantized_projection(past: bool) -> None:
    x, w = levels(60, 2, 5, WIDTH), levels(61, WIDTH, 3 * WIDTH, dtype=np.int8)
    scales, points = [number(0.01), number(0.004)], [number(128, np.uint8), number(0, np.int8)]
    mask = ints([8, 6]) if past else ints([5, 3])
    inputs = [x, w, B, *scales, mask, *points, *([normal(62, 2, 2, HEADS, 3, SIZE)] if past else [])]
    results = FLOATS[: 1 + past]
    check(
        "QAttention", inputs, constants=(1, 2, 3, 4, 6, 7), results=results, num_heads=HEADS, unidirectional=int(past)
    )


KV_HEADS, GQA_SIZE = 2, 16


def grouped(batch: int, new: int, past: int, seed: int = 20) -> list[np.ndarray | None]:
    return [
        normal(seed, batch, new, HEADS * GQA_SIZE),
        normal(seed + 1, batch, new, KV_HEADS * GQA_SIZE),
        normal(seed + 2, batch, new, KV_HEADS * GQA_SIZE),
        normal(seed + 3, batch, KV_HEADS, past, GQA_SIZE),
        normal(seed + 4, batch, KV_HEADS, past, GQA_SIZE),
    ]


ANGLES = normal(30, 32, GQA_SIZE // 2)
CACHES = [np.cos(ANGLES), np.sin(ANGLES)]


def check_grouped(inputs: list[np.ndarray | None], **attributes: Any) -> None:
    given: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, **attributes}
    check("GroupQueryAttention", inputs, results=FLOATS, **given)


def both(inputs: list[np.ndarray | None], **attributes: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(results of the generated code, results of onnxruntime)."""
    given: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, **attributes}
    model = one_node("GroupQueryAttention", inputs, FLOATS, **given)
    return generated(model, fed(inputs)), reference(model, fed(inputs))


def test_group_query_attention_steps_through_a_batch_of_different_lengths() -> None:
    """The cache has its final length; each sequence's new key goes to its own position."""
    found, want = both([*grouped(2, 1, 10), ints([3, 6]), ints([7]), *CACHES], do_rotary=1)
    np.testing.assert_allclose(found[0], want[0], atol=1e-5)
    for got, expected in zip(found[1:], want[1:], strict=True):
        for b, n in enumerate((4, 7)):  # elements past a sequence's end are unused
            np.testing.assert_allclose(got[b, :, :n], expected[b, :, :n], atol=1e-6)


def test_group_query_attention_with_a_prompt_of_two_lengths() -> None:
    found, want = both([*grouped(2, 5, 0), ints([4, 2]), ints([5])])
    for b, n in enumerate((5, 3)):
        np.testing.assert_allclose(found[0][b, :n], want[0][b, :n], atol=1e-5)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_group_query_attention_sees_a_window(window: int) -> None:
    check_grouped([*grouped(1, 1, 6), ints([6]), ints([7])], local_window_size=window)
    check_grouped([*grouped(1, 6, 0), ints([5]), ints([6])], local_window_size=window)


def test_group_query_attention_with_a_bias_and_room_in_the_cache() -> None:
    bias = normal(43, 1, 1, 1, 7)
    found, want = both([*grouped(1, 1, 10), ints([6]), ints([7]), None, None, None, bias])
    np.testing.assert_allclose(found[0], want[0], atol=1e-5)


GROUPED: dict[str, tuple[list[np.ndarray | None], dict[str, Any]]] = {
    "a bias on the scores": (
        [*grouped(1, 5, 0), ints([4]), ints([5]), None, None, None, normal(40, 1, HEADS, 5, 5)], {"softcap": 3.0},
    ),
    "sinks": ([*grouped(1, 5, 0), ints([4]), ints([5]), *[None] * 4, normal(41, HEADS)], {}),
    "a smooth softmax": ([*grouped(1, 1, 4), ints([4]), ints([5])], {"smooth_softmax": 1}),
    "several new tokens": ([*grouped(1, 3, 4), ints([6]), ints([7]), *CACHES], {"do_rotary": 1}),
}  # fmt: skip


@pytest.mark.parametrize("what", GROUPED)
def test_group_query_attention_with(what: str) -> None:
    inputs, attributes = GROUPED[what]
    check_grouped(inputs, **attributes)


def test_group_query_attention_normalizes_queries_and_keys() -> None:
    inputs = [*grouped(1, 5, 0), ints([4]), ints([5]), *CACHES]
    weights = [normal(42 + i, GQA_SIZE) for i in range(2)]

    def normalized(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        heads = x.reshape(1, 5, -1, GQA_SIZE)
        return (heads / np.sqrt(np.mean(heads**2, -1, keepdims=True) + 1e-3) * weight).reshape(x.shape)

    (plain_q, plain_k), rest = inputs[:2], inputs[2:]
    given: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "do_rotary": 1}
    before = [normalized(plain_q, weights[0]), normalized(plain_k, weights[1]), *rest]
    want = reference(one_node("GroupQueryAttention", before, FLOATS, **given), fed(before))
    inputs = [*inputs, *[None] * 5, *weights]
    check("GroupQueryAttention", inputs, results=FLOATS, want=want, qk_norm_epsilon=1e-3, **given)


def test_rotary_embedding_on_heads_apart() -> None:
    x, positions = normal(50, 2, HEADS, 5, GQA_SIZE), np.array([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    check("RotaryEmbedding", [x, positions, *CACHES], constants=(2, 3), interleaved=1)


def test_rotary_embedding_counts_from_one_position() -> None:
    check("RotaryEmbedding", [normal(50, 2, 5, WIDTH), np.array([3]), *[c[:, :4] for c in CACHES]])


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"do_rotary": 1}, "do_rotary"),
        ({"past_present_share_buffer": 1}, "past_present_share_buffer"),
        ({"surprise": 1}, "'surprise', which is not known"),
    ],
)
def test_what_is_not_supported_is_named(attributes: dict[str, int], said: str) -> None:
    model = one_node("Attention", [normal(3, 2, 5, WIDTH), W], FLOATS[:1], num_heads=HEADS, **attributes)
    with pytest.raises(ModelError, match=said):
        load(model)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"qk_output": 1}, "attribute 'qk_output' is 1; supported is 0"),
        ({"sliding_window_cache": 1}, "attribute 'sliding_window_cache' is 1; supported is 0"),
        ({"k_quant_type": "PER_TENSOR"}, "attribute 'k_quant_type' is 'PER_TENSOR', expected one of NONE"),
        ({"v_quant_type": "PER_CHANNEL"}, "attribute 'v_quant_type' is 'PER_CHANNEL', expected one of NONE"),
        ({"surprise": 1}, "'surprise', which is not known"),
    ],
)
def test_grouped_attention_that_is_not_computed_is_refused(attributes: dict[str, Any], said: str) -> None:
    heads = [normal(i, 1, 3, n * GQA_SIZE) for i, n in enumerate((HEADS, KV_HEADS, KV_HEADS))]
    inputs = [*heads, None, None, np.array([2], np.int32), np.array(3, np.int32)]
    with pytest.raises(ModelError, match=said):
        load(one_node("GroupQueryAttention", inputs, FLOATS[:1], num_heads=HEADS, kv_num_heads=KV_HEADS, **attributes))


def test_too_few_inputs_are_counted() -> None:
    with pytest.raises(ModelError, match=r"1.*expected 2.*7"):
        load(one_node("Attention", [normal(3, 2, 5, WIDTH)], FLOATS[:1], num_heads=HEADS))
