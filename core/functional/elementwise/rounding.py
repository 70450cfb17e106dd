"""Rounding to whole numbers. Integers come back as they are."""

from ...errors import ArgumentError
from ..operands import alias, numeric


def _round(op, x):
    x = numeric(x, op)
    return x.backend.unary(op, x) if x.dtype.is_float else alias(x)


#: method; array API; Burn floor
def floor(x):
    """The largest whole number not above x."""
    return _round("floor", x)


#: method; array API; Burn ceil
def ceil(x):
    """The smallest whole number not below x."""
    return _round("ceil", x)


#: method; array API
def trunc(x):
    """x without its fraction."""
    return _round("trunc", x)


#: method; array API; Burn round
def round(x, decimals=0):
    """The nearest whole number, or with that many decimals; halves round to even."""
    if not decimals:
        return _round("round", x)
    x = numeric(x, "round")
    if abs(decimals) > 300:
        raise ArgumentError("round: decimals are -300 to 300, found {}".format(decimals))
    if not x.dtype.is_float and decimals > 0:
        return alias(x)
    scale = 10 ** abs(decimals)
    rounded = _round("round", x * scale if decimals > 0 else x / scale)
    return (rounded / scale if decimals > 0 else rounded * scale).astype(x.dtype)
