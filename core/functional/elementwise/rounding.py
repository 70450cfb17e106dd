"""Rounding to whole numbers. Integers come back as they are."""

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
    from .decimals import to_decimals

    return to_decimals(numeric(x, "round"), decimals)
