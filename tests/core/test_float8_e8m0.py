"""float8_e8m0fnu, powers of two without sign: rounding up, and numbers outside its range."""

from __future__ import annotations

import math
from typing import Any

import emberlet
import numpy as np
import pytest

LARGEST = 2.0**127
# value -> what it is cast to with and without saturation (ONNX: up to the next power of two, 255 is NaN)
CASES = [
    (LARGEST, LARGEST, LARGEST), (float(np.nextafter(np.float32(LARGEST), np.float32(np.inf))), LARGEST, math.nan),
    (float(np.finfo(np.float32).max), LARGEST, math.nan), (1.0, 1.0, 1.0), (1.0000001192092896, 2.0, 2.0),
    (1.5, 2.0, 2.0), (2.0**-126, 2.0**-126, 2.0**-126), (0.0, 2.0**-127, 2.0**-127), (-1.0, math.nan, math.nan),
    (math.nan, math.nan, math.nan), (math.inf, math.nan, math.nan), (-math.inf, math.nan, math.nan),
    (0.75 * LARGEST, LARGEST, LARGEST),
]  # fmt: skip


@pytest.mark.parametrize("saturate", [True, False])
def test_casts_saturate_only_when_told_to(backend: Any, saturate: bool) -> None:
    given = [case[0] for case in CASES]
    expected = [case[1 if saturate else 2] for case in CASES]
    for dtype in ("float32", "float64"):
        x = emberlet.asarray(given, dtype=dtype).cast("float8_e8m0fnu", saturate=saturate)
        np.testing.assert_array_equal(np.asarray(x).astype(np.float64), expected)
        np.testing.assert_array_equal(x.tolist(), expected)


@pytest.mark.parametrize("name", ["numpy", "python"])
def test_the_smallest_values_and_float64_are_rounded_exactly(name: str) -> None:
    """Numbers that are subnormal in float32, and float64's that float32 would round or overflow with."""
    cases = [
        (2.0**-127, 2.0**-127), (2.0**-149, 2.0**-127), (1.25 * 2.0**-127, 2.0**-126), (1e-300, 2.0**-127),
        (1 + 1e-12, 2.0), (1e300, LARGEST), (LARGEST * (1 + 1e-12), LARGEST),
    ]  # fmt: skip
    x = emberlet.asarray([case[0] for case in cases], dtype="float64", backend=name)
    assert x.cast("float8_e8m0fnu").tolist() == [case[1] for case in cases]
    assert np.isnan(x[-2:].cast("float8_e8m0fnu", saturate=False).tolist()).all()
    x = emberlet.asarray([case[0] for case in cases[:3]], dtype="float32", backend=name)
    assert x.cast("float8_e8m0fnu").tolist() == [case[1] for case in cases[:3]]
