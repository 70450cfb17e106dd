"""Single com.microsoft operators of language models: attention in its forms, rotary positions, weights of few bits."""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from .contrib import FLOAT, contrib
from .recipe import Inputs, normal, rng

HEADS, SIZE = 4, 8
WIDTH = HEADS * SIZE
PROJECTION = {"w": normal(80, WIDTH, 3 * WIDTH, scale=0.2), "b": normal(81, 3 * WIDTH, scale=0.2)}


def _x(extra: Mapping[str, object] | None = None) -> Mapping[str, Inputs]:
    """x (batch, length, 32) in two sizes; `extra` gives further inputs, each a function of batch and length."""
    return {
        f"batch{n}_length{t}": {
            "x": normal(t, n, t, WIDTH),
            **{name: make(n, t) for name, make in (extra or {}).items()},  # type: ignore[operator]
        }
        for n, t in ((1, 3), (2, 5))
    }


def _lengths(n: int, t: int) -> np.ndarray:
    """How many keys of each sequence are valid."""
    return np.array([t, t - 2], dtype=np.int32)[:n]


def _mask(n: int, t: int) -> np.ndarray:
    return (np.arange(t) < _lengths(n, t)[:, None]).astype(np.int32)


def _past(n: int, t: int) -> np.ndarray:
    return normal(30 + t, 2, n, HEADS, 4, SIZE)


ATTENTION = [
    contrib(
        "attention", "projection and multi-head self-attention in one node", "Attention", ["x", "w", "b"], _x(),
        PROJECTION, num_heads=HEADS,
    ),
    contrib(
        "attention_lengths", "keys beyond each sequence's length are masked out", "Attention", ["x", "w", "b", "mask"],
        _x({"mask": _lengths}), PROJECTION, num_heads=HEADS,
    ),
    contrib(
        "attention_mask", "a mask of ones and zeros per key, a scale of one's own", "Attention",
        ["x", "w", "b", "mask"], _x({"mask": _mask}), PROJECTION, num_heads=HEADS, scale=0.5, mask_filter_value=-1000.0,
    ),
    contrib(
        "attention_causal_past", "causal, with the keys and values of earlier calls, which come out extended",
        "Attention", ["x", "w", "b", "", "past"], _x({"past": _past}), PROJECTION, [("y", FLOAT), ("present", FLOAT)],
        num_heads=HEADS, unidirectional=1,
    ),
    contrib(
        "attention_bias",
        "a number added to each score; value heads narrower than query heads",
        "Attention",
        ["x", "w", "b", "", "", "bias"],
        _x({"bias": lambda n, t: normal(60 + t, n, HEADS, t, t)}),
        {"w": normal(82, WIDTH, 2 * WIDTH + 16, scale=0.2), "b": normal(83, 2 * WIDTH + 16, scale=0.2)},
        num_heads=HEADS,
        qkv_hidden_sizes=[WIDTH, WIDTH, 16],
    ),
]  # fmt: skip


def _qkv(source: int = 0) -> Mapping[str, Inputs]:
    """query, key and value (batch, length, 32); keys and values may have a length of their own."""
    return {
        f"batch{n}_length{t}": {
            "q": normal(t, n, t, WIDTH),
            "k": normal(20 + t, n, t + source, WIDTH),
            "v": normal(40 + t, n, t + source, WIDTH),
        }
        for n, t in ((1, 3), (2, 5))
    }


def _with(cases: Mapping[str, Inputs], **extra: object) -> Mapping[str, Inputs]:
    """Each case with inputs computed from its batch, query length and key length."""
    return {
        label: {
            **case,
            **{
                name: make(case["q"].shape[0], case["q"].shape[1], case["k"].shape[1])  # type: ignore[operator,union-attr]
                for name, make in extra.items()
            },
        }
        for label, case in cases.items()
    }


def _cached(seed: int) -> object:
    return lambda n, t, s: normal(seed + t, n, HEADS, 3, SIZE)


PRESENT = [("y", FLOAT), ("present_key", FLOAT), ("present_value", FLOAT)]

