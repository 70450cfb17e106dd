"""Arithmetic: the array API's elementwise operators, and the few that Burn and ONNX add."""

from ... import dtypes
from ...backend import operation
from ...errors import DTypeError
from ...shapes import broadcast
from ..operands import alias, astype, floating, is_scalar, like, numeric, tensor
from ..overriding import composite
from ..promotion import paired, scalar


def _binary(op, x1, x2):
    a, b = paired(x1, x2)
    if a.dtype.is_bool or a.dtype.kind == "string":
        raise DTypeError("{} is not defined for {} and {}; convert with .astype()".format(op, a.dtype, b.dtype))
    return a.backend.binary(op, a, b)


#: method; array API
def add(x1, x2):
    """x1 + x2."""
    return _binary("add", x1, x2)


#: method; array API
def subtract(x1, x2):
    """x1 - x2."""
    return _binary("sub", x1, x2)


#: method; array API
def multiply(x1, x2):
    """x1 * x2."""
    return _binary("mul", x1, x2)


#: method; array API
def divide(x1, x2):
    """x1 / x2, true division: integers become float32 first (`trunc_divide` keeps them integers)."""
    a, b = paired(x1, x2)
    if not a.dtype.is_float:
        a, b = floating(a), floating(b)
    return a.backend.binary("div", a, b)


#: method; ONNX Div
@composite
def trunc_divide(x1, x2):
    """x1 / x2 rounded toward zero, as C, Burn and ONNX divide integers; dividing an integer by zero gives 0."""
    a, b = paired(x1, x2)
    out = _binary("div", a, b)
    return a.backend.unary("trunc", out) if a.dtype.is_float else out


#: method; array API
def floor_divide(x1, x2):
    """x1 / x2 rounded toward minus infinity; dividing an integer by zero gives 0."""
    return _binary("floor_divide", x1, x2)


#: method; array API
def remainder(x1, x2):
    """x1 - x2 * floor(x1 / x2), with the sign of x2; dividing by zero gives 0 for integers, NaN for floats."""
    return _binary("remainder", x1, x2)


#: method; ONNX Mod; PyTorch fmod
def fmod(x1, x2):
    """x1 - x2 * trunc(x1 / x2), with the sign of x1."""
    return _binary("fmod", x1, x2)


#: method; array API
def pow(x1, x2):
    """x1 to the power of x2."""
    return _binary("pow", x1, x2)


#: method; array API
def atan2(x1, x2):
    """The angle of the point (x2, x1), in [-pi, pi]."""
    a, b = paired(x1, x2)
    a, b = floating(a), floating(b)
    return a.backend.binary("atan2", a, b)


#: method; array API; Burn max_pair
def maximum(x1, x2):
    """The larger of each pair; NaN where either is NaN."""
    return _binary("maximum", x1, x2)


#: method; array API; Burn min_pair
def minimum(x1, x2):
    """The smaller of each pair; NaN where either is NaN."""
    return _binary("minimum", x1, x2)


#: method; array API
def negative(x):
    """-x."""
    x = numeric(x, "negative")
    return x.backend.unary("neg", x)


#: method; array API
def positive(x):
    """x itself. Raises DTypeError for bool."""
    return alias(numeric(x, "positive"))


#: method; array API; Burn abs
def abs(x):
    """The magnitude of each element."""
    x = numeric(x, "abs")
    return alias(x) if x.dtype.kind == "uint" else x.backend.unary("abs", x)


#: method; array API; Burn sign
def sign(x):
    """-1, 0 or 1 (NaN stays NaN)."""
    x = numeric(x, "sign")
    return x.backend.unary("sign", x)


#: method; array API
def square(x):
    """x * x."""
    x = numeric(x, "square")
    return x.backend.binary("mul", x, x)


#: method; array API; Burn recip
@composite
def reciprocal(x):
    """1 / x."""
    x = floating(x)
    return x.backend.binary("div", x.backend.full((), 1, x.dtype), x)


#: method; array API; ONNX Clip; Burn clamp; min: TensorLike; max: TensorLike
def clip(x, min=None, max=None):
    """x clamped to [min, max] (numbers, tensors or None), in x's dtype. NaN stays NaN."""
    x = numeric(x, "clip")
    if min is None and max is None:
        return alias(x)
    if not ((min is None or is_scalar(min)) and (max is None or is_scalar(max))):
        min = min if min is None else _bound(min, x)
        max = max if max is None else _bound(max, x)
        for bound in (min, max):
            if bound is not None and bound.shape:
                broadcast(x.shape, bound.shape)  # raises if they do not broadcast
    fast = operation(x.backend, "clip")
    if fast:
        return fast(x, min, max)
    if min is not None:
        x = x.backend.binary("maximum", x, _bound(min, x))
    if max is not None:
        x = x.backend.binary("minimum", x, _bound(max, x))
    return x


