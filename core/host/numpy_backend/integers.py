"""Sums of small integers by BLAS, whose floats hold them exactly; quantization in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...dtypes import DType
from ...shapes import size
from ...tensor import Tensor
from .storage import Array, numpy_dtype

if TYPE_CHECKING:
    from .backend import NumpyBackend


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
    zero, most = np.float32(0), np.float32(255)
    with np.errstate(all="ignore"):  # of infinities and NaN
        low, high = np.minimum(x.data.min(), zero), np.maximum(x.data.max(), zero)
        scale = (high - low) / most
        if scale == 0:
            scale = np.float32(1)
        nearest = np.minimum(np.maximum(np.rint(-low / scale), zero), most)
        point = backend.cast(backend._tensor(nearest, x.dtype), dtypes.uint8)
        out = np.asarray(x.data / scale)
        np.rint(out, out)
        out += point.data
        np.minimum(np.fmax(out, zero, out=out), most, out=out)  # NaN becomes 0
    return backend._tensor(out.astype(np.uint8), dtypes.uint8), backend._tensor(scale, x.dtype), point
