"""Levels of quantized values, each way in one pass."""

import sys
from array import array

from .. import dtypes
from ..tensor import Tensor
from .buffers import MICRO, flat, store

_ROUNDING = 1.5 * 2.0**52  # added to a float64, it rounds half to even, and leaves the integer in the lowest bits
_MANY = 512  # levels whose floats are taken from a table
_LOWEST = 0 if sys.byteorder == "little" else 7  # the byte of a float64 that has the lowest bits


def to_levels(backend, x, zero, low, high, dtype):
    """See `functional.to_levels`; None for what it computes itself. Cut to integers before it is rounded, a number
    gives the same level."""
    if dtype.bits < 8 or (zero is not None and zero.size != 1):
        return None
    z = 0 if zero is None else int(flat(zero)[0])
    low, high = low - z, high - z
    if dtype.bits == 8 and not MICRO and x.size and abs(z) <= 255:
        from .coded import coded

        buffer = coded(x)
        if buffer is None:
            return backend.new(_bytes(flat(x), z, low, high, dtype), dtype, x.shape)
        found = buffer.codes.translate(bytes(_bytes(buffer.of_code, z, low, high, dtype)))
        return backend.new(array("b" if dtype is dtypes.int8 else "B", found), dtype, x.shape)
    out = [round(v if v < high else high) + z if v > low else low + z for v in flat(x)]
    return backend.new(store(dtype, out, len(out)), dtype, x.shape)


def _bytes(values, z, low, high, dtype):
    """The buffer of 8-bit levels, without an integer object for each."""
    least, most = low + _ROUNDING, high + _ROUNDING
    sums = array("d", [v + _ROUNDING if low < v < high else most if v >= high else least for v in values])
    found = sums.tobytes()[_LOWEST::8]
    if z:
        found = found.translate(bytes([(n + z) & 255 for n in range(256)]))
    return array("b" if dtype is dtypes.int8 else "B", found)


def from_levels(backend, x, zero, scale):
    """(x - zero) * scale for integers of at most 16 bits, in the scale's dtype."""
    if x.dtype.bits == 8 and x.size and not MICRO and scale.dtype is dtypes.float32:
        from .level_buffers import Levels

        x, zero, scale = _kept(backend, x), _kept(backend, zero), _kept(backend, scale)
        levels = Levels(x, zero, scale, lambda: _from_levels(backend, x, zero, scale))
        if x.size <= _MANY or scale.size > 1 or (zero is not None and zero.size > 1):
            return backend.new(levels, scale.dtype, x.shape)
        return backend.new(_coded(x, zero, scale, levels), scale.dtype, x.shape)
    return backend.new(_from_levels(backend, x, zero, scale), scale.dtype, x.shape)


def _kept(backend, x):
    """x as it is now, for what is computed when it is read: assigning to x later changes a copy."""
    if x is None:
        return None
    buffer = x.data[0]
    if isinstance(buffer, memoryview) and type(buffer.obj).__name__ not in ("bytes", "mmap"):  # the caller's array
        return backend.from_bytes(bytes(backend.to_bytes(x)), x.dtype, x.shape)
    return Tensor(x.data, x.dtype, x.shape, backend)


def _coded(x, zero, scale, levels):
    from .coded import Coded

    s, z = flat(scale)[0], 0 if zero is None else flat(zero)[0]
    first, last = x.dtype.range
    # The byte of a negative level is that of 256 more.
    of_code = [(v - z) * s for v in list(range(last + 1)) + list(range(first, 0))]
    return Coded(bytes(flat(x)), store(scale.dtype, of_code, 256), levels)


def _from_levels(backend, x, zero, scale):
    """The buffer of `from_levels`."""
    each = _in_common(x, zero, scale)
    if scale.dtype not in (dtypes.float32, dtypes.float64) or not each:
        real = backend.cast(x, scale.dtype)
        if zero is not None:
            real = backend.binary("sub", real, backend.cast(zero, scale.dtype))
        return flat(backend.binary("mul", real, scale))
    rows = x.size // each
    steps = list(flat(scale)) * (1 if scale.size == rows else rows)
    points = [0] * rows if zero is None else list(flat(zero)) * (1 if zero.size == rows else rows)
    values = flat(x)
    out = []
    for r in range(rows):
        s, z = steps[r], points[r]
        out.extend([(v - z) * s for v in values[r * each : (r + 1) * each]])
    return store(scale.dtype, out, len(out))


def centered_levels(backend, x, zero):
    """x - zero, int32 or None, of 8-bit integers, in int32."""

    def made():
        out = backend.cast(x, dtypes.int32)
        return flat(out if zero is None else backend.binary("sub", out, zero))

    if x.dtype.bits < 8 or MICRO or not x.size:
        return backend.new(made(), dtypes.int32, x.shape)
    x, zero = _kept(backend, x), _kept(backend, zero)
    from .level_buffers import Levels

    return backend.new(Levels(x, zero, None, made), dtypes.int32, x.shape)


def _in_common(x, zero, scale):
    """How many neighboring elements of x have one zero point and one scale, in its first axes; 0 if others have."""
    each = x.size
    for p in (zero, scale):
        if p is None or p.size == 1:
            continue
        if len(p.shape) != len(x.shape) or not p.size:
            return 0
        first = 0
        while first < len(p.shape) and p.shape[first] == x.shape[first]:
            first += 1
        if [d for d in p.shape[first:] if d != 1] or (each != x.size and each * p.size != x.size):
            return 0
        each = x.size // p.size
    return each
