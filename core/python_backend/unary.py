"""Elementwise functions of one operand."""

import math

from .. import dtypes
from . import scalars
from .buffers import flat, is_narrow, store, wrapper

INF = scalars.INF


def _sized_inf(x):
    return INF if x > 0 else -INF


def _inf(x):
    return INF


def _log_error(x):
    return -INF if x == 0 else scalars.NAN


def _log1p_error(x):
    return -INF if x == -1 else scalars.NAN


def _atanh_error(x):
    return x * INF if x == 1 or x == -1 else scalars.NAN


# op -> (function, the result if it raises)
_FLOAT = {
    "sqrt": (math.sqrt, scalars.nan), "exp": (math.exp, _inf), "expm1": (scalars.expm1, _inf),
    "log": (math.log, _log_error), "log1p": (scalars.log1p, _log1p_error), "erf": (scalars.erf, scalars.nan),
    "sin": (math.sin, scalars.nan), "cos": (math.cos, scalars.nan), "tan": (math.tan, scalars.nan),
    "asin": (math.asin, scalars.nan), "acos": (math.acos, scalars.nan), "atan": (math.atan, scalars.nan),
    "sinh": (math.sinh, _sized_inf), "cosh": (math.cosh, _inf), "tanh": (math.tanh, scalars.nan),
    "asinh": (math.asinh, scalars.nan), "acosh": (math.acosh, scalars.nan), "atanh": (math.atanh, _atanh_error),
}  # fmt: skip
_ROUNDING = {"floor": math.floor, "ceil": math.ceil, "round": round, "trunc": int}


def _of(op, dtype):
    """(fast function, function that never raises) for op on dtype."""
    if op == "neg":
        return lambda v: -v, lambda v: -v
    if op == "abs":
        return abs, abs
    if op == "sign":
        return scalars.sign, scalars.sign
    if op == "bitwise_not":
        return lambda v: ~v, lambda v: ~v
    if op in _ROUNDING:
        f = scalars.rounding(_ROUNDING[op])
        return f, f
    if op not in _FLOAT:
        from .lacking import no_kernel

        no_kernel(op)
    f, on_error = _FLOAT[op]
    return f, scalars.guarded(f, on_error)


def unary(backend, op, x):
    values = flat(x)
    n = x.size
    if op == "logical_not":
        return backend.new(store(dtypes.bool, [not v for v in values], n), dtypes.bool, x.shape)
    if op == "isnan":
        return backend.new(store(dtypes.bool, [v != v for v in values], n), dtypes.bool, x.shape)
    if op == "isinf":
        return backend.new(store(dtypes.bool, [v == INF or v == -INF for v in values], n), dtypes.bool, x.shape)
    if op in _ROUNDING and not x.dtype.is_float:
        return x
    fast, safe = _of(op, x.dtype)
    if not (is_narrow(x.dtype) and x.dtype.is_integer):
        try:
            return backend.new(store(x.dtype, map(fast, values), n), x.dtype, x.shape)
        except (ValueError, OverflowError):
            pass
    results = map(safe, values)
    if x.dtype.is_integer:
        results = map(wrapper(x.dtype), results)
    return backend.new(store(x.dtype, results, n), x.dtype, x.shape)
