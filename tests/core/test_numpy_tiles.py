"""Kernels of the numpy backend that work in tiles and blocks give the same with tiles of any size; pooling, packed
weights and exact sums of small integers equal the plain Python backend's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.functional.transformer.dot_product_attention import compose_attention, dot_product_attention
from emberlet.host.numpy_backend import attention, block_weights, convolution, integers, windows
from support.backends import same

NUMPY, PLAIN = get_backend("numpy"), get_backend("python")


def on(backend: Any, array: Any) -> Any:
    return None if array is None else F.asarray(array, backend=backend)


@pytest.mark.parametrize(("tile", "rows"), [(1, 1), (1, 3), (60, 1), (200, 2), (1 << 18, 64)])
@pytest.mark.parametrize("seed", range(6))
def test_attention_in_tiles_of_any_size(monkeypatch: pytest.MonkeyPatch, tile: int, rows: int, seed: int) -> None:
    monkeypatch.setattr(attention, "_TILE", tile)
    monkeypatch.setattr(attention, "_ROWS", rows)
    draw = np.random.default_rng(seed)
    batch, shared, group = (int(n) for n in draw.integers(1, 4, 3))
    length, keys = int(draw.integers(1, 9)), int(draw.integers(1, 9))
    heads = shared * group
    q = draw.normal(size=(batch, heads, length, 4)).astype(np.float32)
    k, v = (draw.normal(size=(batch, shared, keys, n)).astype(np.float32) for n in (4, 3))
    full = (batch, heads, length, keys)
    for shape in (None, (keys,), (length, keys), (1, 1, length, keys), (batch, 1, 1, keys), full, (1, heads, 1, 1)):
        bias = None if shape is None else draw.normal(size=shape).astype(np.float32)
        if bias is not None and draw.random() < 0.8:
            bias[draw.random(shape) < 0.6] = -np.inf  # keys that no query of a tile sees, and queries that see none
        sink = draw.normal(size=heads).astype(np.float32) if draw.random() < 0.5 else None
        softcap = 2.0 if draw.random() < 0.5 else 0.0
        found, expected = (
            call(*(on(backend, x) for x in (q, k, v, bias)), 0.3, softcap, True, on(backend, sink))
            for call, backend in ((dot_product_attention, NUMPY), (compose_attention, PLAIN))
        )
        if sink is not None and bias is not None:
            seen = np.isfinite(np.broadcast_to(bias, full)).any(-1)
            assert not np.asarray(found)[~seen].any()
        same(found, np.asarray(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block", [1, 60, 1 << 21])
@pytest.mark.parametrize("seed", range(12))
def test_convolutions_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch, block: int, seed: int) -> None:
    monkeypatch.setattr(convolution, "BLOCK", block)
    draw = random.Random(seed)
    rank, groups = draw.randint(1, 3), draw.randint(1, 2)
    kernel = [draw.choice([1, 2, 3]) if seed % 3 else 1 for _ in range(rank)]
    stride, dilation = [draw.randint(1, 3) for _ in range(rank)], [draw.randint(1, 2) for _ in range(rank)]
    options = (stride, [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(rank)], dilation, groups)
    numbers = np.random.default_rng(seed)
    x = numbers.normal(size=(2, 2 * groups, *[draw.randint(5, 7) for _ in range(rank)])).astype(np.float32)
    w = numbers.normal(size=(3 * groups, 2, *kernel)).astype(np.float32)
    for bias in (None, numbers.normal(size=3 * groups).astype(np.float32)):
        found, expected = (F.conv(*(on(b, a) for a in (x, w, bias)), *options) for b in (NUMPY, PLAIN))
        same(found, np.asarray(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("seed", range(12))
def test_pooling_over_any_windows(op: str, seed: int) -> None:
    draw = random.Random(seed)
    rank = draw.randint(1, 3)
    kernel, stride = ([draw.randint(1, 3) for _ in range(rank)] for _ in range(2))
    dilation = [draw.randint(1, 2) for _ in range(rank)]
    padding = [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(rank)]
    shape = [draw.randint(1, 2), draw.randint(1, 3), *(draw.randint(5, 8) for _ in range(rank))]
    for dtype in ("float32", "int32", "float16", "uint8"):
        x = np.random.default_rng(seed).integers(0, 5, shape).astype(dtype)
        before = x.copy()
        found, expected = (
            b.pool(op, on(b, x), *map(tuple, (kernel, stride, padding, dilation))) for b in (NUMPY, PLAIN)
        )
        same(found, np.asarray(expected))
        np.testing.assert_array_equal(x, before)


def test_the_taps_of_a_window() -> None:
    x = np.arange(20).reshape(2, 10)
    parts = windows.taps(x, 1, 3, 2, 2)
    assert [p[0].tolist() for p in parts] == [[0, 2, 4], [2, 4, 6], [4, 6, 8]]
    assert windows.padded(x[None, None], ((0, 0), (0, 0)), 7).base is not None
    np.testing.assert_array_equal(windows.padded(x[None, None], ((1, 0), (0, 2)), 7)[0, 0],
                                  np.pad(x, ((1, 0), (0, 2)), constant_values=7))  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 40, 1 << 17])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize(("bits", "size"), [(2, 8), (4, 8), (8, 8), (4, 1), (2, 2)])
def test_products_with_packed_weights(
    monkeypatch: pytest.MonkeyPatch, at_once: int, zeros: str, bits: int, size: int
) -> None:
    """Blocks of whole bytes are computed by NumPy, others by the composite."""
    monkeypatch.setattr(block_weights, "AT_ONCE", at_once)
    draw = np.random.default_rng(bits + size)
    rows, columns = 19, 5
    blocks = -(-rows // size)
    weight = draw.integers(0, 256, (columns, -(-blocks * size * bits // 8)), np.uint8).reshape(-1)
    scales = draw.normal(size=columns * blocks).astype(np.float32)
    zero = None
    if zeros == "packed":
        zero = draw.integers(0, 256, columns * -(-blocks * bits // 8), np.uint8)
    elif zeros == "float":
        zero = draw.normal(size=columns * blocks).astype(np.float32)
    if weight.size != columns * blocks * size * bits // 8:
        return
    x, bias = draw.normal(size=(2, 3, rows)).astype(np.float32), draw.normal(size=columns).astype(np.float32)
    options = {"rows": rows, "columns": columns, "bits": bits, "block_size": size}
    for given in (None, bias):
        found, expected = (
            F.matmul_nbits(*(on(b, a) for a in (x, weight, scales, zero)), bias=on(b, given), **options)
            for b in (NUMPY, PLAIN)
        )
        same(found, np.asarray(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("terms", "kind"), [(1, "float32"), (258, "float32"), (259, "float64"), (5000, "float64")])
def test_sums_of_small_integers_are_exact_in_the_float_that_is_chosen(terms: int, kind: str) -> None:
    a = np.full((1, terms), 255, np.int32)
    left, right = integers._exact(a, a.T, terms)
    assert (left.dtype.name, right.dtype.name) == (kind, kind)
    assert integers._integers(left @ right).item() == 255 * 255 * terms
    small = integers._exact(np.full((1, terms), -3, np.int32), np.full((terms, 1), 5, np.int32), terms)
    assert small[0].dtype == np.float32  # what they hold decides
    assert integers._integers(small[0] @ small[1]).item() == -15 * terms
