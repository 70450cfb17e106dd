"""Positions in a flat tensor and indices along its axes, as NumPy names them."""

from ... import dtypes
from ...errors import ShapeError
from ...shapes import size
from ..operands import astype, tensor
from ..overriding import composite
from ..promotion import integers
from ..reshaping import reshape
from .picking import check_bounds


#: function; NumPy unravel_index; shape: Sequence[int] -> tuple[Tensor, ...]
def unravel_index(indices, shape):
    """The index along each axis of `shape` of positions in the flattened tensor, int64; negative ones count from the
    end. Raises IndexingError for a position outside."""
    total = size(shape)
    positions = check_bounds(astype(integers(indices, "unravel_index"), dtypes.int64), total, 0)[0]
    positions = (positions + total) % total if total else positions
    out = []
    for n in reversed(tuple(shape)):
        out.append(positions % n)
        positions = positions // n
    return tuple(out[::-1])


#: function; NumPy ravel_multi_index; indices: Sequence[TensorLike]; shape: Sequence[int]
def ravel_multi_index(indices, shape):
    """The positions in the flattened tensor, int64, of an index along each axis of `shape`; negative ones count from
    the end. Raises ShapeError unless there is one for each axis, IndexingError for one outside."""
    if len(indices) != len(shape):
        raise ShapeError("ravel_multi_index: {} indices for {} axes".format(len(indices), len(shape)))
    out = 0
    for axis, (index, n) in enumerate(zip(indices, shape)):
        index = astype(integers(index, "ravel_multi_index"), dtypes.int64)
        out = check_bounds(index, n, axis)[0] % max(n, 1) + out * n
    return tensor(out)


#: method; NumPy flatnonzero
@composite
def flatnonzero(x):
    """int64 (count,): the positions in the flattened tensor of the elements that are not 0."""
    x = tensor(x)
    return x.backend.nonzero(reshape(x, (x.size,)))[0]
