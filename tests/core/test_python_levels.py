"""Quantizing and dequantizing in plain Python, beside formulas in NumPy."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

X = (np.random.default_rng(0).standard_normal((4, 12, 20)) * 4).astype(np.float32)
X.flat[:10] = [np.nan, np.inf, -np.inf, -0.0, 1e38, -1e38, 0.25, 0.75, -0.25, 1.25]
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15)}


def formulas(scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        q = np.clip(np.rint(X / scale) + zero, low, high)
    q[np.isnan(q)] = low
    return q.astype(np.int64), ((q - zero) * scale).astype(np.float32)


@every("dtype, scale, share", [(d, s, z) for d in RANGES for s in (0.5, 0.03, 1e-9, 7e8) for z in (None, 0, 0.4, 1)])
def test_levels_of_a_tensor(dtype: str, scale: float, share: float | None) -> None:
    low, high = RANGES[dtype]
    zero = None if share is None else int(low + share * (high - low))
    q = F.quantize_linear(emberlet.asarray(X, backend="python"), scale, zero, dtype=dtype)
    real = F.dequantize_linear(q, scale, zero)
    levels, numbers = formulas(np.float32(scale), zero or 0, low, high)
    np.testing.assert_array_equal(np.array(q.tolist()), levels)
    np.testing.assert_array_equal(np.array(real.tolist(), np.float32), numbers)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_levels_along_an_axis(axis: int) -> None:
    n = X.shape[axis]
    scale = np.linspace(0.1, 0.6, n, dtype=np.float32)
    zero = np.linspace(0, 255, n).astype(np.uint8)
    parts = [emberlet.asarray(a, backend="python") for a in (scale, zero)]
    q = F.quantize_linear(emberlet.asarray(X, backend="python"), *parts, axis=axis)
    real = F.dequantize_linear(q, *parts, axis=axis)
    shape = [n if i == axis else 1 for i in range(3)]
    levels, numbers = formulas(scale.reshape(shape), zero.reshape(shape).astype(np.float32), 0, 255)
    np.testing.assert_array_equal(np.array(q.tolist()), levels)
    np.testing.assert_array_equal(np.array(real.tolist(), np.float32), numbers)
