"""Elementwise operations against NumPy: every operation, dtype, broadcast and special value."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from support.backends import EPSILON, INTEGERS, SIGNED, numpy_dtype, same, tensor
from support.rows import every

INF, NAN = np.inf, np.nan
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -7.25, 20.0, -30.0, 100.0, -1e4]

FLOAT_UNARY = (
    "sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil trunc"
    " round abs negative positive sign square reciprocal"
).split()
NUMPY_NAME = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "round": "rint", "pow": "power", "atan2": "arctan2", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "bitwise_invert": "invert",
}  # fmt: skip


def reference(name):
    return getattr(np, NUMPY_NAME.get(name, name))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@every("name", FLOAT_UNARY)
def test_function_of_one_float_on_special_values(backend, name, dtype):
    x = np.array(SPECIAL, np.float64).astype(numpy_dtype(dtype))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        expected = reference(name)(wide).astype(x.dtype)
    # Rounding twice may cost the narrow types one unit more.
    same(getattr(emberlet, name)(tensor(x)), expected, rtol=8 * EPSILON[dtype], zeros=name != "sign")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_erf_matches_the_c_library(backend, dtype):
    import math

    x = np.concatenate([np.linspace(-6, 6, 101), [NAN, INF, -INF, 0.0]]).astype(dtype)
    expected = np.array([math.erf(v) for v in x.tolist()]).astype(dtype)
    same(emberlet.erf(tensor(x)), expected, rtol=4 * EPSILON[dtype], atol=EPSILON[dtype])


@every("dtype", INTEGERS)
@every("name", ["abs", "negative", "sign", "square", "bitwise_invert", "floor", "round"])
def test_function_of_one_integer_wraps(backend, name, dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 7, 100, info.max - 1, info.min + 1], dtype)
    with np.errstate(all="ignore"):
        expected = x if name in ("floor", "round") else reference(name)(x).astype(dtype)
    same(getattr(emberlet, name)(tensor(x)), expected)


FLOAT_BINARY = "add subtract multiply divide floor_divide remainder fmod pow atan2 maximum minimum".split()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@every("name", FLOAT_BINARY)
def test_function_of_two_floats_on_special_values(backend, name, dtype):
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -7.5]
    a, b = np.meshgrid(*[np.array(values).astype(numpy_dtype(dtype))] * 2)
    with np.errstate(all="ignore"):
        wide = np.float32 if dtype in ("float16", "bfloat16") else dtype
        expected = reference(name)(a.astype(wide), b.astype(wide)).astype(a.dtype)
    same(getattr(emberlet, name)(tensor(a), tensor(b)), expected, rtol=4 * EPSILON[dtype])


@every("dtype", INTEGERS)
@every("name", ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or",
                                  "bitwise_xor", "equal", "not_equal", "less", "less_equal", "greater",
                                  "greater_equal", "logical_and", "logical_or", "logical_xor"])  # fmt: skip
def test_function_of_two_integers_wraps(backend, name, dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, 3, 100, info.max - 1, info.max], dtype)
    a, b = np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        expected = reference(name)(a, b)
    same(getattr(emberlet, name)(tensor(a), tensor(b)), expected)


@every("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
def test_integer_division_by_anything_but_zero_is_exact_and_by_zero_gives_zero(backend, name, dtype):
    signs = (1, -1) if dtype in SIGNED else (1,)
    numbers = [s * v for v in (0, 1, 2, 3, 7, 100) for s in signs]
    a, b = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))

    def exact(x, y):
        if not y:
            return 0
        truncated = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return {"floor_divide": x // y, "remainder": x % y, "trunc_divide": truncated, "fmod": x - truncated * y}[name]

    expected = np.array([exact(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)], dtype)
    same(getattr(emberlet, name)(tensor(a), tensor(b)), expected.reshape(a.shape))


@pytest.mark.parametrize("dtype", SIGNED)
def test_integer_powers(backend, dtype):
    a, b = np.meshgrid(np.array([0, 1, -1, 2, -3, 5], dtype), np.array([0, 1, 2, 3, -1, -2], dtype))
    expected = [
        x**y if y >= 0 else (int(float(x) ** y) if x else 0)
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    ]
    same(emberlet.pow(tensor(a), tensor(b)), np.array(expected).astype(dtype).reshape(a.shape))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_keep_the_dtype(backend, dtype):
    info = np.iinfo(dtype)
    a, b = np.meshgrid(np.array([info.min, 1, 3, 100, info.max], dtype), np.array([0, 1, 3, info.bits - 1], dtype))
    same(emberlet.bitwise_left_shift(tensor(a), tensor(b)), np.left_shift(a, b))
    same(emberlet.bitwise_right_shift(tensor(a), tensor(b)), np.right_shift(a, b))


def test_logic_on_floats_and_bools(backend):
    values = np.array([0.0, -0.0, 1.0, NAN, INF], np.float32)
    a, b = np.meshgrid(values, values)
    for name in ("logical_and", "logical_or", "logical_xor"):
        same(getattr(emberlet, name)(tensor(a), tensor(b)), reference(name)(a, b))
        same(getattr(emberlet, name)(tensor(a != 0), tensor(b != 0)), reference(name)(a != 0, b != 0))
    same(emberlet.logical_not(tensor(values)), np.logical_not(values))
    same(tensor(a != 0) & tensor(b != 0), (a != 0) & (b != 0))
    same(~tensor(values != 0), ~(values != 0))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["hypot", "logaddexp", "copysign", "nextafter"])
def test_composites_of_two_floats(backend, name, dtype):
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 1e-30, 3.5, -7.25, 1e30]
    a, b = np.meshgrid(*[np.array(values, dtype)] * 2)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    same(getattr(emberlet, name)(tensor(a), tensor(b)), expected, rtol=4 * EPSILON[dtype], zeros=name == "copysign")


def test_scalars_take_the_dtype_of_the_tensor(backend):
    for dtype in ("int8", "uint8", "int64", "float16", "bfloat16", "float64"):
        x = emberlet.ones((2,), dtype=dtype)
        assert (x + 1).dtype.name == dtype
        assert (1 - x).dtype.name == dtype
    assert (emberlet.ones((2,), dtype="float16") * 1.5).dtype.name == "float16"
    assert (emberlet.ones((2,), dtype="int32") * 1.5).dtype.name == "float32"
    assert (emberlet.ones((2,), dtype="bool") + 1).dtype.name == "int64"
    assert (emberlet.ones((2,), dtype="bool") & True).dtype.name == "bool"


def test_integers_become_floats_where_only_floats_make_sense(backend):
    assert emberlet.exp(emberlet.arange(3)).dtype.name == "float32"
    assert (emberlet.arange(3) / 2).tolist() == [0.0, 0.5, 1.0]


def test_nan_is_found_among_numbers(backend):
    x = tensor(np.array([[1.0, np.nan], [0.0, np.inf]], np.float32))
    assert [emberlet.contains_nan(v).item() for v in (x, x[1])] == [True, False]
