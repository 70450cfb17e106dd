"""Reductions that leave out NaN, and replacing it. Integers, which have no NaN, are reduced as they are."""

from ...shapes import axes_of
from ..operands import alias, astype, tensor
from ..overriding import composite
from ..promotion import widened
from ..reductions.over_axes import max, min, prod, sum


def _without(x, value):
    """x with `value` in place of NaN."""
    x = tensor(x)
    if not x.dtype.is_float:
        return x
    return x.backend.where(x.backend.unary("isnan", x), x.backend.full((), value, x.dtype), x)


#: method; NumPy nansum
@composite
def nansum(x, axis=None, *, dtype=None, keepdims=False):
    """Sum over axis of the elements that are not NaN."""
    return sum(_without(x, 0), axis, dtype=dtype, keepdims=keepdims)


#: method; NumPy nanprod
@composite
def nanprod(x, axis=None, *, dtype=None, keepdims=False):
    """Product over axis of the elements that are not NaN."""
    return prod(_without(x, 1), axis, dtype=dtype, keepdims=keepdims)


def _extreme(x, axis, keepdims, reduction, start):
    x = tensor(x)
    if not x.dtype.is_float:
        return reduction(x, axis, keepdims=keepdims)
    backend = x.backend
    found = reduction(_without(x, start), axis, keepdims=keepdims)
    empty = backend.reduce("all", backend.unary("isnan", x), axes_of(axis, x.ndim), keepdims)
    return backend.where(empty, backend.full((), float("nan"), x.dtype), found)


#: method; NumPy nanmax
@composite
def nanmax(x, axis=None, *, keepdims=False):
    """The largest element over axis that is not NaN; NaN where all are."""
    return _extreme(x, axis, keepdims, max, float("-inf"))


#: method; NumPy nanmin
@composite
def nanmin(x, axis=None, *, keepdims=False):
    """The smallest element over axis that is not NaN; NaN where all are."""
    return _extreme(x, axis, keepdims, min, float("inf"))


def _counted(x, axis, keepdims):
    """How many elements over axis are not NaN, in x's dtype."""
    backend = x.backend
    given = backend.cast(backend.unary("logical_not", backend.unary("isnan", x)), x.dtype)
    return backend.reduce("sum", given, axes_of(axis, x.ndim), keepdims)


#: method; NumPy nanmean
@composite
def nanmean(x, axis=None, *, keepdims=False):
    """Mean over axis of the elements that are not NaN; NaN where there are none."""
    x, dtype = widened(x)
    total = sum(_without(x, 0), axis, keepdims=keepdims)
    return astype(x.backend.binary("div", total, _counted(x, axis, keepdims)), dtype)


#: method; NumPy nanvar; correction: float
@composite
def nanvar(x, axis=None, *, correction=0.0, keepdims=False):
    """Variance over axis of the elements that are not NaN: their squared deviations from their mean, divided by their
    number - correction; NaN where that is not positive."""
    x, dtype = widened(x)
    backend = x.backend
    gap = backend.binary("sub", x, nanmean(x, axis, keepdims=True))
    total = sum(_without(backend.binary("mul", gap, gap), 0), axis, keepdims=keepdims)
    freedom = backend.binary("sub", _counted(x, axis, keepdims), backend.full((), correction, x.dtype))
    few = backend.binary("le", freedom, backend.full((), 0, x.dtype))
    out = backend.where(few, backend.full((), float("nan"), x.dtype), backend.binary("div", total, freedom))
    return astype(out, dtype)


#: method; NumPy nanstd; correction: float
@composite
def nanstd(x, axis=None, *, correction=0.0, keepdims=False):
    """Standard deviation: the square root of `nanvar`."""
    x, dtype = widened(x)
    return astype(x.backend.unary("sqrt", nanvar(x, axis, correction=correction, keepdims=keepdims)), dtype)


#: method; NumPy nan_to_num; nan: float; posinf: float; neginf: float
@composite
def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x with numbers in place of NaN, inf and -inf; by default 0 and the largest and smallest of the dtype."""
    x = tensor(x)
    if not x.dtype.is_float:
        return alias(x)
    from ..creation.inspection import finfo

    backend, limits = x.backend, finfo(x.dtype)
    out = _without(x, nan)
    for bound, value in ((float("inf"), posinf), (float("-inf"), neginf)):
        value = (limits.max if bound > 0 else limits.min) if value is None else value
        found = backend.binary("eq", x, backend.full((), bound, x.dtype))
        out = backend.where(found, backend.full((), value, x.dtype), out)
    return out
