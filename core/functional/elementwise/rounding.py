"""Rounding to whole numbers. Integers come back as they are."""

from ..operands import numeric


def _round(op, x):
    x = numeric(x, op)
    return x.backend.unary(op, x) if x.dtype.is_float else x


def floor(x):
    """The largest whole number not above x."""
    return _round("floor", x)


def ceil(x):
    """The smallest whole number not below x."""
    return _round("ceil", x)


def trunc(x):
    """x without its fraction."""
    return _round("trunc", x)


def round(x):
    """The nearest whole number; halves go to the even one."""
    return _round("round", x)
