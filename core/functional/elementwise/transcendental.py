"""Exponentials, logarithms, roots, trigonometry: functions of one float. Integers become float32 first."""

from math import pi

from ..operands import floating
from ..overriding import composite


def _unary(op, x):
    x = floating(x)
    return x.backend.unary(op, x)


#: method; array API; Burn sqrt
def sqrt(x):
    """Square root; NaN below zero."""
    return _unary("sqrt", x)


#: method; PyTorch rsqrt
@composite
def rsqrt(x):
    """1 / sqrt(x)."""
    x = floating(x)
    return x.backend.binary("div", x.backend.full((), 1, x.dtype), x.backend.unary("sqrt", x))


#: method; array API; Burn exp
def exp(x):
    """e to the power of x."""
    return _unary("exp", x)


#: method; PyTorch exp2
@composite
def exp2(x):
    """2 to the power of x."""
    x = floating(x)
    return x.backend.binary("pow", x.backend.full((), 2, x.dtype), x)


#: method; array API
def expm1(x):
    """exp(x) - 1, accurate for small x."""
    return _unary("expm1", x)


#: method; array API; Burn log
def log(x):
    """Natural logarithm; -inf at 0, NaN below."""
    return _unary("log", x)


#: method; array API; Burn log1p
def log1p(x):
    """log(1 + x), accurate for small x."""
    return _unary("log1p", x)


def _log(x, base):
    # Dividing, instead of multiplying by the inverse, gives whole numbers for more exact powers of the base.
    x = floating(x)
    return x.backend.binary("div", x.backend.unary("log", x), x.backend.full((), base, x.dtype))


#: method; array API
def log2(x):
    """Logarithm to base 2."""
    return _log(x, 0.6931471805599453)


#: method; array API
def log10(x):
    """Logarithm to base 10."""
    return _log(x, 2.302585092994046)


#: method; ONNX Erf; PyTorch erf; Burn erf
def erf(x):
    """The error function."""
    return _unary("erf", x)


#: method; PyTorch erfc
@composite
def erfc(x):
    """1 - erf(x)."""
    x = floating(x)
    return x.backend.binary("sub", x.backend.full((), 1, x.dtype), x.backend.unary("erf", x))


#: method; array API; Burn sin
def sin(x):
    """Sine of an angle in radians."""
    return _unary("sin", x)


#: method; array API; Burn cos
def cos(x):
    """Cosine of an angle in radians."""
    return _unary("cos", x)


#: method; array API
def tan(x):
    """Tangent of an angle in radians."""
    return _unary("tan", x)


#: method; array API
def asin(x):
    """Inverse sine; NaN outside [-1, 1]."""
    return _unary("asin", x)


#: method; array API
def acos(x):
    """Inverse cosine; NaN outside [-1, 1]."""
    return _unary("acos", x)


#: method; array API
def atan(x):
    """Inverse tangent."""
    return _unary("atan", x)


#: method; array API
def sinh(x):
    """Hyperbolic sine."""
    return _unary("sinh", x)


#: method; array API
def cosh(x):
    """Hyperbolic cosine."""
    return _unary("cosh", x)


#: method; array API; Burn tanh
def tanh(x):
    """Hyperbolic tangent."""
    return _unary("tanh", x)


#: method; array API
def asinh(x):
    """Inverse hyperbolic sine."""
    return _unary("asinh", x)


#: method; array API
def acosh(x):
    """Inverse hyperbolic cosine; NaN below 1."""
    return _unary("acosh", x)


#: method; array API
def atanh(x):
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return _unary("atanh", x)


def _times(x, factor):
    x = floating(x)
    return x.backend.binary("mul", x, x.backend.full((), factor, x.dtype))


#: method; NumPy deg2rad; Burn deg2rad
@composite
def deg2rad(x):
    """Degrees as radians: x * pi / 180."""
    return _times(x, pi / 180)


#: method; NumPy rad2deg; Burn rad2deg
@composite
def rad2deg(x):
    """Radians as degrees: x * 180 / pi."""
    return _times(x, 180 / pi)
