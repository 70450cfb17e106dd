"""Functions that pick or place elements by index."""

from ... import dtypes
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import axis_of, broadcast
from ..movement.rearranging import broadcast_to, permute_dims, reshape
from ..operands import astype, like, tensor
from ..overriding import composite, one_backend


def check_bounds(index, n, axis):
    """(indices, whether they are checked) against an axis of length n, where reading them does not wait for a GPU.
    Raises IndexingError, and DTypeError for indices that are not integers."""
    from .visibility import checked

    if not index.dtype.is_integer:
        raise DTypeError("indices are integers, found {}".format(index.dtype))
    seen = checked(index, -n, n, axis=axis)
    return (index, False) if seen is None else (seen, True)


#: method; array API
@one_backend
def take(x, indices, axis=None):
    """Slices of x at `indices` (any shape) along axis (None if x is 1-D). Negative indices count from the end. Raises
    IndexingError for an index out of range."""
    x = tensor(x)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError("axis must be given for a tensor of {} axes".format(x.ndim))
        axis = 0
    axis = axis_of(axis, x.ndim)
    indices = _integers(indices, x)
    indices, _ = check_bounds(indices, x.shape[axis], axis)
    return x.backend.take(x, indices, axis)


#: method; Burn select
@composite
def select(x, axis, indices):
    """`take` in Burn's order of arguments."""
    return take(x, indices, axis)


def _integers(indices, x):
    indices = tensor(indices, x.backend)
    if not indices.dtype.is_integer:
        if indices.size:
            raise DTypeError("indices are integers, found {}".format(indices.dtype))
        indices = astype(indices, dtypes.int64)
    return indices


#: method; array API
@one_backend
def take_along_axis(x, indices, axis=-1):
    """out[i][j] = x[i][indices[i][j]] for the last axis: one index per element; the other axes broadcast."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    indices = _integers(indices, x)
    if indices.ndim != x.ndim:
        raise ShapeError("take_along_axis needs indices of {} axes, found shape {}".format(x.ndim, indices.shape))
    lead = broadcast(
        x.shape[:axis] + (1,) + x.shape[axis + 1 :], indices.shape[:axis] + (1,) + indices.shape[axis + 1 :]
    )
    x = broadcast_to(x, lead[:axis] + x.shape[axis : axis + 1] + lead[axis + 1 :])
    indices = broadcast_to(indices, lead[:axis] + indices.shape[axis : axis + 1] + lead[axis + 1 :])
    indices, _ = check_bounds(indices, x.shape[axis], axis)
    return x.backend.gather(x, indices, axis)


#: method; ONNX GatherElements; Burn gather
@one_backend
def gather(x, axis, indices):
    """out[i][j][k] = x[indices[i][j][k]][j][k] for axis 0 (Burn, PyTorch, ONNX GatherElements)."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    indices = _integers(indices, x)
    indices = _check_elements(x, indices, axis)
    return x.backend.gather(_cut(x, indices, axis), indices, axis)


def _cut(x, indices, axis):
    """x cut to the size of `indices` along every axis but `axis`."""
    shape = tuple([x.shape[i] if i == axis else indices.shape[i] for i in range(x.ndim)])
    return x if shape == x.shape else x.backend.slice(x, (0,) * x.ndim, shape, (1,) * x.ndim)


def _check_elements(x, indices, axis):
    if indices.ndim != x.ndim:
        raise ShapeError("indices of shape {} do not have the {} axes of {}".format(indices.shape, x.ndim, x.shape))
    for i in range(x.ndim):
        if i != axis and indices.shape[i] > x.shape[i]:
            raise ShapeError("indices of shape {} reach beyond axis {} of {}".format(indices.shape, i, x.shape))
    return check_bounds(indices, x.shape[axis], axis)[0]


def check_reduction(reduction):
    """Raise ArgumentError unless it is one that `scatter` takes."""
    if reduction not in ("add", "none", "mul", "max", "min"):
        raise ArgumentError("scatter: reduction is 'add', 'none', 'mul', 'max' or 'min', found {!r}".format(reduction))


#: method; ONNX ScatterElements; Burn scatter
@one_backend
def scatter(x, axis, indices, values, reduction="add"):
    """x with values[i][j] combined into x[indices[i][j]][j], for axis 0. reduction: "add", "none" (assign), "mul",
    "max" or "min". Raises ArgumentError for another."""
    check_reduction(reduction)
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    indices = _integers(indices, x)
    values = like(values, x)
    indices = _check_elements(x, indices, axis)
    if values.shape != indices.shape:
        if values.ndim:
            raise ShapeError("values of shape {} do not fit indices of shape {}".format(values.shape, indices.shape))
        values = broadcast_to(values, indices.shape)
    return x.backend.scatter(x, indices, values, axis, reduction)


#: method; Burn select_assign
@composite
def select_assign(x, axis, indices, values):
    """x with values[i] added to the slice indices[i] along axis (1-D indices), as Burn's select_assign."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    indices = _integers(indices, x)
    along = [1] * x.ndim
    along[axis] = indices.size
    shape = x.shape[:axis] + (indices.size,) + x.shape[axis + 1 :]
    return scatter(x, axis, broadcast_to(reshape(indices, along), shape), broadcast_to(like(values, x), shape), "add")


#: method; array API; ONNX NonZero; Burn nonzero -> tuple[Tensor, ...]
def nonzero(x):
    """The indices of the nonzero elements in row-major order: a tuple of int64 tensors, one per axis."""
    x = tensor(x)
    if not x.ndim:
        raise ShapeError("nonzero needs at least one axis")
    backend = x.backend
    found = backend.nonzero(x)
    n = found.shape[1]
    return tuple([backend.reshape(backend.slice(found, (i, 0), (1, n), (1, 1)), (n,)) for i in range(x.ndim)])


#: method; NumPy argwhere; Burn argwhere -> Tensor[int]
def argwhere(x):
    """int64 (count, rank): the index of each nonzero element."""
    x = tensor(x)
    if not x.ndim:
        n = 1 if x.item() else 0
        return x.backend.full((n, 0), 0, dtypes.int64)
    return permute_dims(x.backend.nonzero(x), (1, 0))
