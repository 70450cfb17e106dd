"""Sums, products, extremes and moments over axes.

axis: None (all), an int or a tuple of ints; keepdims: keep the reduced axes with length 1. As in the array API, sums
and products of narrower integers are int64 (uint64 if unsigned), and those of bool are int64.
"""

import math

from ... import dtypes
from ...errors import DTypeError, ShapeError
from ...shapes import axes_of, axis_of, size
from ..operands import alias, astype, numeric, tensor
from ..overriding import composite
from ..promotion import widened


def _wide(dtype):
    if dtype.kind == "int" or dtype.is_bool:
        return dtypes.int64
    if dtype.kind == "uint":
        return dtypes.uint64
    return dtype


def _total(op, x, axis, dtype, keepdims):
    x = tensor(x)
    if x.dtype.kind == "string":
        raise DTypeError("{} is not defined for string".format(op))
    x = astype(x, dtypes.dtype(dtype) if dtype is not None else _wide(x.dtype))
    return x.backend.reduce(op, x, axes_of(axis, x.ndim), keepdims)


#: method; array API; Burn sum, sum_dim
def sum(x, axis=None, *, dtype=None, keepdims=False):
    """Sum over axis, in `dtype` where given."""
    return _total("sum", x, axis, dtype, keepdims)


#: method; array API; Burn prod, prod_dim
def prod(x, axis=None, *, dtype=None, keepdims=False):
    """Product over axis, in `dtype` where given."""
    return _total("prod", x, axis, dtype, keepdims)


def _extreme(op, x, axis, keepdims):
    x = tensor(x)
    axes = axes_of(axis, x.ndim)
    for a in axes:
        if not x.shape[a]:
            raise ShapeError("{} over axis {} of length 0 is undefined; the shape is {}".format(op, a, x.shape))
    if x.dtype.is_bool:
        return x.backend.reduce("any" if op == "max" else "all", x, axes, keepdims)
    return x.backend.reduce(op, x, axes, keepdims)


#: method; array API; Burn max, max_dim
def max(x, axis=None, *, keepdims=False):
    """The largest element over axis; NaN if any element is NaN. Raises ShapeError if axis is empty."""
    return _extreme("max", x, axis, keepdims)


#: method; array API; Burn min, min_dim
def min(x, axis=None, *, keepdims=False):
    """The smallest element over axis; NaN if any element is NaN. Raises ShapeError if axis is empty."""
    return _extreme("min", x, axis, keepdims)


#: method; array API; Burn any, any_dim -> Tensor[bool]
def any(x, axis=None, *, keepdims=False):
    """Whether some element is true (not 0)."""
    x = astype(tensor(x), dtypes.bool)
    return x.backend.reduce("any", x, axes_of(axis, x.ndim), keepdims)


#: method; array API; Burn all, all_dim -> Tensor[bool]
def all(x, axis=None, *, keepdims=False):
    """Whether every element is true (not 0)."""
    x = astype(tensor(x), dtypes.bool)
    return x.backend.reduce("all", x, axes_of(axis, x.ndim), keepdims)


#: method; array API -> Tensor[int]
@composite
def count_nonzero(x, axis=None, *, keepdims=False):
    """The number of nonzero elements, int64."""
    x = astype(astype(tensor(x), dtypes.bool), dtypes.int64)
    return x.backend.reduce("sum", x, axes_of(axis, x.ndim), keepdims)


#: method; array API; Burn mean, mean_dim
@composite
def mean(x, axis=None, *, keepdims=False):
    """Arithmetic mean; integers become float32 first."""
    x, dtype = widened(x)
    axes = axes_of(axis, x.ndim)
    backend = x.backend
    n = size([x.shape[a] for a in axes])
    return astype(backend.binary("div", backend.reduce("sum", x, axes, keepdims), backend.full((), n, x.dtype)), dtype)