MULTI_HEAD = [
    contrib(
        "multi_head_attention", "query, key and value already projected, one bias for all three", "MultiHeadAttention",
        ["q", "k", "v", "bias"], _qkv(), {"bias": normal(84, 3 * WIDTH, scale=0.2)}, num_heads=HEADS,
    ),
    contrib(
        "multi_head_attention_cross",
        "keys from elsewhere, some of them padding",
        "MultiHeadAttention",
        ["q", "k", "v", "", "padding"],
        _with(_qkv(2), padding=lambda n, t, s: (np.arange(s) < np.array([[s], [s - 3]])[:n]).astype(np.int32)),
        num_heads=HEADS,
    ),
    contrib(
        "multi_head_attention_past",
        "with a cache, causal, and a number added to each score",
        "MultiHeadAttention",
        ["q", "k", "v", "", "", "score_bias", "past_key", "past_value"],
        _with(
            _qkv(), score_bias=lambda n, t, s: normal(70 + t, 1, HEADS, t, s + 3), past_key=_cached(100),
            past_value=_cached(200),
        ),
        None,
        PRESENT,
        num_heads=HEADS,
        unidirectional=1,
        scale=0.4,
    ),
    contrib(
        "multi_head_attention_heads_apart",
        "cross-attention on keys and values that lie (batch, heads, length, size), as a cache does",
        "MultiHeadAttention",
        ["q", "k", "v"],
        {
            "": {
                "q": normal(1, 2, 3, WIDTH), "k": normal(2, 2, HEADS, 5, SIZE), "v": normal(3, 2, HEADS, 5, SIZE),
            }
        },
        num_heads=HEADS,
    ),
]  # fmt: skip

SHARED, WIDE = 2, 16
"""Key heads, and the elements of a head: onnxruntime turns heads of a multiple of 16 only."""
GROUPED = ["q", "k", "v", "past_key", "past_value", "last", "total"]


