"""Kernels against float64, for each length of vectors that this processor has. `dev.py fuzz products` draws more."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from support.drawn_products import KINDS, close

COUNT = 8


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_ones_equal_float64_and_integers(kind: str, backend: NativeBackend) -> None:
    for seed in range(COUNT):
        KINDS[kind](seed, backend)


@pytest.mark.parametrize("rows", [5, 14, 15, 20, 28, 29])
def test_few_rows_by_a_matrix_beyond_the_cache_equal_float64(backend: NativeBackend, rows: int) -> None:
    numbers = np.random.default_rng(rows)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((rows, 260), (260, 1031)))
    x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
    close(F.matmul(x, y), a.astype(np.float64) @ b.astype(np.float64), 260)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("length", [3, 16, 33, 197, 2051])
def test_softmax_and_sums_equal_float64(backend: NativeBackend, length: int, axis: int) -> None:
    shape = (length, 35) if axis == 0 else (35, length)
    a = np.random.default_rng(length).standard_normal(shape).astype(np.float32)
    x = emberlet.asarray(a, backend=backend)
    wide = a.astype(np.float64)
    powers = np.exp(wide - wide.max(axis, keepdims=True))
    close(F.softmax(x, axis=axis), powers / powers.sum(axis, keepdims=True), 4)
    close(x.sum(axis=axis), wide.sum(axis), length)
    np.testing.assert_array_equal(np.asarray(x.max(axis=axis)), a.max(axis))


@pytest.mark.parametrize("around", [1, 5, 70])
def test_padding_is_numpys(backend: NativeBackend, around: int) -> None:
    a = np.random.default_rng(0).standard_normal((7, 90)).astype(np.float32)
    x = emberlet.asarray(a, backend=backend)
    found = F.pad(x, ((around, 2), (around, around + 1)), value=3.0)
    want = np.pad(a, ((around, 2), (around, around + 1)), constant_values=3.0)
    np.testing.assert_array_equal(np.asarray(found), want)


def test_a_maximum_keeps_nan(backend: NativeBackend) -> None:
    a = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    a[3, 68] = a[7, 0] = np.nan
    x = emberlet.asarray(a, backend=backend)
    np.testing.assert_array_equal(np.asarray(x.max(axis=1)), a.max(1))
    np.testing.assert_array_equal(np.asarray(F.relu(x)), np.maximum(a, 0))
