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


#: method; array API; Burn argsort, argsort_descending
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


#: function; array API
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
        a = backend.take(a, astype(tensor(sorter), dtypes.int64), 0)
    # The position is the number of smaller elements ("left"), or of those not greater ("right").
    column = reshape(b, (b.size, 1))
    before = backend.binary("gt" if side == "left" else "ge", column, reshape(a, (1, a.size)))
    if a.dtype.is_float:
        # NaN sorts last.
        tail = backend.unary("isnan", column)
        if side == "left":
            tail = backend.binary(
                "logical_and", tail, backend.unary("logical_not", backend.unary("isnan", reshape(a, (1, a.size))))
            )
        before = backend.binary("logical_or", before, tail)
    return reshape(backend.reduce("sum", astype(before, dtypes.int64), (1,), False), b.shape)


#: method
def sort_descending(x, axis=-1):
    """`sort` with the largest first."""
    return _sorted(x, axis, True)[0]


#: method
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