def _angles(size: int, most: int = 16) -> dict[str, np.ndarray]:
    """Cosines and sines (positions, half the rotated size)."""
    rate = 10000.0 ** (-np.arange(0, size, 2) / size)
    angle = np.arange(most)[:, None] * rate
    return {"cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}


def _grouped(
    packed: bool = False, sizes: tuple[tuple[int, int, int], ...] = ((1, 0, 5), (1, 4, 1))
) -> dict[str, Inputs]:
    """First call and later call of a decoder: batch, past length, new length."""
    cases: dict[str, Inputs] = {}
    for n, past, new in sizes:
        total = past + new
        hidden = (HEADS + (2 * SHARED if packed else 0)) * WIDE
        case = {
            "q": normal(total, n, new, hidden),
            "past_key": normal(10 + total, n, SHARED, past, WIDE),
            "past_value": normal(20 + total, n, SHARED, past, WIDE),
            "last": np.full(n, total - 1, dtype=np.int32),
            "total": np.array([total], dtype=np.int32),
        }
        if not packed:
            case["k"] = normal(30 + total, n, new, SHARED * WIDE)
            case["v"] = normal(40 + total, n, new, SHARED * WIDE)
        cases[f"batch{n}_past{past}_new{new}"] = case
    return cases


GROUPED_QUERY = [
    contrib(
        "group_query_attention", "four query heads on two key heads, a cache", "GroupQueryAttention", GROUPED,
        _grouped(), None, PRESENT, num_heads=HEADS, kv_num_heads=SHARED,
    ),
    contrib(
        "group_query_attention_rotary", "the same with rotary positions inside", "GroupQueryAttention",
        [*GROUPED, "cos", "sin"], _grouped(sizes=((1, 0, 5), (2, 4, 1))), _angles(WIDE), PRESENT, num_heads=HEADS,
        kv_num_heads=SHARED, do_rotary=1,
    ),
    contrib(
        "group_query_attention_packed",
        "query, key and value in one tensor, interleaved rotary positions, a soft cap on the scores",
        "GroupQueryAttention",
        ["q", "", "", *GROUPED[3:], "cos", "sin"],
        _grouped(packed=True),
        _angles(WIDE),
        PRESENT,
        num_heads=HEADS,
        kv_num_heads=SHARED,
        do_rotary=1,
        rotary_interleaved=1,
        softcap=5.0,
    ),
    contrib(
        "group_query_attention_window", "only the last three keys are seen", "GroupQueryAttention", GROUPED, _grouped(),
        None, PRESENT, num_heads=HEADS, kv_num_heads=SHARED, local_window_size=3, scale=0.3,
    ),
]  # fmt: skip

ROTARY = [
    contrib(
        "rotary_embedding",
        "the two halves of each head turned against each other; positions counted from an offset",
        "RotaryEmbedding",
        ["x", "position", "cos", "sin"],
        {
            f"batch{n}_length{t}": {"x": normal(t, n, HEADS, t, SIZE), "position": np.array([t], dtype=np.int64)}
            for n, t in ((1, 3), (2, 5))
        },
        _angles(SIZE),
    ),
    contrib(
        "rotary_embedding_interleaved",
        "neighboring elements turned, a position for each token, x (batch, length, hidden)", "RotaryEmbedding",
        ["x", "position", "cos", "sin"], _x({"position": lambda n, t: rng(t).integers(0, 16, (n, t), dtype=np.int64)}),
        _angles(SIZE), interleaved=1,
    ),
    contrib(
        "rotary_embedding_partial", "only the first four elements of each head turned", "RotaryEmbedding",
        ["x", "position", "cos", "sin"], _x({"position": lambda n, t: np.tile(np.arange(t), (n, 1))}), _angles(4),
        rotary_embedding_dim=4, num_heads=HEADS,
    ),
]  # fmt: skip


def _nbits(seed: int, outputs: int, inputs: int, bits: int, block: int, zero: bool) -> dict[str, np.ndarray]:
    """Random packed weights: (outputs, blocks, bytes a block), a scale a block, zero points packed the same way."""
    blocks = -(-inputs // block)
    made = {
        "b": rng(seed).integers(0, 256, (outputs, blocks, block * bits // 8), dtype=np.uint8),
        "scales": (np.abs(normal(seed + 1, outputs * blocks)) * 0.02 + 0.01).astype(np.float32),
    }
    if zero:
        made["zero_points"] = rng(seed + 2).integers(0, 256, outputs * -(-blocks * bits // 8), dtype=np.uint8)
    return made


def _rows(inputs: int) -> Mapping[str, Inputs]:
    return {f"batch{n}_length{t}": {"a": normal(t, n, t, inputs)} for n, t in ((1, 1), (2, 5))}


FEW_BITS = [
    contrib(
        "matmul_nbits", "four bits a weight, blocks of 16 that do not divide the row, symmetric", "MatMulNBits",
        ["a", "b", "scales"], _rows(40), _nbits(1, 12, 40, 4, 16, zero=False), K=40, N=12, bits=4, block_size=16,
    ),
    contrib(
        "matmul_nbits_zero_points", "four bits, blocks of 32, packed zero points and a bias", "MatMulNBits",
        ["a", "b", "scales", "zero_points", "", "bias"], _rows(96),
        {**_nbits(5, 10, 96, 4, 32, zero=True), "bias": normal(6, 10)}, K=96, N=10, bits=4, block_size=32,
    ),
    contrib(
        "matmul_nbits_8", "eight bits, blocks of 32, zero points", "MatMulNBits", ["a", "b", "scales", "zero_points"],
        _rows(64), _nbits(9, 8, 64, 8, 32, zero=True), K=64, N=8, bits=8, block_size=32, accuracy_level=1,
    ),
    contrib(
        "gather_block_quantized",
        "rows of an embedding table of four bits a weight",
        "GatherBlockQuantized",
        ["table", "indices", "scales", "zero_points"],
        {"": {"indices": rng(4).integers(0, 10, (2, 3), dtype=np.int64)}},
        {
            "table": rng(3).integers(0, 256, (10, 16), dtype=np.uint8),
            "scales": (np.abs(normal(5, 10, 2)) * 0.1 + 0.05).astype(np.float32),
            "zero_points": rng(6).integers(0, 256, (10, 1), dtype=np.uint8),
        },
        [("y", TensorProto.FLOAT)],
        bits=4,
        block_size=16,
        gather_axis=0,
        quantize_axis=1,
    ),
]  # fmt: skip

RECIPES = [*ATTENTION, *MULTI_HEAD, *GROUPED_QUERY, *ROTARY, *FEW_BITS]
