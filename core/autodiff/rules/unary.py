"""The rules of elementwise primitives of one operand: op(x, y) -> pull, for y = op(x)."""

import math

from ..arithmetic import add, div, mul, number, sub, unary
from ..arithmetic import neg as negative


def neg(x, y):
    return lambda g: (negative(g),)


def abs(x, y):
    # The derivative at 0 is 0, as in PyTorch.
    return lambda g: (mul(g, unary("sign", x)),)


def sqrt(x, y):
    return lambda g: (div(g, mul(y, number(2, y))),)


def exp(x, y):
    return lambda g: (mul(g, y),)


def expm1(x, y):
    return lambda g: (mul(g, add(y, number(1, y))),)


def log(x, y):
    return lambda g: (div(g, x),)


def log1p(x, y):
    return lambda g: (div(g, add(x, number(1, x))),)


def erf(x, y):
    return lambda g: (mul(g, mul(number(2 / math.sqrt(math.pi), x), unary("exp", negative(mul(x, x))))),)


def sin(x, y):
    return lambda g: (mul(g, unary("cos", x)),)


def cos(x, y):
    return lambda g: (negative(mul(g, unary("sin", x))),)


def tan(x, y):
    return lambda g: (mul(g, add(mul(y, y), number(1, y))),)


def _one_minus_square(x):
    """1 - x², without the cancellation near 1."""
    one = number(1, x)
    return mul(sub(one, x), add(one, x))


def asin(x, y):
    return lambda g: (div(g, unary("sqrt", _one_minus_square(x))),)


def acos(x, y):
    return lambda g: (negative(div(g, unary("sqrt", _one_minus_square(x)))),)


def atan(x, y):
    return lambda g: (div(g, add(mul(x, x), number(1, x))),)


def sinh(x, y):
    return lambda g: (mul(g, unary("cosh", x)),)


def cosh(x, y):
    return lambda g: (mul(g, unary("sinh", x)),)


def tanh(x, y):
    return lambda g: (mul(g, _one_minus_square(y)),)


def asinh(x, y):
    return lambda g: (div(g, unary("sqrt", add(mul(x, x), number(1, x)))),)


def acosh(x, y):
    one = number(1, x)
    return lambda g: (div(g, unary("sqrt", mul(sub(x, one), add(x, one)))),)


def atanh(x, y):
    return lambda g: (div(g, _one_minus_square(x)),)
