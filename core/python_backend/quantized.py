"""Levels of quantized values, each way in one pass."""

from .. import dtypes
from .buffers import flat, store


def to_levels(backend, x, zero, low, high, dtype):
    """See `functional.to_levels`; None for what it computes itself. Cut to integers before it is rounded, a number
    gives the same level."""
    if dtype.bits < 8 or (zero is not None and zero.size != 1):
        return None
    z = 0 if zero is None else int(flat(zero)[0])
    low, high = low - z, high - z
    out = [round(v if v < high else high) + z if v > low else low + z for v in flat(x)]
    return backend.new(store(dtype, out, len(out)), dtype, x.shape)


def from_levels(backend, x, zero, scale):
    """(x - zero) * scale for integers of at most 16 bits, in the scale's dtype."""
    each = x.shape[-1] if x.shape else 1
    of_rows = [p for p in (zero, scale) if p is not None and p.size != 1]
    wide = scale.dtype in (dtypes.float32, dtypes.float64) and each and x.size
    if not wide or [p for p in of_rows if p.shape != x.shape[:-1] + (1,)]:
        real = backend.cast(x, scale.dtype)
        if zero is not None:
            real = backend.binary("sub", real, backend.cast(zero, scale.dtype))
        return backend.binary("mul", real, scale)
    rows = x.size // each
    steps = list(flat(scale)) * (1 if scale.size == rows else rows)
    points = [0] * rows if zero is None else list(flat(zero)) * (1 if zero.size == rows else rows)
    values = flat(x)
    out = []
    for r in range(rows):
        s, z = steps[r], points[r]
        out.extend([(v - z) * s for v in values[r * each : (r + 1) * each]])
    return backend.new(store(scale.dtype, out, len(out)), scale.dtype, x.shape)
