"""Positions in a flat tensor and indices along its axes, as NumPy names them."""

from ...errors import ShapeError
from ..operands import tensor
from ..overriding import composite
from ..promotion import integers
from ..reshaping import reshape


#: function; NumPy unravel_index; shape: Sequence[int] -> tuple[Tensor, ...]
def unravel_index(indices, shape):
    """The index along each axis of `shape` of positions in the flattened tensor; negative ones count from the end."""
    positions = integers(indices, "unravel_index")
    total = 1
    for n in shape:
        total *= n
    positions = (positions + total) % total if total else positions
    out = []
    for n in reversed(tuple(shape)):
        out.append(positions % n)
        positions = positions // n
    return tuple(out[::-1])


#: function; NumPy ravel_multi_index; indices: Sequence[TensorLike]; shape: Sequence[int]
def ravel_multi_index(indices, shape):
    """The positions in the flattened tensor of an index along each axis of `shape`. Raises ShapeError unless there is
    one for each axis."""
    if len(indices) != len(shape):
        raise ShapeError("ravel_multi_index: {} indices for {} axes".format(len(indices), len(shape)))
    out = 0
    for index, n in zip(indices, shape):
        out = integers(index, "ravel_multi_index") + out * n
    return tensor(out)


#: method; NumPy flatnonzero
@composite
def flatnonzero(x):
    """int64 (count,): the positions in the flattened tensor of the elements that are not 0."""
    x = tensor(x)
    return x.backend.nonzero(reshape(x, (x.size,)))[0]
