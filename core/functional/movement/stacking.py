"""Joining tensors along rows, columns and depth, as NumPy names it."""

from ..operands import tensor
from ..reshaping import reshape
from .joining import concat


def _with_axes(x, shape):
    x = tensor(x)
    return reshape(x, shape(x)) if x.ndim < len(shape(x)) else x


#: function; NumPy vstack
def vstack(arrays):
    """Tensors joined along the first axis; one of a single axis is a row. Raises ShapeError if the shapes do not
    fit."""
    return concat([_with_axes(a, lambda x: (1, x.size)) for a in arrays], 0)


#: function; NumPy hstack
def hstack(arrays):
    """Tensors joined along the second axis, or the only one. Raises ShapeError if the shapes do not fit."""
    arrays = [_with_axes(a, lambda x: (1,)) for a in arrays]
    return concat(arrays, 1 if arrays and arrays[0].ndim > 1 else 0)


#: function; NumPy dstack
def dstack(arrays):
    """Tensors joined along the third axis; (n,) counts as (1, n, 1) and (m, n) as (m, n, 1). Raises ShapeError if the
    shapes do not fit."""
    return concat([_with_axes(a, lambda x: x.shape + (1,) if x.ndim == 2 else (1, x.size, 1)) for a in arrays], 2)


#: function; NumPy column_stack
def column_stack(arrays):
    """Tensors joined along the second axis; one of a single axis is a column. Raises ShapeError if the shapes do not
    fit."""
    return concat([_with_axes(a, lambda x: (x.size, 1)) for a in arrays], 1)
