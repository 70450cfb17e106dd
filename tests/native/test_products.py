"""Products and convolutions of drawn shapes against float64, for each length of vectors that this processor has.

EMBERLET_PRODUCTS=N draws N of each kind.
"""

from __future__ import annotations

import os
import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.llvm.backend import NativeBackend

Array = np.ndarray[Any, Any]
COUNT = int(os.environ.get("EMBERLET_PRODUCTS", "8"))
EPSILON = 2.0**-23


def sizes(choose: random.Random, most: int, count: int) -> list[int]:
    """Small lengths more often than large ones, and those around a vector's."""
    near = [n + d for n in (4, 8, 14, 16, 28, 32) for d in (-1, 0, 1)]
    return [choose.choice(near) if choose.random() < 0.4 else int(most ** choose.random()) for _ in range(count)]


def close(found: Any, want: Array, depth: int) -> None:
    """float32 sums of `depth` terms, against float64."""
    bound = 2 * EPSILON * depth**0.5 * max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), want, rtol=0, atol=bound)


def test_products_equal_float64(backend: NativeBackend) -> None:
    for seed in range(COUNT):
        choose, numbers = random.Random(seed), np.random.default_rng(seed)
        rows, depth, columns = sizes(choose, 300, 3)
        lead = choose.choice([(), (), (2,), (2, 3)])
        a = numbers.standard_normal((*lead, rows, depth)).astype(np.float32)
        b = numbers.standard_normal((*lead[choose.randrange(2) :], depth, columns)[-2 - len(lead) :]).astype(np.float32)
        if choose.random() < 0.3:
            b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
        close(F.relu(F.matmul(x, y)), np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0), depth)


def test_convolutions_equal_float64(backend: NativeBackend) -> None:
    for seed in range(COUNT):
        choose, numbers = random.Random(seed), np.random.default_rng(seed)
        groups = choose.choice([1, 1, 1, 2, 4])
        channels, out = (groups * n for n in sizes(choose, 40, 2))
        if choose.random() < 0.3:
            groups = out = channels  # depthwise
        kernel = [choose.choice([1, 1, 3, 3, 5, 7]) for _ in range(2)]
        picture = [max(k, n) for k, n in zip(kernel, sizes(choose, 40, 2), strict=True)]
        options: dict[str, Any] = {
            "stride": choose.choice([1, 1, 2, 3]),
            "padding": choose.choice([0, kernel[0] // 2, kernel[0] // 2, 2]),
            "dilation": 1,
            "groups": groups,
        }
        x = numbers.standard_normal((choose.choice([1, 2]), channels, *picture)).astype(np.float32)
        w = numbers.standard_normal((out, channels // groups, *kernel)).astype(np.float32)
        exact = [emberlet.asarray(v.astype(np.float64), backend="python" if x.size < 99 else "numpy") for v in (x, w)]
        want = np.asarray(F.conv(*exact, None, **options))
        found = F.conv(*(emberlet.asarray(v, backend=backend) for v in (x, w)), None, **options)
        close(found, want, channels // groups * kernel[0] * kernel[1])


def test_products_of_bytes_are_exact(backend: NativeBackend) -> None:
    numbers = np.random.default_rng(0)
    for rows, depth, columns in ((5, 37, 40), (1, 64, 100), (33, 8, 9)):
        a = numbers.integers(-128, 128, (rows, depth)).astype(np.int32)
        b = numbers.integers(-128, 128, (depth, columns)).astype(np.int32)
        x, y = (emberlet.asarray(v, backend=backend) for v in (a, b))
        np.testing.assert_array_equal(np.asarray(backend.matmul_8bit(x, y)), a @ b)


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
