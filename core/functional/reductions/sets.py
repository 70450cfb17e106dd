"""The array API standard's set functions, and ONNX's Unique."""

from ... import dtypes
from ...shapes import axis_of
from ..movement.joining import concat
from ..movement.rearranging import moveaxis, reshape
from ..operands import astype, tensor
from ..overriding import composite
from ..promotion import together
from .sorting import argsort, lexsort_rows, searchsorted, sort

FEW = 32  # maximum elements that every other one is compared with; more are sorted first


class UniqueAllResult(tuple):
    """(values, indices, inverse_indices, counts), also as attributes."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])
    inverse_indices = property(lambda self: self[2])
    counts = property(lambda self: self[3])


class UniqueCountsResult(tuple):
    """(values, counts), also as attributes."""

    values = property(lambda self: self[0])
    counts = property(lambda self: self[1])


class UniqueInverseResult(tuple):
    """(values, inverse_indices), also as attributes."""

    values = property(lambda self: self[0])
    inverse_indices = property(lambda self: self[1])


def _first_of_each(rows, order):
    """bool (n,): whether each sorted row differs from the one before it. NaN differs from everything."""
    backend = rows.backend
    n = rows.shape[0]
    ordered = backend.take(rows, order, 0)
    if n < 2:
        return backend.full((n,), True, dtypes.bool)
    rest = (0,) * (rows.ndim - 1)
    ahead = backend.slice(ordered, (1,) + rest, (n - 1,) + rows.shape[1:], (1,) * rows.ndim)
    behind = backend.slice(ordered, (0,) + rest, (n - 1,) + rows.shape[1:], (1,) * rows.ndim)
    differs = backend.binary("ne", ahead, behind)
    if rows.ndim > 1:
        differs = backend.reduce("any", differs, tuple(range(1, rows.ndim)), False)
    return backend.concat((backend.full((1,), True, dtypes.bool), differs), 0)


#: function; NumPy unique(axis=0) -> tuple[Tensor, Tensor, Tensor, Tensor]
@composite
def unique_rows(rows, ordered=True):
    """(values, indices of the first of each, inverse, counts) of the rows of a tensor; ordered=False keeps them in
    order of appearance (ONNX Unique with sorted=0)."""
    backend = rows.backend
    n = rows.shape[0]
    if not n:
        nothing = backend.full((0,), 0, dtypes.int64)
        return rows, nothing, nothing, nothing
    if rows.ndim > 1:
        order = lexsort_rows(reshape(rows, (n, -1)))
    else:
        order = argsort(rows)
    starts = _first_of_each(rows, order)
    group = backend.binary(
        "sub", backend.cumulative("sum", astype(starts, dtypes.int64), 0), backend.full((), 1, dtypes.int64)
    )
    places = reshape(backend.nonzero(starts), (-1,))
    indices = backend.take(order, places, 0)  # the sort is stable: the first of each group is the first to appear
    inverse = backend.scatter(backend.full((n,), 0, dtypes.int64), order, group, 0, "none")
    ones = backend.full((n,), 1, dtypes.int64)
    counts = backend.scatter(backend.full(places.shape, 0, dtypes.int64), inverse, ones, 0, "add")
    if not ordered:
        appearance = argsort(indices)
        rank = argsort(appearance)
        indices, counts = backend.take(indices, appearance, 0), backend.take(counts, appearance, 0)
        inverse = backend.take(rank, inverse, 0)
    return backend.take(rows, indices, 0), indices, inverse, counts


def _flat(x):
    x = tensor(x)
    return reshape(x, (x.size,))


#: function; array API -> UniqueAllResult
@composite
def unique_all(x):
    """(values, indices of the first of each, inverse indices, counts); no two NaNs are equal."""
    values, indices, inverse, counts = unique_rows(_flat(x))
    return UniqueAllResult((values, indices, reshape(inverse, tensor(x).shape), counts))


#: function; array API -> UniqueCountsResult
@composite
def unique_counts(x):
    """(values, counts)."""
    values, _, _, counts = unique_rows(_flat(x))
    return UniqueCountsResult((values, counts))


#: function; array API -> UniqueInverseResult
@composite
def unique_inverse(x):
    """(values, inverse indices)."""
    values, _, inverse, _ = unique_rows(_flat(x))
    return UniqueInverseResult((values, reshape(inverse, tensor(x).shape)))


#: function; array API
@composite
def unique_values(x):
    """The distinct elements, sorted."""
    return unique_rows(_flat(x))[0]


#: function; ONNX Unique -> tuple[Tensor, Tensor, Tensor, Tensor]
@composite
def unique(x, axis=None, sorted=True):
    """(values, indices, inverse, counts) of the elements, or of the slices along axis (ONNX Unique)."""
    x = tensor(x)
    if axis is None:
        return unique_rows(reshape(x, (x.size,)), sorted)
    axis = axis_of(axis, x.ndim)
    values, indices, inverse, counts = unique_rows(moveaxis(x, axis, 0), sorted)
    return moveaxis(values, 0, axis), indices, inverse, counts


#: function; array API; PyTorch isin -> Tensor[bool]
@composite
def isin(x1, x2, *, invert=False):
    """bool: whether each element of x1 is among x2's."""
    a, b = together(x1, x2)
    backend = a.backend
    if b.size <= FEW or b.dtype.kind == "string":
        found = backend.binary("eq", reshape(a, (a.size, 1)), reshape(b, (1, b.size)))
        found = reshape(backend.reduce("any", found, (1,), False), a.shape)
    else:
        values = sort(reshape(b, (b.size,)))
        at = backend.binary("minimum", searchsorted(values, a), backend.full((), b.size - 1, dtypes.int64))
        found = backend.binary("eq", backend.take(values, at, 0), a)
    return backend.unary("logical_not", found) if invert else found


#: function; NumPy union1d
@composite
def union1d(x1, x2):
    """The different elements of both, in order."""
    return unique_values(concat(_rows_of(x1, x2), 0))


#: function; NumPy intersect1d
@composite
def intersect1d(x1, x2):
    """The different elements of x1 that are also in x2, in order."""
    a, b = _rows_of(x1, x2)
    return unique_values(a[isin(a, b)])


#: function; NumPy setdiff1d
@composite
def setdiff1d(x1, x2):
    """The different elements of x1 that are not in x2, in order."""
    a, b = _rows_of(x1, x2)
    return unique_values(a[isin(a, b, invert=True)])


def _rows_of(x1, x2):
    a, b = together(x1, x2)
    return reshape(a, (a.size,)), reshape(b, (b.size,))
