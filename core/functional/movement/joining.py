"""Joining and splitting tensors."""

from ... import dtypes
from ...errors import ShapeError
from ...shapes import axis_of
from ..operands import alias, astype, tensor
from ..overriding import composite
from ..promotion import all_together
from .rearranging import expand_dims, narrow, reshape


def _some(arrays, name):
    arrays = list(arrays)
    if not arrays:
        raise ShapeError("{} needs at least one tensor, found none".format(name))
    return all_together(arrays)


#: function; array API
def concat(arrays, axis=0, *, dtype=None):
    """Tensors joined along axis (None: flattened first), with promoted dtypes. Raises ShapeError unless all other sizes
    are equal."""
    arrays = _some(arrays, "concat")
    if axis is None:
        arrays, axis = [reshape(a, (a.size,)) for a in arrays], 0
    first = arrays[0]
    axis = axis_of(axis, first.ndim)
    for a in arrays:
        if a.shape[:axis] != first.shape[:axis] or a.shape[axis + 1 :] != first.shape[axis + 1 :]:
            raise ShapeError("shapes {} and {} do not join along axis {}".format(first.shape, a.shape, axis))
    if dtype is not None:
        arrays = [astype(a, dtypes.dtype(dtype)) for a in arrays]
    return alias(arrays[0]) if len(arrays) == 1 else first.backend.concat(arrays, axis)


#: function; PyTorch cat; Burn cat
def cat(arrays, axis=0, *, dtype=None):
    """`concat` by PyTorch's and Burn's name."""
    return concat(arrays, axis, dtype=dtype)


#: function; array API; Burn stack
@composite
def stack(arrays, axis=0):
    """Tensors of one shape along a new axis."""
    arrays = _some(arrays, "stack")
    for a in arrays:
        if a.shape != arrays[0].shape:
            raise ShapeError("stack needs equal shapes, found {} and {}".format(arrays[0].shape, a.shape))
    axis = axis_of(axis, arrays[0].ndim + 1)
    return arrays[0].backend.concat([expand_dims(a, axis) for a in arrays], axis)


#: method; array API -> tuple[Tensor, ...]
def unstack(x, axis=0):
    """A tuple of the slices along axis, with that axis removed."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return tuple([reshape(narrow(x, axis, i, 1), shape) for i in range(x.shape[axis])])


#: method; ONNX Split; sections: int | Sequence[int] -> list[Tensor]
def split(x, sections, axis=0):
    """Parts of x along axis. `sections`: the list of their sizes, or their number (then all but the last have equal
    size)."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(sections, int):
        if sections < 1:
            raise ShapeError("the number of parts is at least 1, found {}".format(sections))
        if sections > n + 65536:  # all but n are empty: a mistake, and a list that may not fit into memory
            raise ShapeError("{} parts of axis {} of {}: most would be empty".format(sections, axis, x.shape))
        each = -(-n // sections)
        sections = [max(0, min(each, n - i * each)) for i in range(sections)]
    elif sum(sections) != n:
        raise ShapeError("parts of {} do not add up to axis {} of {}".format(list(sections), axis, x.shape))
    out, start = [], 0
    for length in sections:
        out.append(narrow(x, axis, start, length))
        start += length
    return out


#: method; PyTorch chunk; Burn chunk; chunks: int -> list[Tensor]
def chunk(x, chunks, axis=0):
    """A list of at most `chunks` parts along axis, of equal size except the last (fewer parts if x is short)."""
    x = tensor(x)
    if chunks < 1:
        raise ShapeError("the number of parts is at least 1, found {}".format(chunks))
    n = x.shape[axis_of(axis, x.ndim)]
    each = -(-n // chunks)
    return split(x, -(-n // each), axis) if n else [x]
