"""Elementwise operations, casts, reductions and scatters on NumPy arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...backend.protocol import BINARY, BOOLEAN_RESULT, UNARY
from ...dtypes import DType
from ...dtypes.decimal import shortest
from ...errors import DTypeError, refuse
from ...shapes import broadcast
from ...tensor import Tensor
from .storage import NARROW, WIDE, Array, emberlet_dtype, numpy_dtype

if TYPE_CHECKING:
    from .backend import NumpyBackend

_slow_erf = np.frompyfunc(math.erf, 1, 1)
# The ufunc itself: ndarray.clip reaches it through three functions written in Python.
clipping = getattr(np._core.umath, "clip", np.clip) if hasattr(np, "_core") else np.clip


def erf(x: Array) -> Array:
    """The error function: float64 by the C library, narrower by a rational approximation (largest error 1.8e-7)."""
    if x.dtype == np.float64:
        return np.asarray(_slow_erf(x), np.float64).reshape(x.shape)
    # x·P(x²)/Q(x²) on [-4, 4], beyond which erf is ±1 in float32; the coefficients are the ones XLA and Eigen use.
    x = np.clip(x, np.float32(-4), np.float32(4))
    s = x * x
    p: Array = np.float32(-2.72614225801306e-10) * s
    for c in (2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
              -2.95459980854025e-03):  # fmt: skip
        p = (p + np.float32(c)) * s
    p += np.float32(-1.60960333262415e-02)
    q: Array = np.float32(-1.45660718464996e-05) * s
    for c in (-2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03):
        q = (q + np.float32(c)) * s
    q += np.float32(-1.42647390514189e-02)
    return x * p / q


def _trunc_divide(a: Array, b: Array) -> Array:
    if a.dtype.kind in "fc":
        return np.true_divide(a, b)
    quotient = np.floor_divide(a, b)  # 0 for a zero divisor
    # Floor and truncation differ by one where the signs differ and something is left over.
    if a.dtype.kind == "i":
        quotient += (np.fmod(a, b) != 0) & ((a < 0) != (b < 0)) & (b != 0)
    return quotient


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind != "i":
        return np.power(a, b)
    # An integer to a negative power is 1 over something: 0 unless the base is ±1.
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b & 1, -1, 1), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)


class Kernels(dict[str, Any]):
    """What computes each op of a primitive, which is `name` in the error about an op that has none."""

    def __init__(self, table: dict[str, Any], name: str = "") -> None:
        super().__init__(table)
        self.name = name

    def __missing__(self, op: str) -> Any:
        refuse("no kernel", f"{self.name} {op}".strip(), "the numpy")


# Operations are NumPy's functions of the same name, but for these.
_UNARY = Kernels({op: getattr(np, op) for op in UNARY if hasattr(np, op)} | {
    "neg": np.negative, "round": np.rint, "erf": erf, "bitwise_not": np.invert,
})  # fmt: skip
_BINARY = Kernels({op: getattr(np, op) for op in BINARY if hasattr(np, op)} | {
    "sub": np.subtract, "mul": np.multiply, "div": _trunc_divide, "pow": _power,
    "shift_left": np.left_shift, "shift_right": np.right_shift,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
})  # fmt: skip
_REDUCE = Kernels({
    "sum": np.add.reduce, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
    "any": np.logical_or.reduce, "all": np.logical_and.reduce,
}, "reduce")  # fmt: skip
SCATTER = Kernels({"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}, "scatter")


def narrowed(array: Array, dtype: DType) -> Array:
    """The result of wide arithmetic, rounded or wrapped to `dtype`."""
    if array.dtype == numpy_dtype(dtype):
        return array
    if dtype.is_float and dtype is not dtypes.float16 and dtype is not dtypes.bfloat16:
        return cast(array, dtype, True)
    with np.errstate(all="ignore"):
        return array.astype(numpy_dtype(dtype))


def unary(backend: NumpyBackend, op: str, x: Tensor) -> Tensor:
    array = x.data
    if x.dtype.name in WIDE and (op == "erf" or x.dtype is not dtypes.float16):
        array = array.astype(WIDE[x.dtype.name])
    if op in ("floor", "ceil", "round", "trunc") and not x.dtype.is_float:
        return x
    with np.errstate(all="ignore"):
        out = np.asarray(_UNARY[op](array))
    if op in BOOLEAN_RESULT:
        return backend._tensor(out, dtypes.bool)
    if op == "abs" and array.dtype.kind == "c":
        return backend._tensor(out, dtypes.dtype(out.dtype))
    return backend._tensor(narrowed(out, x.dtype), x.dtype)


def binary(backend: NumpyBackend, op: str, a: Tensor, b: Tensor) -> Tensor:
    left, right, dtype = a.data, b.data, a.dtype
    if dtype.name in NARROW:
        left, right = left.astype(WIDE[dtype.name]), right.astype(WIDE[dtype.name])
    with np.errstate(all="ignore"):
        try:
            out = np.asarray(_BINARY[op](left, right))
        except ValueError:
            broadcast(a.shape, b.shape)  # raises an error that names the shapes
            raise
    if op in BOOLEAN_RESULT:
        return backend._tensor(out, dtypes.bool)
    return backend._tensor(narrowed(out, dtype), dtype)


def cast(array: Array, dtype: DType, saturate: bool) -> Array:
    """`Backend.cast` on an array of any dtype."""
    target = numpy_dtype(dtype)
    if array.dtype == target:
        return array
    if array.dtype.kind == "O":
        return _from_strings(array, dtype)
    if dtype is dtypes.string:
        return _to_strings(array)
    if array.dtype.kind == "V" or not array.dtype.isbuiltin:  # one of ml_dtypes
        narrow_float = "float" in array.dtype.name
        array = array.astype(np.float32 if narrow_float else np.int32)
    if array.dtype.kind == "c" and target.kind not in "cb":
        raise DTypeError(f"{array.dtype} to {dtype} would lose the imaginary part; write real(x).astype({dtype})")
    with np.errstate(all="ignore"):
        if dtype.is_bool:
            return array != 0
        if dtype.is_integer:
            if array.dtype.kind == "f":
                return _float_to_integer(array, dtype)
            return array.astype(target)
        if dtype.bits <= 8:
            return _to_small_float(array, dtype, saturate)
        if dtype is dtypes.bfloat16 and array.dtype.kind != "f":
            array = array.astype(np.float32)
        return array.astype(target)


def _float_to_integer(array: Array, dtype: DType) -> Array:
    low, high = dtype.range
    wide = np.trunc(array.astype(np.float64))
    inside = np.where(np.isnan(wide), 0.0, np.clip(wide, float(low), float(high)))
    if dtype.bits < 64:
        return inside.astype(np.int64).astype(numpy_dtype(dtype))
    # float(high) is 2**63 or 2**64, one too many.
    out = np.where(inside >= float(high), 0.0, inside).astype(numpy_dtype(dtype))
    return np.where(inside >= float(high), np.array(high, out.dtype), out)


def _to_small_float(array: Array, dtype: DType, saturate: bool) -> Array:
    target = numpy_dtype(dtype)
    wide = array.astype(np.float32) if array.dtype != np.float64 else array
    if dtype is dtypes.float8_e8m0fnu:
        return _to_power_of_two(wide, saturate).view(target)
    import ml_dtypes

    largest = float(ml_dtypes.finfo(target).max)
    if saturate or dtype.bits < 8:
        wide = np.clip(wide, -largest, largest)  # NaN passes through
    return wide.astype(target)


def _to_power_of_two(array: Array, saturate: bool) -> Array:
    """Codes of float8_e8m0fnu: the exponent of the next power of two upwards; zero becomes the smallest."""
    mantissa, exponent = np.frexp(array)  # the mantissa lies in [0.5, 1)
    code = np.where(array == 0, 0, np.maximum(exponent + 126 + (mantissa > 0.5), 0))
    code = np.where(code >= 255, 254 if saturate else 255, code)
    special = ~(np.isfinite(array) & (array >= 0))
    return np.where(special, 255, code).astype(np.uint8)


def _from_strings(array: Array, dtype: DType) -> Array:
    if dtype.is_float:
        return cast(np.array([float(s) for s in array.reshape(-1)], np.float64).reshape(array.shape), dtype, True)
    if dtype.is_bool:
        return np.array([bool(s) for s in array.reshape(-1)], np.bool_).reshape(array.shape)
    whole = [int(s) for s in array.reshape(-1)]
    return np.array(whole, np.int64).astype(numpy_dtype(dtype)).reshape(array.shape)


def _to_strings(array: Array) -> Array:
    dtype = emberlet_dtype(array.dtype)
    values = (array.astype(WIDE[dtype.name]) if dtype and dtype.name in NARROW else array).reshape(-1).tolist()
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [str(shortest(v, dtype) if dtype and dtype.is_float else v) for v in values]
    return out


def reduce(backend: NumpyBackend, op: str, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    array = x.data.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else x.data
    with np.errstate(all="ignore"):
        if op in ("sum", "prod"):
            out = _REDUCE[op](array, axis=axes, keepdims=keepdims, dtype=array.dtype)
        elif op in ("max", "min"):
            initial = {"initial": identity(op, array.dtype)} if not array.size else {}
            out = _REDUCE[op](array, axis=axes, keepdims=keepdims, **initial)
        else:
            out = _REDUCE[op](array, axis=axes, keepdims=keepdims)
    if op in BOOLEAN_RESULT:
        return backend._tensor(np.asarray(out, np.bool_), dtypes.bool)
    return backend._tensor(narrowed(np.asarray(out), x.dtype), x.dtype)


def where(condition: Array, a: Array, b: Array) -> Array:
    """np.where, which takes up to ten times as long for a mask without long runs: it branches for each element."""
    word = WORDS.get(a.dtype.itemsize)
    if word is None or a.dtype.kind == "O" or max(condition.size, a.size, b.size) < BRANCHING:
        return np.where(condition, a, b)
    mask = np.negative(condition.view(np.int8)).astype(word)
    out = np.asarray(np.bitwise_and(np.bitwise_xor(a.view(word), b.view(word)), mask))
    np.bitwise_xor(out, b.view(word), out=out)
    return out.view(a.dtype)


def identity(op: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of op "max" or "min"."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if op == "max" else np.inf)
    if dtype.kind == "b":
        return op == "min"
    return np.iinfo(dtype).min if op == "max" else np.iinfo(dtype).max


WORDS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}  # integers with the bits of elements of so many bytes
BRANCHING = 1 << 11  # elements from which np.where takes longer than computing with the bits


def scatter(backend: NumpyBackend, x: Tensor, indices: Tensor, updates: Tensor, axis: int, op: str) -> Tensor:
    wide = op != "none" and x.dtype.name in WIDE
    out = x.data.astype(WIDE[x.dtype.name]) if wide else x.data.copy()
    values = updates.data.astype(WIDE[x.dtype.name]) if wide else updates.data
    key = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    key[axis] = indices.data
    with np.errstate(all="ignore"):
        if op == "none":
            out[tuple(key)] = values
        else:
            SCATTER[op].at(out, tuple(key), values)
    return backend._tensor(narrowed(out, x.dtype), x.dtype)
