"""Casts between all pairs of dtypes on the GPU, alone and fused, against NumPy's and ml_dtypes' own."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray, dtypes
from emberlet import functional as F
from support.backends import numpy_dtype
from support.rows import every

FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
EVERY = [*FLOATS, *INTEGERS, "bool"]


def _elements(name):
    """Elements of the dtype: its ends, halves, and random ones; 64-bit integers within the 32 bits of the GPU."""
    choose = np.random.default_rng(5)
    if name == "bool":
        return np.array([True, False, True])
    dtype = numpy_dtype(name)
    if name in FLOATS:
        some = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 126.5, 254.9, 1e-6, 300.7, -40000.3, np.inf, -np.inf, np.nan]
        with np.errstate(all="ignore"):
            return np.concatenate([np.array(some), choose.normal(0, 100, 25)]).astype(dtype)
    info = np.iinfo(dtype)
    low, high = (max(info.min, -(1 << 31)), min(info.max, (1 << 31) - 1))
    drawn = choose.integers(low, high, 25, endpoint=True)
    return np.concatenate([[low, high, 0, 1, min(77, high)], drawn]).astype(dtype)


def _cast(values, target):
    """What the protocol promises: floats truncate toward zero and saturate, NaN gives 0; integers wrap."""
    with np.errstate(all="ignore"):
        if target == "bool":
            return values.astype(np.float64) != 0 if values.dtype.kind in "fV" else values != 0
        dtype = numpy_dtype(target)
        if values.dtype.name in FLOATS and target in INTEGERS:
            info = np.iinfo(dtype)
            wide = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0.0, posinf=1e300, neginf=-1e300)
            return np.array([min(max(int(v), info.min), info.max) for v in wide.tolist()], dtype)
        return values.astype(dtype)


@every("source", EVERY)
@every("target", EVERY)
def test_cast(gpu, source, target):
    values = _elements(source)
    if target in ("int64", "uint64") and source in FLOATS:
        values = values[np.abs(values.astype(np.float64)) < 1 << 31]  # what the GPU's words hold
    if source == "float64":
        values = values.astype(np.float32).astype(np.float64)  # the GPU computes float64 in float32
    want = _cast(values, target)
    if target == "float64":
        want = want.astype(np.float32)
    x = asarray(values, device=gpu)
    assert x.dtype.name == source
    for y in (F.cast(x, dtypes.dtype(target)), F.cast(F.flip(F.flip(x)), dtypes.dtype(target))):
        assert y.dtype.name == target
        found = np.asarray(y)
        if target in FLOATS:
            np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))
        else:
            np.testing.assert_array_equal(found, want)


@every("source", INTEGERS)
@pytest.mark.parametrize("target", ["int16", "int8", "uint16", "uint8"])
def test_a_narrowing_cast_wraps_before_the_same_kernel_uses_it(gpu, source, target):
    values = _elements(source)
    want = _cast(values, target)
    narrow = F.cast(asarray(values, device=gpu), dtypes.dtype(target))
    np.testing.assert_array_equal(np.asarray(F.cast(narrow, dtypes.float32)), want.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(narrow < 100), want < 100)
