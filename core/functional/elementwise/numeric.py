"""NumPy's elementwise functions beyond the array API standard."""

from ...errors import DTypeError
from ..operands import floating, numeric
from ..overriding import composite
from ..promotion import integers, paired
from .arithmetic import floor_divide, remainder


#: method; NumPy cbrt
@composite
def cbrt(x):
    """The cube root, negative of a negative number."""
    x = floating(x)
    backend = x.backend
    root = backend.binary("pow", backend.unary("abs", x), backend.full((), 1 / 3, x.dtype))
    return backend.binary("mul", backend.unary("sign", x), root)


#: method; NumPy sinc
@composite
def sinc(x):
    """sin(πx) / (πx), 1 at 0."""
    x = floating(x)
    backend = x.backend
    zero = backend.binary("eq", x, backend.full((), 0, x.dtype))
    angle = backend.binary("mul", x, backend.full((), 3.141592653589793, x.dtype))
    one = backend.full((), 1, x.dtype)
    angle = backend.where(zero, one, angle)
    return backend.where(zero, one, backend.binary("div", backend.unary("sin", angle), angle))


def _without_nan(op, x1, x2):
    a, b = paired(numeric(x1, op), numeric(x2, op) if hasattr(x2, "dtype") else x2)
    backend = a.backend
    found = backend.binary(op, a, b)
    if not a.dtype.is_float:
        return found
    return backend.where(backend.unary("isnan", a), b, backend.where(backend.unary("isnan", b), a, found))


#: method; NumPy fmax
@composite
def fmax(x1, x2):
    """The larger of two elements; of NaN and a number the number."""
    return _without_nan("maximum", x1, x2)


#: method; NumPy fmin
@composite
def fmin(x1, x2):
    """The smaller of two elements; of NaN and a number the number."""
    return _without_nan("minimum", x1, x2)


#: method; NumPy heaviside
@composite
def heaviside(x1, x2):
    """0 where x1 is negative, x2 where it is 0, 1 where it is positive; NaN stays NaN."""
    a, b = paired(floating(x1), x2)
    backend = a.backend
    zero, one = backend.full((), 0, a.dtype), backend.full((), 1, a.dtype)
    step = backend.where(backend.binary("lt", a, zero), zero, one)
    step = backend.where(backend.binary("eq", a, zero), b, step)
    return backend.where(backend.unary("isnan", a), a, step)


#: function; NumPy divmod -> tuple[Tensor, Tensor]
@composite
def divmod(x1, x2):
    """(floor_divide(x1, x2), remainder(x1, x2))."""
    return floor_divide(x1, x2), remainder(x1, x2)


def _whole(x1, x2, what):
    a, b = paired(integers(x1, what), x2)
    if not a.dtype.is_integer:
        raise DTypeError("{} takes integers, found {}".format(what, a.dtype))
    return a.backend.unary("abs", a), a.backend.unary("abs", b)


def _divisor(a, b):
    # Euclid's algorithm; the Fibonacci numbers take the most steps, one for about 0.7 bits.
    backend = a.backend
    zero = backend.full((), 0, a.dtype)
    a, b = backend.binary("maximum", a, b), backend.binary("minimum", a, b)
    for _ in range(a.dtype.bits * 3 // 2):
        done = backend.binary("eq", b, zero)
        a, b = backend.where(done, a, b), backend.where(done, zero, backend.binary("remainder", a, b))
    return a


#: method; NumPy gcd
@composite
def gcd(x1, x2):
    """The greatest common divisor of two integers; gcd(0, n) is |n|. Raises DTypeError for other dtypes."""
    return _divisor(*_whole(x1, x2, "gcd"))


#: method; NumPy lcm
@composite
def lcm(x1, x2):
    """The least common multiple of two integers; 0 if one of them is 0. Raises DTypeError for other dtypes."""
    a, b = _whole(x1, x2, "lcm")
    backend = a.backend
    return backend.binary("mul", backend.binary("div", a, _divisor(a, b)), b)
