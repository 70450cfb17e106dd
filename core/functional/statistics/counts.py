"""Counting: how many elements lie in each interval, or equal each integer. Lengths that follow from the values are read
back from the backend."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ..movement.rearranging import narrow
from ..operands import astype, floating, like, tensor
from ..overriding import composite
from ..promotion import integers
from ..reductions.sorting import searchsorted
from ..reshaping import reshape


def _edges(x, bins, limits):
    """The edges of the intervals, (bins + 1,), in x's dtype."""
    if not isinstance(bins, int):
        edges = like(bins, x)
        if edges.ndim != 1 or edges.size < 2:
            raise ShapeError("histogram: bins is a number or the edges (n + 1,), found shape {}".format(edges.shape))
        return edges
    if bins < 1:
        raise ArgumentError("histogram needs at least 1 bin, found {}".format(bins))
    if limits is None:
        limits = (x.min().item(), x.max().item()) if x.size else (0.0, 1.0)
    low, high = [float(v) for v in limits]
    if not high - low >= 0 or high - low == float("inf"):
        raise ArgumentError("histogram: the range is two finite numbers, the lower one first, found {}".format(limits))
    if low == high:
        low, high = low - 0.5, high + 0.5
    from ..creation.fills import linspace

    return linspace(low, high, bins + 1, dtype=x.dtype, backend=x.backend)


def _added(index, weights, n):
    """(n + 1,): the sums of `weights` (1-D) by their `index`."""
    backend = index.backend
    return backend.scatter(backend.full((n + 1,), 0, weights.dtype), index, weights, 0, "add")


#: function; NumPy histogram; bins: int | TensorLike; range: Sequence[float]; weights: TensorLike
#: -> tuple[Tensor, Tensor]
@composite
def histogram(x, bins=10, range=None, *, weights=None, density=False):
    """(number of elements in each interval, the edges of the intervals).

    bins: how many intervals of one length between `range`, (low, high), by default the smallest and largest element; or
    their edges in order, (n + 1,). An interval has its lower edge and not the upper one, but the last has both. The
    counts are int64 (n,), with `weights` of x's shape their sums; density: divided so that the area is 1. NaN and what
    lies outside is not counted. Raises ArgumentError for a range that is not finite.
    """
    x = floating(x)
    backend = x.backend
    edges = _edges(x, bins, range)
    n = edges.size - 1
    flat = reshape(x, (x.size,))
    one, outside = backend.full((), 1, dtypes.int64), backend.full((), n, dtypes.int64)
    index = backend.binary("sub", searchsorted(edges, flat, side="right"), one)
    last = backend.binary("eq", flat, narrow(edges, 0, n, 1))
    index = backend.where(last, backend.binary("sub", outside, one), index)
    below = backend.binary("lt", index, backend.full((), 0, dtypes.int64))
    index = backend.where(below, outside, backend.binary("minimum", index, outside))
    if weights is None:
        values = backend.full((x.size,), 1, dtypes.int64)
    else:
        weights = tensor(weights, backend)
        if weights.shape != x.shape:
            raise ShapeError("histogram: weights {} do not have the shape {}".format(weights.shape, x.shape))
        values = reshape(floating(weights), (x.size,))
    counts = narrow(_added(index, values, n), 0, 0, n)
    if density:
        widths = backend.binary("sub", narrow(edges, 0, 1, n), narrow(edges, 0, 0, n))
        counts = astype(counts, x.dtype)
        total = backend.reduce("sum", counts, (0,), True)
        counts = backend.binary("div", counts, backend.binary("mul", total, widths))
    return counts, edges


#: method; NumPy bincount; weights: TensorLike
@composite
def bincount(x, weights=None, minlength=0):
    """int64 (n,): how often each of 0 … n - 1 occurs in the integers x (1-D), where n is the largest + 1 or
    `minlength`; with `weights` of the same shape, the sums of these. Raises ArgumentError for a negative element."""
    x = astype(integers(x, "bincount"), dtypes.int64)
    backend = x.backend
    if x.ndim != 1:
        raise ShapeError("bincount takes a 1-D tensor, found shape {}".format(x.shape))
    n = 0
    if x.size:
        if x.min().item() < 0:
            raise ArgumentError("bincount takes integers of at least 0, found {}".format(x.min().item()))
        n = x.max().item() + 1
    n = max(n, minlength)
    if weights is None:
        weights = backend.full(x.shape, 1, dtypes.int64)
    else:
        weights = floating(tensor(weights, backend))
        if weights.shape != x.shape:
            raise ShapeError("bincount: weights {} do not have the shape {}".format(weights.shape, x.shape))
    return narrow(_added(x, weights, n), 0, 0, n)
