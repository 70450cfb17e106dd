"""The backends whose tensors are tested, and comparison with NumPy.

Another backend joins every tensor test by one line in NAMES.
"""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
from emberlet import backend as registry
from emberlet.python_backend import (
    PythonBackend,
    convolution_loops,
    dense_loops,
    products_loops,
    rectifier_loops,
    windows_loops,
)
from emberlet.tensor import Tensor


class LoopsBackend(PythonBackend):
    """The python backend with the kernels that MicroPython uses, which CPython can run as well."""

    name = "loops"
    conv = convolution_loops.conv
    matmul = products_loops.matmul
    linear = dense_loops.linear
    pool = windows_loops.pool
    relu = rectifier_loops.relu


if "loops" not in registry._factories:
    registry.register("loops", LoopsBackend)

NAMES = ["python", "loops", "numpy"]

FLOATS = ("float64", "float32", "float16", "bfloat16")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
# Largest relative error of one operation, in units of the dtype's precision.
EPSILON = {"float64": 2.2e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


def tensor(array: Any, backend: Any = None) -> Tensor:
    """A tensor of the array's dtype on a backend."""
    return emberlet.asarray(np.asarray(array), backend=backend)


def array(x: Tensor) -> np.ndarray[Any, Any]:
    """A NumPy array of x's elements, in a dtype NumPy itself has."""
    found = np.asarray(x)
    return found.astype(np.float64) if x.dtype.is_float and found.dtype.kind == "V" else found


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy (or ml_dtypes) dtype of that name."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def same(x: Tensor, expected: Any, rtol: float = 0.0, atol: float = 0.0, *, zeros: bool = False) -> None:
    """Assert that x has the expected shape, dtype and elements; `zeros`: signs of zeros count too."""
    expected = np.asarray(expected)
    assert x.shape == expected.shape, f"shape {x.shape}, expected {expected.shape}"
    assert x.dtype.name == expected.dtype.name, f"dtype {x.dtype}, expected {expected.dtype}"
    found = np.asarray(x)
    if expected.dtype.kind in "fV" and expected.dtype.name not in ("float64", "float32"):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
        if zeros:
            np.testing.assert_array_equal(np.signbit(found) & (found == 0), np.signbit(expected) & (expected == 0))
    else:
        np.testing.assert_array_equal(found, expected)