def _bound(value, x):
    if is_scalar(value):
        if x.dtype.is_integer:
            low, high = x.dtype.range
            value = low if value < low else high if value > high else value
        return scalar(value, x.dtype, x.backend)
    return like(value, x)


#: method; Burn clamp_min; min: TensorLike
def clamp_min(x, min):
    """x, but at least min."""
    return clip(x, min, None)


#: method; Burn clamp_max; max: TensorLike
def clamp_max(x, max):
    """x, but at most max."""
    return clip(x, None, max)


#: method; array API
@composite
def hypot(x1, x2):
    """sqrt(x1² + x2²), without intermediate overflow."""
    a, b = paired(x1, x2)
    a, b = abs(floating(a)), abs(floating(b))
    backend = a.backend
    big, small = backend.binary("maximum", a, b), backend.binary("minimum", a, b)
    zero, one = backend.full((), 0, a.dtype), backend.full((), 1, a.dtype)
    ratio = backend.binary("div", small, backend.where(backend.binary("eq", big, zero), one, big))
    out = backend.binary(
        "mul", big, backend.unary("sqrt", backend.binary("add", one, backend.binary("mul", ratio, ratio)))
    )
    infinite = backend.binary("logical_or", backend.unary("isinf", a), backend.unary("isinf", b))
    return backend.where(infinite, backend.full((), float("inf"), a.dtype), out)


#: method; array API
@composite
def logaddexp(x1, x2):
    """log(exp(x1) + exp(x2)) without overflow."""
    a, b = paired(x1, x2)
    a, b = floating(a), floating(b)
    backend = a.backend
    big = backend.binary("maximum", a, b)
    gap = backend.unary("neg", backend.unary("abs", backend.binary("sub", a, b)))
    out = backend.binary("add", big, backend.unary("log1p", backend.unary("exp", gap)))
    # The difference of equal infinities is NaN, but the result is that infinity itself.
    return backend.where(
        backend.binary("eq", a, b), backend.binary("add", a, backend.full((), 0.6931471805599453, a.dtype)), out
    )


#: method; array API
@composite
def copysign(x1, x2):
    """x1 with the sign of x2, also that of a signed zero."""
    a, b = paired(x1, x2)
    a, b = floating(a), floating(b)
    backend = a.backend
    size = backend.unary("abs", a)
    return backend.where(signbit(b), backend.unary("neg", size), size)


#: method; array API -> Tensor[bool]
def signbit(x):
    """Whether the sign bit is set: True for -0.0, and for a NaN whose sign bit the backend preserves."""
    x = tensor(x)
    backend = x.backend
    if not x.dtype.is_float:
        return backend.binary("lt", x, backend.full((), 0, x.dtype))
    fast = operation(backend, "signbit")
    if fast:
        return fast(x)
    # 1 / -0.0 is minus infinity; the sign of a NaN can only be read from its bits.
    wide = astype(x, dtypes.float64) if x.dtype is dtypes.float64 else astype(x, dtypes.float32)
    bits = backend.bitcast(wide, dtypes.int64 if wide.dtype is dtypes.float64 else dtypes.int32)
    return backend.binary("lt", bits, backend.full((), 0, bits.dtype))


#: method; array API
@composite
def nextafter(x1, x2):
    """The next float after x1 in the direction of x2 (float32 and float64)."""
    a, b = paired(x1, x2)
    if a.dtype is not dtypes.float32 and a.dtype is not dtypes.float64:
        raise DTypeError("nextafter is defined for float32 and float64, found {}".format(a.dtype))
    backend = a.backend
    whole = dtypes.int64 if a.dtype is dtypes.float64 else dtypes.int32
    zero, one = backend.full((), 0, a.dtype), backend.full((), 1, whole)
    up = backend.binary("lt", a, b)
    bits = backend.bitcast(a, whole)
    # Away from zero the magnitude's bits grow by one; toward zero they shrink.
    grows = backend.binary("eq", up, backend.binary("gt", a, zero))
    moved = backend.bitcast(
        backend.where(grows, backend.binary("add", bits, one), backend.binary("sub", bits, one)), a.dtype
    )
    least = backend.bitcast(one, a.dtype)
    from_zero = backend.where(up, least, backend.unary("neg", least))
    out = backend.where(backend.binary("eq", a, zero), from_zero, moved)
    nan = backend.binary("logical_or", backend.unary("isnan", a), backend.unary("isnan", b))
    out = backend.where(backend.binary("eq", a, b), b, out)
    return backend.where(nan, backend.binary("add", a, b), out)
