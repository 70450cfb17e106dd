"""Elementwise functions of every kind of operand at the ends of what they take: compared with NumPy."""

from __future__ import annotations

import itertools
import math

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.dtypes.alias import alias
from emberlet.errors import BackendError, DTypeError, ShapeError

VALUES = np.array([[-3.0, -0.5, 0.0], [0.25, 2.0, 9.0]], np.float32)
X = emberlet.asarray(VALUES, backend="python")
ROW = np.array([-1.0, 0.0, 1.0], np.float32)


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_clip_takes_numbers_tensors_and_nothing_on_either_side(backend):
    x, row = emberlet.asarray(VALUES, backend=backend), emberlet.asarray(ROW, backend=backend)
    bounds = [(None, None), (-1.0, -1.0), (row, ROW), (F.asarray(-1.0, backend=backend), -1.0)]
    tops = [(None, None), (1.5, 1.5), (row + 2, ROW + 2), (F.asarray(1.5, backend=backend), 1.5)]
    for (low, low_number), (high, high_number) in itertools.product(bounds, tops):
        expected = VALUES
        if low is not None:
            expected = np.maximum(expected, low_number)
        if high is not None:
            expected = np.minimum(expected, high_number)
        found = F.clip(x, low, high)
        assert found.tolist() == expected.tolist()
        assert found is not x
    assert F.clamp_min(x, 0).tolist() == np.maximum(VALUES, 0).tolist()
    assert F.clamp_max(x, 0).tolist() == np.minimum(VALUES, 0).tolist()
    for wrong in ((F.zeros((2,), backend=backend), None), (None, F.zeros((2,), backend=backend)),
                  (0.0, F.zeros((4,), backend=backend)), (F.zeros((4,), backend=backend), 0.0)):  # fmt: skip
        with pytest.raises(ShapeError, match="broadcast"):
            F.clip(x, *wrong)
    small = F.asarray([0, 100, 200], dtype="uint8", backend=backend)
    assert F.clip(small, -5, 300).tolist() == [0, 100, 200]
    assert F.clip(small, 50, 150).tolist() == [50, 100, 150]
    assert F.clip(small, 300, None).tolist() == [255] * 3 and F.clip(small, None, -5).tolist() == [0] * 3
    with pytest.raises(DTypeError, match="not defined for bool"):
        F.clip(x > 0, 0, 1)


@pytest.mark.parametrize("backend", ["python", "numpy", "loops"])
def test_the_sign_bit_of_every_dtype(backend):
    for name in ("float64", "float32", "float16", "bfloat16"):
        x = F.asarray([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf], dtype=name, backend=backend)
        assert F.signbit(x).tolist() == [False, True, False, True, False, True], name
    assert F.signbit(F.asarray([-1, 0, 1], dtype="int8", backend=backend)).tolist() == [True, False, False]
    assert F.signbit(F.asarray([0, 200], dtype="uint8", backend=backend)).tolist() == [False, False]


def test_where_takes_numbers_on_either_side():
    condition = X > 0
    for a, b in ((1, 2), (1.5, 2), (X, 0), (0, X), (X, X + 1), (True, False)):
        numbers = [np.asarray(v.tolist(), np.float32) if isinstance(v, emberlet.Tensor) else v for v in (a, b)]
        found = F.where(condition, a, b)
        assert found.tolist() == np.where(VALUES > 0, *numbers).tolist()
        assert found.device == "python"
    assert F.where(VALUES > 0, X, 0).device == "python" == F.where(VALUES > 0, 0, X).device
    assert F.where([True, False], X[0, :2], X[1, :2]).tolist() == [-3.0, 2.0]
    assert F.where(condition, 1, 2).dtype.name == "int64" and F.where(condition, 1, 2.5).dtype.name == "float32"
    assert F.where(X, 1, 0).tolist() == (VALUES != 0).astype(int).tolist()
    with pytest.raises(BackendError):
        F.where(F.asarray(VALUES > 0, backend="numpy"), X, X)
    for a, b in ((F.zeros((4,), backend="python"), 0), (0, F.zeros((4,), backend="python"))):
        with pytest.raises(ShapeError, match="broadcast"):
            F.where(condition, a, b)


def test_masks_take_tensors_and_numbers():
    mask = X > 0
    assert F.mask_fill(X, mask, 7).tolist() == np.where(VALUES > 0, 7, VALUES).tolist()
    assert F.mask_where(X, mask, X * 2).tolist() == np.where(VALUES > 0, VALUES * 2, VALUES).tolist()
    assert F.mask_where(X, VALUES > 0, 7).device == "python"
    assert F.mask_where(F.astype(X, "float16"), mask, 7.0).dtype.name == "float16"
    for call in (lambda: F.mask_where(X, F.zeros((4,), backend="python"), 7),
                 lambda: F.mask_where(X, mask, F.zeros((4,), backend="python"))):  # fmt: skip
        with pytest.raises(ShapeError, match="broadcast"):
            call()


def test_closeness_is_numpys():
    values = np.array([0.0, 1.0, 1.00001, 1.0001, np.inf, -np.inf, np.nan], np.float64)
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    x, y = F.asarray(a, backend="python"), F.asarray(b, backend="python")
    for options in ({}, {"equal_nan": True}, {"rtol": 1e-3}, {"atol": 1.0, "rtol": 0.0}):
        assert F.is_close(x, y, **options).tolist() == np.isclose(a, b, **options).tolist()
    assert F.is_close(F.asarray([1, 2]), F.asarray([1, 3])).tolist() == [True, False]
    assert F.all_close(x[:1], y[:1]).item() is True and F.all_close(x, y).item() is False


NAMES = {
    "f4": "float32", "<f8": "float64", ">i2": "int16", "|u1": "uint8", "=i8": "int64", "?": "bool", "half": "float16",
    "torch.float16": "float16", "numpy.int8": "int8", "float": "float32", "int": "int64", "str": "string", "f3": None,
    "x4": None, "i16": None, "": None, "complex64": "complex64",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_foreign_names_of_dtypes(name):
    found = alias(name)
    assert (found and found.name) == NAMES[name]


def test_dtypes_of_numpy_and_types_of_python():
    types = {float: "float32", int: "int64", bool: "bool", str: "string", complex: "complex64", np.float32: "float32"}
    for foreign, expected in [*types.items(), (np.dtype("int16"), "int16")]:
        assert dtypes.dtype(foreign).name == expected
    for wrong in (object(), 3):
        with pytest.raises(DTypeError, match="there is no dtype"):
            dtypes.dtype(wrong)


FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


def test_promotion_with_floats_bools_and_strings():
    for name in FLOATS:
        for other in ("bool", "int8", "uint8", "int64", "uint64"):
            assert F.result_type(name, other).name == name == F.result_type(other, name).name
    for a, b, expected in (("float16", "bfloat16", "float32"), ("float16", "float32", "float32"),
                           ("float64", "bfloat16", "float64"), ("float8_e4m3fn", "float8_e5m2", "float32"),
                           ("float8_e4m3fn", "float4_e2m1fn", "float32"), ("float8_e4m3fn", "float16", "float16"),
                           ("int4", "int8", "int8"), ("uint4", "int8", "int8"), ("uint4", "int4", "int8"),
                           ("uint32", "int8", "int64"), ("uint64", "uint8", "uint64")):  # fmt: skip
        assert F.result_type(a, b).name == expected == F.result_type(b, a).name
