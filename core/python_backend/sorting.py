"""Stable sorting along an axis."""

from .. import dtypes
from .buffers import MICRO, build
from .reductions import rows


def order(row, descending):
    """The indices that sort `row` stably; NaN last, or first when descending."""
    numbers = [i for i in range(len(row)) if row[i] == row[i]]
    nans = [i for i in range(len(row)) if row[i] != row[i]]
    if MICRO:  # its sort is not stable: the index decides between equals
        back = -1 if descending else 1
        numbers.sort(key=lambda i: (row[i], back * i), reverse=descending)
    else:
        numbers.sort(key=row.__getitem__, reverse=descending)
    return nans + numbers if descending else numbers + nans


def sort(backend, x, axis, descending):
    values, length = rows(backend, x, (axis,))
    ordered, indices = [], []
    for start in range(0, len(values), length or 1):
        row = values[start : start + length]
        index = order(row, descending)
        indices += index
        ordered += [row[i] for i in index]
    n = len(x.shape)
    shape = x.shape[:axis] + x.shape[axis + 1 :] + (length,)
    back = tuple([i if i < axis else n - 1 if i == axis else i - 1 for i in range(n)])
    first = backend.new(build(x.dtype, ordered, len(ordered)), x.dtype, shape)
    second = backend.new(build(dtypes.int64, indices, len(indices)), dtypes.int64, shape)
    return backend.permute(first, back), backend.permute(second, back)
