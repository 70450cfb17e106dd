"""Sorting along an axis: sorted elements, their indices, the k largest."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...shapes import axis_of
from ..movement.rearranging import narrow, reshape
from ..operands import alias, astype, tensor
from ..overriding import composite
from ..promotion import together


def _sorted(x, axis, descending):
    x = alias(tensor(x))
    if not x.ndim:
        return x, x.backend.full((), 0, dtypes.int64)
    axis = axis_of(axis, x.ndim)
    if x.dtype.is_bool:
        values, indices = x.backend.sort(astype(x, dtypes.uint8), axis, descending)
        return astype(values, dtypes.bool), indices
    return x.backend.sort(x, axis, descending)


#: method; array API; Burn sort, sort_descending
def sort(x, axis=-1, *, descending=False, stable=True):
    """The elements sorted along axis, stably; NaN last (first when descending)."""
    return _sorted(x, axis, descending)[0]


#: method; array API; Burn argsort, argsort_descending -> Tensor[int]
def argsort(x, axis=-1, *, descending=False, stable=True):
    """int64 indices that sort x along axis, stably."""
    return _sorted(x, axis, descending)[1]


#: method; Burn sort_descending_with_indices, sort_with_indices -> tuple[Tensor, Tensor]
def sort_with_indices(x, axis=-1, *, descending=False):
    """(`sort`, `argsort`) in one pass."""
    return _sorted(x, axis, descending)


#: method; ONNX TopK; Burn topk_with_indices; k: int -> tuple[Tensor, Tensor]
@composite
def topk_with_indices(x, k, axis=-1, *, largest=True):
    """(the k largest or smallest elements along axis in order, their int64 indices); ties go to the lower index."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            "topk: k is {}, but there are {} elements along axis {} of {}".format(k, x.shape[axis], axis, x.shape)
        )
    values, indices = _sorted(x, axis, largest)
    return narrow(values, axis, 0, k), narrow(indices, axis, 0, k)


#: method; ONNX TopK; Burn topk; k: int
@composite
def topk(x, k, axis=-1, *, largest=True):
    """The k largest (or smallest) elements along axis, in order."""
    return topk_with_indices(x, k, axis, largest=largest)[0]


#: method; Burn argtopk; k: int -> Tensor[int]
@composite
def argtopk(x, k, axis=-1, *, largest=True):
    """int64 indices of the k largest (or smallest) elements along axis, in order."""
    return topk_with_indices(x, k, axis, largest=largest)[1]


#: function; array API -> Tensor[int]
@composite
def searchsorted(x1, x2, *, side="left", sorter=None):
    """int64: where each element of x2 would be inserted into the sorted 1-D x1 to keep it sorted."""
    if side not in ("left", "right"):
        raise ArgumentError("side is 'left' or 'right', found {!r}".format(side))
    a, b = together(x1, x2)
    if a.ndim != 1:
        raise ShapeError("searchsorted needs a 1-D tensor to search in, found shape {}".format(a.shape))
    backend = a.backend
    if sorter is not None:
        from ..indexing.picking import check_bounds

        sorter, _ = check_bounds(tensor(sorter, backend), a.shape[0], 0)
        a = backend.take(a, astype(sorter, dtypes.int64), 0)
    # The position is the number of elements before it, found bit by bit from the highest on.
    n, shape = a.size, b.shape
    b = reshape(b, (b.size,))
    found = backend.full((b.size,), 0, dtypes.int64)
    steps = []
    while n >= 1 << len(steps):
        steps.append(1 << len(steps))
    for step in reversed(steps):
        next_one = backend.binary("add", found, backend.full((), step, dtypes.int64))
        probe = backend.binary("minimum", next_one, backend.full((), n, dtypes.int64))
        value = backend.take(a, backend.binary("sub", probe, backend.full((), 1, dtypes.int64)), 0)
        before = _precedes(value, b) if side == "left" else backend.unary("logical_not", _precedes(b, value))
        inside = backend.binary("eq", probe, next_one)
        found = backend.where(backend.binary("logical_and", inside, before), next_one, found)
    return reshape(found, shape)


def _precedes(a, b):
    """Whether a sorts before b; NaN sorts last."""
    backend = a.backend
    before = backend.binary("lt", a, b)
    if not a.dtype.is_float:
        return before
    last = backend.binary(
        "logical_and", backend.unary("isnan", b), backend.unary("logical_not", backend.unary("isnan", a))
    )
    return backend.binary("logical_or", before, last)


#: method
def sort_descending(x, axis=-1):
    """`sort` with the largest first."""
    return _sorted(x, axis, True)[0]


#: method -> Tensor[int]
def argsort_descending(x, axis=-1):
    """`argsort` with the largest first."""
    return _sorted(x, axis, True)[1]


#: function; NumPy lexsort
@composite
def lexsort_rows(x):
    """int64 order that sorts the rows of x (n, m) by their first element, then the second, and so on."""
    backend = x.backend
    n, m = x.shape
    order = backend.arange(0, 1, n, dtypes.int64)
    for column in range(m - 1, -1, -1):
        values = reshape(backend.slice(x, (0, column), (n, 1), (1, 1)), (n,))
        order = backend.take(order, argsort(backend.take(values, order, 0)), 0)
    return order