def _moments(x, axis, correction, keepdims):
    axes = axes_of(axis, x.ndim)
    backend = x.backend
    n = size([x.shape[a] for a in axes])
    center = backend.binary("div", backend.reduce("sum", x, axes, True), backend.full((), n, x.dtype))
    gap = backend.binary("sub", x, center)
    total = backend.reduce("sum", backend.binary("mul", gap, gap), axes, keepdims)
    freedom = n - (int(correction) if correction % 1 == 0 else correction)
    out = backend.binary("div", total, backend.full((), freedom if freedom > 0 else 0, x.dtype))
    if not keepdims:
        center = backend.reshape(center, out.shape)
    return out, center


#: method; Burn var_mean, var_mean_bias -> tuple[Tensor, Tensor]
@composite
def var_mean(x, axis=None, *, correction=0.0, keepdims=False):
    """(variance, mean) over axis; the variance divides by n - correction."""
    x, dtype = widened(x)
    out, center = _moments(x, axis, correction, keepdims)
    return astype(out, dtype), astype(center, dtype)


#: method; array API; Burn var, var_bias; correction: float
@composite
def var(x, axis=None, *, correction=0.0, keepdims=False):
    """Variance: the sum of squared deviations from the mean, divided by n - correction (0: population, 1: sample)."""
    return var_mean(x, axis, correction=correction, keepdims=keepdims)[0]


#: method; array API
@composite
def std(x, axis=None, *, correction=0.0, keepdims=False):
    """Standard deviation: the square root of `var`."""
    x, dtype = widened(x)
    out = _moments(x, axis, correction, keepdims)[0]
    return astype(x.backend.unary("sqrt", out), dtype)


def _arg(op, x, axis, keepdims):
    x = numeric(x, "arg" + op) if not tensor(x).dtype.is_bool else astype(x, dtypes.uint8)
    if not x.size and (axis is None or not x.shape[axis_of(axis, x.ndim)]):
        raise ShapeError("arg{} of an empty tensor is undefined; the shape is {}".format(op, x.shape))
    backend = x.backend
    if axis is not None:
        return backend.argreduce(op, x, axis_of(axis, x.ndim), keepdims)
    out = backend.argreduce(op, backend.reshape(x, (x.size,)), 0, False)
    return backend.reshape(out, (1,) * x.ndim) if keepdims else out


#: method; array API; Burn argmax -> Tensor[int]
def argmax(x, axis=None, *, keepdims=False):
    """int64 index of the first largest element along axis (of the flattened tensor for None)."""
    return _arg("max", x, axis, keepdims)


#: method; array API; Burn argmin -> Tensor[int]
def argmin(x, axis=None, *, keepdims=False):
    """int64 index of the first smallest element along axis (of the flattened tensor for None)."""
    return _arg("min", x, axis, keepdims)


#: method; ONNX ReduceLogSumExp; NumPy logsumexp
@composite
def logsumexp(x, axis=None, *, keepdims=False):
    """log(sum(exp(x))) without overflow."""
    x, dtype = widened(x)
    axes = axes_of(axis, x.ndim)
    backend = x.backend
    if not size([x.shape[a] for a in axes]):
        return astype(backend.unary("log", backend.reduce("sum", x, axes, keepdims)), dtype)
    peak = backend.reduce("max", x, axes, True)
    # An infinite maximum must not be subtracted from itself.
    shift = backend.where(backend.unary("isinf", peak), backend.full((), 0, x.dtype), peak)
    total = backend.reduce("sum", backend.unary("exp", backend.binary("sub", x, shift)), axes, keepdims)
    return astype(backend.binary("add", backend.unary("log", total), backend.reshape(shift, total.shape)), dtype)


#: method; PyTorch norm; p: float
@composite
def norm(x, p=2, axis=None, *, keepdims=False):
    """The p-norm over axis: (sum of |x|^p)^(1/p); p may be inf, -inf or 0 (the number of nonzero elements)."""
    x, dtype = widened(x)
    if dtype.kind == "complex":
        x = x.backend.unary("abs", x)
        dtype = x.dtype
    return astype(_norm(x, p, axes_of(axis, x.ndim), keepdims), dtype)


