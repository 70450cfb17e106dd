"""One-hot and embedding vectors, running sums, and rearrangements that depend on values."""

from ... import dtypes
from ...errors import ShapeError
from ...shapes import axis_of
from ..movement.rearranging import flip, narrow, reshape
from ..operands import astype, like, tensor
from ..overriding import composite
from .picking import take
from .visibility import checked


#: method; ONNX OneHot; Burn one_hot; num_classes: int; on_value: float; off_value: float
@composite
def one_hot(x, num_classes, axis=-1, off_value=0, on_value=1, *, dtype=None):
    """A new axis of num_classes elements: on_value at index x (negative indices count from the end), off_value
    elsewhere.

    An index out of range gives off_value everywhere. The dtype is x's unless given.
    """
    x = tensor(x)
    backend = x.backend
    if num_classes < 0:
        raise ShapeError("one_hot: num_classes must not be negative, found {}".format(num_classes))
    index = astype(x, dtypes.int64)
    index = backend.where(
        backend.binary("lt", index, backend.full((), 0, index.dtype)),
        backend.binary("add", index, backend.full((), num_classes, index.dtype)),
        index,
    )
    axis = axis_of(axis, x.ndim + 1)
    along = [1] * (x.ndim + 1)
    along[axis] = num_classes
    classes = backend.reshape(backend.arange(0, 1, num_classes, dtypes.int64), tuple(along))
    hit = backend.binary("eq", reshape(index, x.shape[:axis] + (1,) + x.shape[axis:]), classes)
    dtype = x.dtype if dtype is None else dtypes.dtype(dtype)
    zero = backend.full((), 0, dtype)
    return backend.where(hit, like(on_value, zero), like(off_value, zero))


#: function; ONNX Gather; PyTorch embedding
@composite
def embedding(indices, weight):
    """Rows of weight (n, d) at integer indices of any shape: (*indices.shape, d)."""
    return take(weight, indices, 0)


#: method; ONNX CumSum
@composite
def cumsum(x, axis=-1, *, exclusive=False, reverse=False):
    """Running sums along axis in x's dtype. exclusive: leave out the element itself; reverse: sum from the end."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    if reverse:
        x = flip(x, axis)
    backend = x.backend
    out = backend.cumulative("sum", x, axis)
    if exclusive:
        first = tuple([1 if i == axis else x.shape[i] for i in range(x.ndim)])
        out = backend.concat((backend.full(first, 0, x.dtype), narrow(out, axis, 0, max(0, x.shape[axis] - 1))), axis)
        out = narrow(out, axis, 0, x.shape[axis])
    return flip(out, axis) if reverse else out


#: function; ONNX EyeLike
@composite
def eye_like(x, k=0, *, dtype=None):
    """Ones on diagonal k, zeros elsewhere, with x's shape (2-D), and its dtype unless given."""
    from ..creation.fills import eye

    x = tensor(x)
    if x.ndim != 2:
        raise ShapeError("eye_like needs 2 axes, found shape {}".format(x.shape))
    return eye(x.shape[0], x.shape[1], k=k, dtype=dtype or x.dtype, backend=x.backend)


#: function; ONNX Compress
@composite
def compress(x, condition, axis=None):
    """The slices of x along axis (for None, the elements) where the 1-D `condition` is True; it may be shorter than
    axis."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    picked = x.backend.nonzero(astype(tensor(condition, x.backend), dtypes.bool))
    return take(x, reshape(picked, (picked.size,)), axis)


#: function; ONNX ReverseSequence
@composite
def reverse_sequence(x, lengths, batch_axis=1, time_axis=0):
    """x with the first lengths[b] steps of each batch entry in reverse order, and the rest unchanged."""
    x = tensor(x)
    backend = x.backend
    batch_axis, time_axis = axis_of(batch_axis, x.ndim), axis_of(time_axis, x.ndim)

    def along(axis, values):
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
        return backend.reshape(values, tuple(shape))

    lengths = astype(tensor(lengths, backend), dtypes.int64)
    if lengths.shape != (x.shape[batch_axis],) or batch_axis == time_axis:
        raise ShapeError(
            "reverse_sequence: lengths {} do not fit axis {} of {}, with time along axis {}".format(
                lengths.shape, batch_axis, x.shape, time_axis
            )
        )
    message = "reverse_sequence: lengths are {low} to {high}, but there are {last} steps"
    seen = checked(lengths, 0, x.shape[time_axis] + 1, message)
    lengths = along(batch_axis, lengths if seen is None else seen)
    step = along(time_axis, backend.arange(0, 1, x.shape[time_axis], dtypes.int64))
    turned = backend.binary("sub", backend.binary("sub", lengths, step), backend.full((), 1, dtypes.int64))
    index = backend.where(backend.binary("lt", step, lengths), turned, step)
    return backend.gather(x, backend.expand(index, x.shape), time_axis)
