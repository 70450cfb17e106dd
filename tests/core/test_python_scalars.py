"""Comparisons, questions, softmax and casts in plain Python, also as MicroPython does them. test_elementwise.py and
test_without_casts.py have the other functions of numbers."""

from __future__ import annotations

import math

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.python_backend import activations, casts
from emberlet.python_backend.buffers import Borrowed, borrow, run
from emberlet.python_backend.sequences import join

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("micro", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_softmax_along_any_axis(axis, dtype, micro, monkeypatch):
    monkeypatch.setattr(activations, "MICRO", micro)
    a = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(dtype)
    x = emberlet.asarray(a, backend="python")
    e = np.exp(a.astype(np.float64) - a.max(axis, keepdims=True))
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(np.asarray(F.softmax(x, axis).tolist()), e / e.sum(axis, keepdims=True), rtol=tolerance)
    empty = F.zeros((2, 0, 3), dtype=dtype, backend="python")
    assert F.softmax(empty, axis).shape == (2, 0, 3)
    for row in ([1.0, NAN], [INF, 1.0], [-INF, -INF], [NAN, INF]):
        found = F.softmax(F.asarray(row, dtype=dtype, backend="python"), 0).tolist()
        assert all(math.isnan(v) for v in found), row
    assert F.softmax(F.asarray([-INF, 1.0], dtype=dtype, backend="python"), 0).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("micro", [False, True])
def test_floats_are_truncated_and_saturate(micro, monkeypatch):
    monkeypatch.setattr(casts, "MICRO", micro)
    values = [1.9, -1.9, 127.9, 128.0, -128.9, -129.0, 1e30, -1e30, INF, -INF, NAN]
    x = F.asarray(values, dtype="float64", backend="python")
    assert F.astype(x, "int8").tolist() == [1, -1, 127, 127, -128, -128, 127, -128, 127, -128, 0]
    assert F.astype(x, "uint8").tolist() == [1, 0, 127, 128, 0, 0, 255, 0, 255, 0, 0]
    assert F.astype(x, "int4").tolist() == [1, -1, 7, 7, -8, -8, 7, -8, 7, -8, 0]
    assert F.astype(x[:2], "int64").tolist() == [1, -1]
    assert F.astype(x, "bool").tolist() == [True] * 11


def test_borrowed_elements_read_like_an_array():
    values = np.arange(150, dtype=np.int16) - 70
    borrowed = Borrowed(values.tobytes(), "h")
    assert len(borrowed) == 150 and list(borrowed) == values.tolist()
    assert borrowed[3] == -67 and borrowed[149] == 79
    assert list(borrowed.run(10, 5)) == values[10:15].tolist() == list(run(borrowed, 10, 5))
    dtype = emberlet.dtypes.dtype("int16")
    assert list(borrow(values.tobytes(), dtype, (150,))) == values.tolist()
    assert list(borrow(memoryview(values), dtype, (150,))) == values.tolist()  # whatever its elements are
    part = run(memoryview(values), 2, 3)
    assert list(part) == values[2:5].tolist() and part.typecode == "h"
    assert list(join(dtype, [borrowed.run(0, 2), borrowed.run(5, 1)])) == [-70, -69, -65]
    assert join(emberlet.dtypes.dtype("string"), [["a"], ["b", "c"]]) == ["a", "b", "c"]
    with pytest.raises(emberlet.errors.FormatError, match="150"):
        borrow(values.tobytes()[:-1], dtype, (150,))
