"""Sums of small integers by BLAS, whose floats hold them exactly; quantization in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...shapes import size
from ...tensor import Tensor
from .elementwise import clipping
from .storage import Array, numpy_dtype

if TYPE_CHECKING:
    from .backend import NumpyBackend

_ZERO, _ONE, _MOST, _INFINITE = (np.float32(n) for n in (0, 1, 255, np.inf))
_LEAST = np.finfo(np.float32).tiny  # of a unit whose rounding does not show


def _largest(x: Array) -> int:
    return max(int(x.max()), -int(x.min())) if x.size else 0


def _exact(a: Array, b: Array, terms: int) -> tuple[Array, Array]:
    """a and b in the narrowest float in which a sum of `terms` products is exact."""
    limit = 1 << 24
    narrow = terms * 255 * 255 < limit or terms * _largest(a) * _largest(b) < limit
    float_dtype = np.float32 if narrow else np.float64
    return a.astype(float_dtype), b.astype(float_dtype)


def _integers(x: Array) -> Array:
    return x.astype(np.int32) if x.dtype == np.float32 else x.astype(np.int64).astype(np.int32)


def matmul_8bit(backend: NumpyBackend, a: Tensor, b: Tensor) -> Tensor:
    """a @ b of int32 within ±255."""
    left, right = _exact(a.data, b.data, a.shape[-1])
    return backend._tensor(_integers(np.matmul(left, right)), dtypes.int32)


def conv_8bit(backend: NumpyBackend, x: Tensor, weight: Tensor, bias: None, *options: Any) -> Tensor:
    """`conv` of int32 within ±255."""
    from .convolution import conv

    image, taps = _exact(x.data, weight.data, size(weight.shape[1:]))
    return backend._tensor(_integers(conv(image, taps, None, *options)), dtypes.int32)


def to_levels(backend: NumpyBackend, x: Tensor, zero: Tensor | None, low: int, high: int, dtype: DType) -> Tensor:
    """x rounded half to even, plus zero, cut to low … high, as integers; NaN becomes low."""
    out = np.asarray(np.rint(x.data))
    if zero is not None:
        out += zero.data
    np.clip(out, low, high, out=out)
    missing = np.isnan(out)
    if missing.any():
        out[missing] = low
    if dtype.bits < 8:
        out = out.astype(np.int8)
    return backend._tensor(out.astype(numpy_dtype(dtype)), dtype)


def from_levels(backend: NumpyBackend, x: Tensor, zero: Tensor | None, scale: Tensor) -> Tensor:
    """(x - zero) * scale for integers of at most 16 bits, in the scale's dtype."""
    out = x.data.astype(scale.data.dtype)
    if zero is not None:
        out -= zero.data.astype(out.dtype)
    out *= scale.data
    return backend._tensor(out, scale.dtype)


def range_levels(backend: NumpyBackend, x: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """`functional.dynamic_quantize_linear` of float32 numbers in few passes; None for others."""
    if x.dtype is not dtypes.float32:
        return None
    levels, scale, point = np.empty(x.shape, np.uint8), np.empty((), np.float32), np.empty((), np.uint8)
    with np.errstate(all="ignore"):  # of infinities and NaN
        find_levels(x.data, np.empty(x.shape, np.float32), levels, scale, point)
    return backend._tensor(levels, dtypes.uint8), backend._tensor(scale, x.dtype), backend._tensor(point, dtypes.uint8)


def find_levels(
    x: Array, floats: Array, levels: Array | None, scale: Array | None, point: Array | None, none_below: bool = False
) -> None:
    """Write what dynamic_quantize_linear gives of x, as far as it is asked for; floats: the levels less their zero
    point, of which 0 may have any sign; none_below: whether no number of x is below 0."""
    # Where the extremes are takes NumPy less time than their reductions, and least in one axis.
    row = x.ravel()
    low = _ZERO if none_below or not x.size else row[row.argmin()]
    high = row[row.argmax()] if x.size else _ZERO
    low, high = _ZERO if low > 0 else low, _ZERO if high < 0 else high  # NaN stays
    unit = (high - low) / _MOST
    if unit == 0:
        unit = _ONE
    divisor, middle = unit, 0
    if scale is not None:
        scale[...] = unit
        divisor = scale  # NumPy makes an array of a number in each call
    if _LEAST <= unit < _INFINITE:
        np.divide(x, divisor, floats)
        np.rint(floats, floats)
        if low:  # without numbers below 0, the highest level is 255
            middle = round(float(-low / unit))
            if round(float(high / unit)) > 255 - middle:
                clipping(floats, -_MOST, np.float32(255 - middle), floats)  # np.minimum takes twice as long
    else:
        middle = _beyond(x, floats, low, unit)
    if levels is not None:
        np.add(floats, np.float32(middle), out=levels, casting="unsafe")
    if point is not None:
        point[...] = middle


def _beyond(x: Array, floats: Array, low: Any, unit: Any) -> int:
    """The zero point of a range that is infinite, NaN or smaller than floats resolve, and the levels less it."""
    middle = np.minimum(np.fmax(np.rint(-low / unit), _ZERO), _MOST)
    np.divide(x, unit, floats)
    np.rint(floats, floats)
    np.fmax(floats, -middle, out=floats)  # NaN becomes the lowest
    np.minimum(floats, _MOST - middle, out=floats)
    return int(middle)
