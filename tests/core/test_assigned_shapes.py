"""`roll` and `assigned` on shapes with empty axes and axes of length one, and with NumPy's integers."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F

SHAPES = ((0,), (1,), (3,), (2, 1, 3), (2, 0, 3), (1, 4))
KEYS = (slice(0, 1), slice(-1, None), slice(None, None, -1), slice(0, 0), slice(1, None, 2), slice(None, None, -2), 0)
BACKENDS = ("numpy", "python", "wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver")))


def drawn(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_assigned_gives_numpys_result_at_any_part(backend: str, shape: tuple[int, ...]) -> None:
    x = drawn(shape)
    t = emberlet.asarray(x, backend=backend)
    for axis in (0, len(shape) - 1):
        for part in KEYS:
            if part == 0 and not shape[axis]:
                continue
            key = (slice(None),) * axis + (np.int64(0) if part == 0 else part,)
            wanted = x.copy()
            wanted[key] = 2.5
            np.testing.assert_array_equal(np.asarray(t.assigned(key, 2.5)), wanted, err_msg=f"{key}")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_roll_gives_numpys_result_along_any_axis(backend: str, shape: tuple[int, ...]) -> None:
    x = drawn(shape)
    t = emberlet.asarray(x, backend=backend)
    for axis in (None, *range(-len(shape), len(shape))):
        for shift in (0, 1, -1, 5, np.int64(2), -7):
            found = np.asarray(F.roll(t, shift, axis=axis))
            np.testing.assert_array_equal(found, np.roll(x, int(shift), axis=axis), err_msg=f"{shift} along {axis}")