def _norm(x, p, axes, keepdims):
    backend = x.backend
    size_ = backend.unary("abs", x)
    if p == math.inf or p == -math.inf:
        return backend.reduce("max" if p > 0 else "min", size_, axes, keepdims)
    if p == 0:
        return astype(count_nonzero(x, axes, keepdims=keepdims), x.dtype)
    if p == 1:
        return backend.reduce("sum", size_, axes, keepdims)
    if p == 2:
        return backend.unary("sqrt", backend.reduce("sum", backend.binary("mul", x, x), axes, keepdims))
    total = backend.reduce("sum", backend.binary("pow", size_, backend.full((), p, x.dtype)), axes, keepdims)
    return backend.binary("pow", total, backend.full((), 1 / p, x.dtype))


#: function
@composite
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """`norm` under the array API's name and order of parameters."""
    return norm(x, ord, axis, keepdims=keepdims)


def _scan(op, x, axis, dtype, include_initial):
    x = tensor(x)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError("axis must be given for a tensor of {} axes".format(x.ndim))
        axis = 0
    axis = axis_of(axis, x.ndim)
    x = astype(x, dtypes.dtype(dtype) if dtype is not None else _wide(x.dtype))
    backend = x.backend
    out = backend.cumulative(op, x, axis)
    if include_initial:
        first = tuple([1 if i == axis else x.shape[i] for i in range(x.ndim)])
        out = backend.concat((backend.full(first, 1 if op == "prod" else 0, x.dtype), out), axis)
    return out


#: method; array API
def cumulative_sum(x, *, axis=None, dtype=None, include_initial=False):
    """Running sums along axis; include_initial puts a 0 in front."""
    return _scan("sum", x, axis, dtype, include_initial)


#: method; array API
def cumulative_prod(x, *, axis=None, dtype=None, include_initial=False):
    """Running products along axis; include_initial puts a 1 in front."""
    return _scan("prod", x, axis, dtype, include_initial)


#: method; Burn cumprod
@composite
def cumprod(x, axis=-1):
    """Running products along axis in x's dtype."""
    x = numeric(x, "cumprod")
    return x.backend.cumulative("prod", x, axis_of(axis, x.ndim))


#: method; Burn cummax
def cummax(x, axis=-1):
    """The running maximum along axis."""
    x = numeric(x, "cummax")
    return x.backend.cumulative("max", x, axis_of(axis, x.ndim))


#: method; Burn cummin
def cummin(x, axis=-1):
    """The running minimum along axis."""
    x = numeric(x, "cummin")
    return x.backend.cumulative("min", x, axis_of(axis, x.ndim))


#: method; array API
@composite
def diff(x, *, axis=-1, n=1, prepend=None, append=None):
    """The n-th discrete difference along axis."""
    from ..movement.joining import concat
    from ..movement.rearranging import narrow

    x = alias(numeric(x, "diff"))
    axis = axis_of(axis, x.ndim)
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    for _ in range(n):
        length = x.shape[axis]
        if not length:
            break
        x = x.backend.binary("sub", narrow(x, axis, 1, length - 1), narrow(x, axis, 0, length - 1))
    return x


#: method; Burn max_dim_with_indices -> tuple[Tensor, Tensor]
@composite
def max_with_indices(x, axis=-1, *, keepdims=True):
    """(largest elements, their int64 indices) along axis."""
    return max(x, axis, keepdims=keepdims), argmax(x, axis, keepdims=keepdims)


#: method; Burn min_dim_with_indices -> tuple[Tensor, Tensor]
@composite
def min_with_indices(x, axis=-1, *, keepdims=True):
    """(smallest elements, their int64 indices) along axis."""
    return min(x, axis, keepdims=keepdims), argmin(x, axis, keepdims=keepdims)
