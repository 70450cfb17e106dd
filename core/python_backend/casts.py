"""Casts between dtypes, and conversion to bytes."""

from .. import dtypes
from .buffers import MICRO, build, flat, is_narrow, store


def cast(backend, x, dtype, saturate=True):
    values = flat(x)
    n = x.size
    if dtype.kind == "string":
        return backend.new([text(v, x.dtype) for v in values], dtype, x.shape)
    if x.dtype.kind == "string":
        values = [float(v) for v in values] if dtype.is_float else [int(v) for v in values]
    if dtype.is_bool:
        out = store(dtype, [v != 0 for v in values], n)
    elif dtype.is_float:
        if saturate or dtype.bits > 8:
            out = store(dtype, values, n)
        else:
            from ..dtypes.narrow import decode, encode

            out = store(dtypes.float32, [decode(dtype, encode(dtype, v, False)) for v in values], n)
    elif x.dtype.is_float:
        out = _truncated(values, dtype, n)
    else:
        out = build(dtype, values, n)
    return backend.new(out, dtype, x.shape)


def _truncated(values, dtype, n):
    if not (MICRO or is_narrow(dtype)):
        try:
            return store(dtype, map(int, values), n)
        except (OverflowError, ValueError):
            pass
    low, high = dtype.range

    def saturated(v):
        if v != v:
            return 0
        return low if v <= low else high if v >= high else int(v)

    return store(dtype, map(saturated, values), n)


def text(value, dtype):
    """The shortest decimal that reads back as `value` in `dtype`."""
    if dtype.is_bool:
        return "True" if value else "False"
    from ..dtypes.decimal import shortest

    return str(shortest(value, dtype))


def to_bytes(x):
    """Backend.to_bytes; a view of x's buffer where it holds exactly these bytes."""
    values = flat(x)
    if x.dtype.bits <= 16 and (x.dtype.is_float or x.dtype.bits < 8):
        from ..dtypes.narrow import pack

        return pack(values, x.dtype)
    if MICRO:
        return memoryview(bytes(values))
    return memoryview(values).cast("B")


def bitcast(backend, x, dtype):
    return backend.from_bytes(bytes(to_bytes(x)), dtype, x.shape)
