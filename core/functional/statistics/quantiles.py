"""Quantiles and medians, by sorting. NaN among the elements makes the result NaN, as in NumPy; the functions whose
names begin with nan leave it out. Integers become float32."""

from math import ceil, floor

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...shapes import axes_of, axis_of, reduced, size
from ..movement.rearranging import moveaxis, narrow, permute_dims
from ..operands import astype, tensor
from ..overriding import composite
from ..promotion import widened
from ..reductions.sorting import sort, sort_with_indices
from ..reshaping import reshape


def _sorted_rows(x, axis, what):
    """(x sorted with the axes in `axis` joined to its last one, the shape after reducing, the shape with the reduced
    axes kept, the dtype of results)."""
    x, dtype = widened(x)
    axes = axes_of(axis, x.ndim)
    n = size([x.shape[a] for a in axes])
    if not n:
        raise ShapeError("{} of no elements is undefined; the shape is {}".format(what, x.shape))
    kept = reduced(x.shape, axes, False)
    rows = reshape(permute_dims(x, [i for i in range(x.ndim) if i not in axes] + list(axes)), kept + (n,))
    return sort(rows), kept, reduced(x.shape, axes, True), dtype


def _shares(q):
    """(q as a list of numbers, the shape that it adds in front). Raises ArgumentError outside [0, 1]."""
    q = q.tolist() if hasattr(q, "tolist") else q
    shares = list(q) if isinstance(q, (list, tuple)) else [q]
    for share in shares:
        if not 0 <= share <= 1:
            raise ArgumentError("quantile takes shares from 0 to 1, found {}; percentile takes 0 to 100".format(share))
    return shares, (len(shares),) if isinstance(q, (list, tuple)) else ()


def _between(low, high, part):
    """low + part * (high - low), exact where the two are equal (infinities too)."""
    backend = low.backend
    moved = backend.binary("add", low, backend.binary("mul", part, backend.binary("sub", high, low)))
    return backend.where(backend.binary("eq", low, high), low, moved)


# method -> (index of the element below, index of the one above, share of the latter) of a position in 0 … n - 1
_METHODS = {
    "linear": lambda at: (floor(at), ceil(at), at - floor(at)),
    "lower": lambda at: (floor(at), floor(at), 0.0),
    "higher": lambda at: (ceil(at), ceil(at), 0.0),
    "nearest": lambda at: (round(at), round(at), 0.0),
    "midpoint": lambda at: (floor(at), ceil(at), 0.5),
}


#: method; NumPy quantile; q: float | Sequence[float] | Tensor
@composite
def quantile(x, q, axis=None, *, keepdims=False, method="linear"):
    """The values below which the shares q of the elements lie, over axis (None: all axes).

    q: a number from 0 to 1, or several, which become the first axis of the result. method: between two elements,
    "linear" interpolates, "lower", "higher" and "nearest" take one of them, "midpoint" their mean. Raises ArgumentError
    for another q or method, ShapeError if there are no elements.
    """
    if method not in _METHODS:
        raise ArgumentError("quantile: method is one of {}, found {!r}".format(", ".join(sorted(_METHODS)), method))
    rows, shape, kept, dtype = _sorted_rows(x, axis, "quantile")
    shares, front = _shares(q)
    backend, n = rows.backend, rows.shape[-1]
    places = [_METHODS[method](share * (n - 1)) for share in shares]

    def elements(which):
        return backend.take(
            rows, backend.from_list([p[which] for p in places], dtypes.int64, (len(places),)), rows.ndim - 1
        )

    out = elements(0)
    if any(p[2] for p in places):
        out = _between(out, elements(1), backend.from_list([p[2] for p in places], rows.dtype, (len(places),)))
    last = narrow(rows, -1, n - 1, 1)  # NaN sorts last
    out = backend.where(backend.unary("isnan", last), last, out)
    return astype(reshape(moveaxis(out, -1, 0), front + (kept if keepdims else shape)), dtype)


#: method; NumPy percentile; q: float | Sequence[float] | Tensor
@composite
def percentile(x, q, axis=None, *, keepdims=False, method="linear"):
    """`quantile` with q from 0 to 100."""
    q = q.tolist() if hasattr(q, "tolist") else q
    shares = [v / 100 for v in q] if isinstance(q, (list, tuple)) else q / 100
    return quantile(x, shares, axis, keepdims=keepdims, method=method)


#: method; NumPy median
@composite
def median(x, axis=None, *, keepdims=False):
    """The middle element over axis, the mean of the two middle ones of an even number. (PyTorch and Burn take the lower
    one: `median_with_indices`.)"""
    return quantile(x, 0.5, axis, keepdims=keepdims, method="midpoint")


#: method; Burn median, median_with_indices -> tuple[Tensor, Tensor]
@composite
def median_with_indices(x, axis=-1, *, keepdims=True):
    """(middle elements along axis, their int64 indices); of an even number, the lower of the two middle ones, as in
    PyTorch and Burn. If there is a NaN, it is the median."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not n:
        raise ShapeError("median of no elements is undefined; the shape is {}".format(x.shape))
    shape = reduced(x.shape, (axis,), keepdims)
    found = [[narrow(a, axis, i, 1) for i in ((n - 1) // 2, n - 1)] for a in sort_with_indices(x, axis)]
    if x.dtype.is_float:
        broken = x.backend.unary("isnan", found[0][1])
        found = [[x.backend.where(broken, last, middle)] for middle, last in found]
    return reshape(found[0][0], shape), reshape(found[1][0], shape)


#: method; NumPy nanquantile; q: float | Sequence[float] | Tensor
@composite
def nanquantile(x, q, axis=None, *, keepdims=False):
    """`quantile` (linear) of the elements that are not NaN; NaN where there are none."""
    rows, shape, kept, dtype = _sorted_rows(x, axis, "nanquantile")
    shares, front = _shares(q)
    backend, last = rows.backend, rows.ndim - 1
    given = backend.cast(backend.unary("logical_not", backend.unary("isnan", rows)), rows.dtype)
    highest = backend.binary("sub", backend.reduce("sum", given, (last,), True), backend.full((), 1, rows.dtype))
    zero = backend.full((), 0, rows.dtype)
    out = []
    for share in shares:
        # Rows of NaN alone take their first element, which is NaN.
        at = backend.binary("maximum", backend.binary("mul", highest, backend.full((), share, rows.dtype)), zero)
        low = backend.unary("floor", at)
        ends = [backend.gather(rows, backend.cast(i, dtypes.int64), last) for i in (low, backend.unary("ceil", at))]
        out.append(_between(ends[0], ends[1], backend.binary("sub", at, low)))
    joined = out[0] if len(out) == 1 else backend.concat(out, last)
    return astype(reshape(moveaxis(joined, -1, 0), front + (kept if keepdims else shape)), dtype)


#: method; NumPy nanmedian
@composite
def nanmedian(x, axis=None, *, keepdims=False):
    """`median` of the elements that are not NaN; NaN where there are none."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)
