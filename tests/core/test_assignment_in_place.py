"""Assignments that NumPy's backend makes in place write what plain Python writes. test_copies.py: into which memory."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.host.counts import COUNTS
from emberlet.tensor import Tensor

pytestmark = pytest.mark.skipif(not COUNTS, reason="this interpreter's reference counts say nothing")
NUMPY, PYTHON = get_backend("numpy"), get_backend("python")


def outcome(backend: Any, dtype: str, key: Any, value: Any) -> str:
    """The elements after an assignment, or its error."""
    x = emberlet.asarray(np.zeros((3, 4), dtype), backend=backend, copy=True)
    try:
        x[key] = value if not isinstance(value, Tensor) else emberlet.move(value, backend)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return repr(x.tolist())


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bool", "int8", "uint8", "int64"])
def test_values_are_written_as_plain_python_writes_them(dtype: str) -> None:
    for value in (1.5, 1, True, np.float32(1.25), -1, 127, 128, -128, -129, 255, 256, -(1 << 63), 1 << 63, 1e300,
                  emberlet.asarray([1.75, -3.0, 300.0, 0.1]), emberlet.asarray(7, dtype="int64")):  # fmt: skip
        assert outcome(NUMPY, dtype, 1, value) == outcome(PYTHON, dtype, 1, value), value


def test_keys_choose_what_they_choose_in_plain_python() -> None:
    cut = (slice(None, None, 0), slice(0, 4), slice(-4, None), slice(-9, 9), slice(None, None, 4), slice(True, None))
    for key in (3, -4, (0, 4), (0, -5), (0, 0, 0), True, False, np.int64(1), None, ..., (0, None), [0], [True] * 3,
                *cut, slice(0, np.int64(2)), (0, slice(0, 5)), (slice(None, 4), 0)):  # fmt: skip
        assert outcome(NUMPY, "float32", key, 5.0) == outcome(PYTHON, "float32", key, 5.0), key
