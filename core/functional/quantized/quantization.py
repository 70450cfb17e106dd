"""Quantizing to small integers (or 8-, 6- and 4-bit floats) and back.

real = (quantized - zero_point) * scale. Scale and zero point are numbers or tensors: one per tensor, one per slice
along `axis`, or one per block of `block_size` elements along it (ONNX QuantizeLinear, DequantizeLinear; Burn's
schemes).
"""

from ... import dtypes
from ...backend import operation
from ...errors import DTypeError, ShapeError
from ...shapes import axis_of, broadcast
from ..movement.rearranging import broadcast_to, narrow, reshape
from ..operands import astype, floating, is_scalar, tensor
from ..overriding import composite

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7),
           "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3), "int32": (-(2**31), 2**31 - 1)}  # fmt: skip


def _spread(value, x, axis, block_size):
    """`value` reshaped to broadcast with x."""
    if type(value.size) is int and value.size == 1 and not block_size:  # of an open length, it is one a slice
        return reshape(value, ())
    axis = axis_of(axis, x.ndim)
    if block_size:
        if value.ndim != x.ndim:
            raise ShapeError("blocked scales have the rank of {}, found shape {}".format(x.shape, value.shape))
        blocks = -(-x.shape[axis] // block_size) if block_size > 0 else -1
        fits = x.shape[:axis] + (blocks,) + x.shape[axis + 1 :]
        if value.shape != fits:
            raise ShapeError(
                "scales of blocks of {} along axis {} of {} have the shape {}, found {}".format(
                    block_size, axis, x.shape, fits, value.shape
                )
                if block_size > 0
                else "block_size is 0 or more, found {}".format(block_size)
            )
        shape = value.shape[: axis + 1] + (block_size,) + value.shape[axis + 1 :]
        wide = broadcast_to(reshape(value, value.shape[: axis + 1] + (1,) + value.shape[axis + 1 :]), shape)
        wide = reshape(wide, value.shape[:axis] + (value.shape[axis] * block_size,) + value.shape[axis + 1 :])
        return narrow(wide, axis, 0, x.shape[axis])
    if value.ndim != 1 or value.shape[0] != x.shape[axis]:
        raise ShapeError("scales {} do not fit axis {} of {}".format(value.shape, axis, x.shape))
    return reshape(value, (1,) * axis + value.shape + (1,) * (x.ndim - axis - 1))


#: function; ONNX QuantizeLinear
@composite
def quantize_linear(x, scale, zero_point=None, *, axis=1, block_size=0, dtype=None, saturate=True):
    """x / scale rounded half to even, plus zero_point, saturated to the dtype (the zero point's, else `dtype`, else
    uint8). NaN becomes the lowest integer, as in onnxruntime. Narrow floats are rounded to the nearest value;
    `saturate` False lets 8-bit floats overflow to inf or NaN."""
    x = floating(x)
    backend = x.backend
    if zero_point is not None and not is_scalar(zero_point):
        zero_point = tensor(zero_point, backend)
    if dtype is not None:
        dtype = dtypes.dtype(dtype)
    elif zero_point is not None and not is_scalar(zero_point):
        dtype = zero_point.dtype
    else:
        dtype = dtypes.uint8
    scale = tensor(scale, backend)
    # The quotient is computed in the wider of the two precisions.
    wide = scale.dtype if scale.dtype.is_float and scale.dtype.bits >= 32 else dtypes.promote(x.dtype, dtypes.float32)
    x, scale = astype(x, wide), _spread(astype(scale, wide), x, axis, block_size)
    y = backend.binary("div", x, scale)
    zero = None
    if zero_point is not None:
        zero = astype(tensor(zero_point, backend), wide)
        zero = _spread(zero, x, axis, block_size)
    if dtype.is_float:
        return backend.cast(y if zero is None else backend.binary("add", y, zero), dtype, saturate)
    return to_levels(y, zero, dtype)


def to_levels(x, zero, dtype):
    """Floats x rounded half to even, plus `zero` (of x's dtype, or None), saturated to an integer dtype. NaN becomes
    the lowest, as in onnxruntime."""
    backend = x.backend
    if dtype.name not in RANGES:
        raise DTypeError("cannot quantize to {}; choose one of {}".format(dtype, ", ".join(sorted(RANGES))))
    low, high = RANGES[dtype.name]
    if zero is not None and zero.size > 1 and broadcast(x.shape, zero.shape) != x.shape:
        raise ShapeError("zero points {} do not fit a result of shape {}".format(zero.shape, x.shape))
    fast = operation(backend, "to_levels")
    found = fast(x, zero, low, high, dtype) if fast and dtype.bits <= 16 else None
    if found is not None:
        return found
    return rounded_levels(x, zero, low, high, dtype)


def rounded_levels(x, zero, low, high, dtype):
    """`to_levels` by definition. low, high: the dtype's range."""
    backend = x.backend
    y = backend.unary("round", x)
    if zero is not None:
        y = backend.binary("add", y, zero)
    lowest = backend.full((), low, x.dtype)
    y = backend.where(backend.binary("gt", y, lowest), y, lowest)
    y = backend.binary("minimum", y, backend.full((), high, x.dtype))
    return backend.cast(y, dtype)


#: function; ONNX DequantizeLinear
@composite
def dequantize_linear(x, scale, zero_point=None, *, axis=1, block_size=0, dtype=None):
    """(x - zero_point) * scale, in `dtype` or, by default, the scale's dtype."""
    x = tensor(x)
    backend = x.backend
    scale = tensor(scale, backend)
    if not scale.dtype.is_float:
        scale = astype(scale, dtypes.float32)
    out = scale.dtype if dtype is None else dtypes.dtype(dtype)
    wide = out if out.bits >= 32 else dtypes.float32
    zero = None if zero_point is None else _spread(tensor(zero_point, backend), x, axis, block_size)
    factor = _spread(astype(scale, wide), x, axis, block_size)
    fast = operation(backend, "from_levels")
    if fast and x.dtype.is_integer and x.dtype.bits <= 16:
        return astype(fast(x, zero, factor), out)
    # int32 accumulators do not fit float32's mantissa, so the difference is computed in integers.
    if zero is not None:
        if x.dtype.is_integer and zero.dtype.is_integer:
            exact = dtypes.int32 if x.dtype.bits < 32 else x.dtype
            y = backend.binary("sub", astype(x, exact), astype(zero, exact))
        else:
            y = backend.binary("sub", astype(x, wide), astype(zero, wide))
    else:
        y = x
    return astype(backend.binary("mul", astype(y, wide), factor), out)


#: function; ONNX DynamicQuantizeLinear -> tuple[Tensor, Tensor, Tensor]
@composite
def dynamic_quantize_linear(x):
    """(uint8 values, scale, zero point), with the scale that maps x's range, extended to include 0, to 0 … 255."""
    x = floating(x)
    backend = x.backend
    axes = tuple(range(x.ndim))
    zero = backend.full((), 0, x.dtype)
    if not x.size:  # as in onnxruntime and ONNX's reference
        point = backend.full((), 0, dtypes.uint8)
        return backend.full(x.shape, 0, dtypes.uint8), backend.full((), 1, x.dtype), point
    fast = operation(backend, "range_levels")
    found = fast(x) if fast else None
    if found is not None:
        return found
    fast = operation(backend, "extremes")
    ends = fast(x) if fast else [backend.reduce(op, x, axes, False) for op in ("min", "max")]
    low, high = backend.binary("minimum", ends[0], zero), backend.binary("maximum", ends[1], zero)
    scale = backend.binary("div", backend.binary("sub", high, low), backend.full((), 255, x.dtype))
    safe = backend.where(backend.binary("eq", scale, zero), backend.full((), 1, x.dtype), scale)
    point = backend.unary("round", backend.binary("div", backend.unary("neg", low), safe))
    point = backend.binary("minimum", backend.binary("maximum", point, zero), backend.full((), 255, x.dtype))
    point = backend.cast(point, dtypes.uint8)
    return quantize_linear(x, safe, point), safe, point
