"""Adding, removing and dividing elements along an axis, as NumPy names it."""

from ...errors import ShapeError
from ...shapes import axis_of
from ..operands import tensor
from ..overriding import composite
from ..reshaping import reshape
from .joining import concat, split
from .rearranging import broadcast_to, flip, narrow, permute_dims


def _flat(x, axis):
    """(x, the axis), or without an axis (all elements in a row, 0)."""
    x = tensor(x)
    return (reshape(x, (x.size,)), 0) if axis is None else (x, axis_of(axis, x.ndim))


#: function; NumPy append
@composite
def append(x, values, axis=None):
    """`values` behind x along axis, or without one all elements of both in a row."""
    x, at = _flat(x, axis)
    values = _flat(tensor(values, x.backend), axis)[0]
    return concat([x, values], at)


def _position(index, n, what):
    index = index.item() if hasattr(index, "item") else index
    if not -n <= index <= n:
        raise ShapeError("{}: {} is outside of {} elements".format(what, index, n))
    return index + n if index < 0 else index


#: function; NumPy insert; index: int
@composite
def insert(x, index, values, axis=None):
    """x with `values` before position `index` of axis, or without one in the row of all elements. values: a number, or
    what fits beside x; a tensor without the axis is one place long. Raises ShapeError."""
    x, at = _flat(x, axis)
    n = x.shape[at]
    index = _position(index, n, "insert")
    values = tensor(values, x.backend)
    whole = list(x.shape)
    whole[at] = values.shape[at] if values.ndim == x.ndim else 1
    if values.ndim == x.ndim - 1:
        values = reshape(values, values.shape[:at] + (1,) + values.shape[at:])
    values = broadcast_to(values.astype(x.dtype), tuple(whole))
    return concat([narrow(x, at, 0, index), values, narrow(x, at, index, n - index)], at)


#: function; NumPy delete; index: int | Sequence[int]
def delete(x, index, axis=None):
    """x without the position or positions `index` of axis, or without an axis of the row of all elements. Raises
    ShapeError for a position outside."""
    x, at = _flat(x, axis)
    n = x.shape[at]
    index = index.tolist() if hasattr(index, "tolist") else index
    gone = {_position(i, n - (i >= 0), "delete") for i in (index if isinstance(index, (list, tuple)) else [index])}
    kept = [i for i in range(n) if i not in gone]
    from ..indexing.picking import take

    return take(x, x.backend.from_list(kept, _int64(), (len(kept),)), at)


def _int64():
    from ... import dtypes

    return dtypes.int64


#: function; NumPy array_split; sections: int | Sequence[int] -> list[Tensor]
def array_split(x, sections, axis=0):
    """x in `sections` parts along axis, of which the first are longer by one where they do not divide; or cut before
    each of the positions `sections`. Raises ShapeError."""
    x = tensor(x)
    n = x.shape[axis_of(axis, x.ndim)]
    if isinstance(sections, int):
        if not 1 <= sections <= n + 65536:  # beyond: a mistake, and an empty tensor for each part
            raise ShapeError("array_split of {} elements into {} parts".format(n, sections))
        part, more = n // sections, n % sections
        return split(x, [part + 1] * more + [part] * (sections - more), axis)
    cuts = [0] + [max(0, min(n, c + n if c < 0 else c)) for c in sections] + [n]
    return split(x, [max(0, b - a) for a, b in zip(cuts, cuts[1:])], axis)


#: function; NumPy block; arrays: Any
def block(arrays):
    """Tensors joined from nested lists: the innermost along the last axis, the next along the one before."""

    def depth(a):
        return 1 + depth(a[0]) if isinstance(a, (list, tuple)) else 0

    def joined(a, axis):
        if not isinstance(a, (list, tuple)):
            a = tensor(a)
            return reshape(a, (1,) * (levels - a.ndim) + a.shape)
        return concat([joined(part, axis + 1) for part in a], axis)

    levels = depth(arrays)
    return joined(arrays, -levels)


#: method; NumPy rot90; times: int; axes: Sequence[int]
@composite
def rot90(x, times=1, axes=(0, 1)):
    """x turned by 90 degrees `times` times, from the first towards the second of two axes."""
    x = tensor(x)
    first, second = [axis_of(a, x.ndim) for a in axes]
    if first == second:
        raise ShapeError("rot90 turns two axes, found {}".format(axes))
    times %= 4
    if times == 2:
        return flip(x, (first, second))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if times == 1:
        return permute_dims(flip(x, second), order)
    return flip(permute_dims(x, order), second) if times else permute_dims(x, tuple(range(x.ndim)))


def _at_least(x, n, shape):
    x = tensor(x)
    return reshape(x, shape(x.shape) if x.ndim < n else x.shape)


#: function; NumPy atleast_1d
def atleast_1d(x):
    """x with at least one axis."""
    return _at_least(x, 1, lambda s: (1,))


#: function; NumPy atleast_2d
def atleast_2d(x):
    """x with at least two axes; (n,) becomes (1, n)."""
    return _at_least(x, 2, lambda s: (1,) + (s or (1,)))


#: function; NumPy atleast_3d
def atleast_3d(x):
    """x with at least three axes; (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _at_least(x, 3, lambda s: s + (1,) if len(s) == 2 else (1,) + (s or (1,)) + (1,))
