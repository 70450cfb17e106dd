"""Functions of one or two numbers that never raise: the fallbacks of the fast ones.

Floats follow IEEE 754: division by zero gives an infinity, a domain error NaN, an overflow an infinity. Integer
division by zero gives 0; results are wrapped to the dtype when stored.
"""

import math
from math import copysign

INF = float("inf")
NAN = float("nan")


def log1p(x):
    """log(1 + x), accurate for small x (MicroPython has no math.log1p)."""
    u = 1.0 + x
    if u == 1.0:
        return x
    return math.log(u) * x / (u - 1.0) if u - u == 0 else u


if hasattr(math, "log1p"):
    log1p = math.log1p


def _erf(x):
    """erf for ports without it: a series below 3, a continued fraction up to 6, and 1 beyond."""
    a = abs(x)
    if a < 3:
        term = total = a
        for n in range(1, 60):
            term *= -a * a / n
            total += term / (2 * n + 1)
        total *= 1.1283791670955126
    elif a < 6:
        fraction = 0.0
        for n in range(60, 0, -1):
            fraction = n / 2 / (a + fraction)
        total = 1 - math.exp(-a * a) / (a + fraction) / 1.772453850905516
    else:
        total = a if a != a else 1.0
    return copysign(total, x)


erf = getattr(math, "erf", _erf)


def _expm1(x):
    u = math.exp(x)
    if u == 1.0:
        return x
    return -1.0 if u - 1.0 == -1.0 else (u - 1.0) * x / math.log(u)


expm1 = getattr(math, "expm1", _expm1)


def guarded(function, on_error):
    """`function`, but on_error(x) if it raises."""

    def safe(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return on_error(x)

    return safe


def nan(x):
    return NAN


def rounding(function):
    """A rounding function that keeps infinities, NaN and the sign of zero."""

    def rounded(x):
        return copysign(function(x), x) if x - x == 0 else x

    return rounded


def sign(x):
    return 1 if x > 0 else -1 if x < 0 else x


def divide(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return NAN if a == 0 or a != a else copysign(INF, a) * copysign(1.0, b)


def floor_divide(a, b):
    try:
        return a // b
    except ZeroDivisionError:
        return divide(a, b)


def remainder(a, b):
    try:
        return a % b
    except (ZeroDivisionError, ValueError):
        return NAN


def fmod(a, b):
    try:
        return math.fmod(a, b)
    except ValueError:
        return NAN


def power(a, b):
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and b % 2 == 1 else INF
    except (ValueError, ZeroDivisionError):
        if a == 0:  # to a negative power
            return copysign(INF, a) if b % 2 == 1 else INF
        if a < 0 and b != math.floor(b):
            return NAN
        return -INF if a < 0 and b % 2 == 1 else INF


def int_divide(a, b):
    if not b:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def int_floor_divide(a, b):
    return a // b if b else 0


def int_remainder(a, b):
    return a % b if b else 0


def int_fmod(a, b):
    if not b:
        return 0
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def int_power(a, b):
    if 0 <= b < 64:
        return a**b
    if b >= 0:  # the wrapped power, in as many steps as b has bits
        out = 1
        while b:
            if b & 1:
                out = out * a & 0xFFFFFFFFFFFFFFFF
            a = a * a & 0xFFFFFFFFFFFFFFFF
            b >>= 1
        return out
    return a if b & 1 and (a == 1 or a == -1) else 1 if a == 1 or a == -1 else 0


def maximum(a, b):
    return a if a > b or a != a else b


def minimum(a, b):
    return a if a < b or a != a else b


def shift_left(a, b):
    return a << b if 0 <= b < 64 else 0


def shift_right(a, b):
    return a >> b if 0 <= b < 64 else (0 if a >= 0 else -1)
