"""Rounding to a number of decimals, or to tens."""

from ...errors import ArgumentError
from ..operands import alias, astype
from ..promotion import widened


def to_decimals(x, decimals):
    """x rounded to multiples of 10 ** -decimals; halves round to even. Raises ArgumentError beyond 300 decimals."""
    if abs(decimals) > 300:
        raise ArgumentError("round: decimals are -300 to 300, found {}".format(decimals))
    if not x.dtype.is_float:
        return alias(x) if decimals > 0 else _to_tens(x, 10**-decimals)
    x, dtype = widened(x)
    if abs(decimals) > 38 and x.dtype.bits < 64:  # beyond the powers of ten of float32
        return astype(x if decimals > 0 else x * 0, dtype)
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return astype((x / scale).round() * scale, dtype)
    large = x * scale
    # What is too large to be scaled has no decimals.
    return astype(x.backend.where(large.isfinite(), large.round() / scale, x), dtype)


def _to_tens(x, scale):
    """Integers rounded to multiples of `scale`, a power of ten, without floats, which would lose digits."""
    if scale > x.dtype.range[1]:
        return x * 0
    whole, rest = x // scale, x % scale
    up = (rest > scale // 2) | ((rest == scale // 2) & (whole % 2 == 1))
    return (whole + up.astype(x.dtype)) * scale
