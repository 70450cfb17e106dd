"""Indexing by tuples: the last axis of `indices` holds one index per leading axis of x (ONNX GatherND, ScatterND)."""

from ... import dtypes
from ...backend import operation
from ...errors import ArgumentError, ShapeError
from ...shapes import size
from ..movement.rearranging import broadcast_to, reshape
from ..operands import astype, like, tensor
from ..overriding import composite, one_backend
from ..promotion import integers


def _flat_index(indices, lengths, left_out=False, first=0):
    """(…, depth) -> (…,): the index into the `depth` axes of `lengths`, merged into one. Negative indices count from
    the end. Raises IndexingError if one is out of range; axes are numbered from `first`. Indices computed on a GPU are
    clamped instead, or with left_out mapped to one past the last."""
    from .picking import check_bounds

    backend = indices.backend
    total = None
    outside = None
    shape = indices.shape[:-1]
    for i in range(len(lengths)):
        starts, sizes = (0,) * len(shape) + (i,), shape + (1,)
        at = reshape(backend.slice(indices, starts, sizes, (1,) * indices.ndim), shape)
        at, seen = check_bounds(at, lengths[i], first + i)
        zero, n = backend.full((), 0, at.dtype), backend.full((), lengths[i], at.dtype)
        at = backend.where(backend.binary("lt", at, zero), backend.binary("add", at, n), at)
        if not seen:
            last = backend.full((), max(0, lengths[i] - 1), at.dtype)
            inside = backend.binary("minimum", backend.binary("maximum", at, zero), last)
            beyond = backend.binary("ne", at, inside)
            outside = beyond if outside is None else backend.binary("logical_or", outside, beyond)
            at = inside
        total = at if total is None else backend.binary("add", backend.binary("mul", total, n), at)
    if total is None:
        return backend.full(shape, 0, dtypes.int64)
    if left_out and outside is not None:
        total = backend.where(outside, backend.full((), size(lengths), total.dtype), total)
    return total


def _checked(what, x, indices, batch_dims=0):
    indices = integers(tensor(indices, x.backend), what + ": indices")
    if indices.dtype.bits < 32:
        indices = astype(indices, dtypes.int64)
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or depth > x.ndim - batch_dims or x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError(
            "{}: indices {} do not fit {} with {} batch axes; the last axis holds at most one index per axis".format(
                what, indices.shape, x.shape, batch_dims
            )
        )
    return indices, depth


#: function; ONNX GatherND
@composite
def gather_nd(x, indices, batch_dims=0):
    """Slices of x at tuples of indices: indices (*batch, …, depth) -> (*batch, …, *x.shape[batch_dims + depth:])."""
    x = tensor(x)
    backend = x.backend
    indices, depth = _checked("gather_nd", x, indices, batch_dims)
    lead, rest = x.shape[:batch_dims], x.shape[batch_dims + depth :]
    lengths = x.shape[batch_dims : batch_dims + depth]
    at = _flat_index(indices, lengths, first=batch_dims)
    inner = at.shape[batch_dims:]
    batch, count = size(lead), size(lengths)
    if batch_dims:
        # The batch becomes one more leading index.
        first = backend.arange(0, count, batch, at.dtype)
        at = backend.binary("add", reshape(at, (batch, size(inner))), backend.reshape(first, (batch, 1)))
    out = backend.take(reshape(x, (batch * count,) + rest), reshape(at, (batch * size(inner),)), 0)
    return reshape(out, lead + inner + rest)


#: function; ONNX ScatterND
@composite
def scatter_nd(x, indices, updates, reduction="none"):
    """x with `updates` (*indices.shape[:-1], *x.shape[depth:]) written at tuples of indices (…, depth).

    reduction: "none" (assign; the last of equal indices wins), "add", "mul", "max" or "min".
    """
    from .picking import check_reduction

    check_reduction(reduction)
    x = tensor(x)
    backend = x.backend
    indices, depth = _checked("scatter_nd", x, indices)
    updates = like(updates, x)
    rest = x.shape[depth:]
    if updates.shape != indices.shape[:-1] + rest:
        raise ShapeError(
            "scatter_nd: updates {} do not fit indices {} into {}".format(updates.shape, indices.shape, x.shape)
        )
    rows, width, count = size(x.shape[:depth]), size(rest), size(indices.shape[:-1])
    at = reshape(_flat_index(indices, x.shape[:depth], left_out=True), (count, 1))
    out = backend.scatter(
        reshape(x, (rows, width)), broadcast_to(at, (count, width)), reshape(updates, (count, width)), 0, reduction
    )
    return reshape(out, x.shape)


#: function; ONNX TensorScatter
@one_backend
def tensor_scatter(past, update, write_indices=None, axis=-2, mode="linear"):
    """past with update[b] written along axis, starting at write_indices[b] (0 by default): updates a cache.

    past (batch, …, length, …), update of the same shape but shorter along axis; mode "circular" wraps around at the end
    (ONNX TensorScatter). Raises ShapeError if the shapes do not match, IndexingError if a linear write goes beyond the
    end.
    """
    if mode not in ("linear", "circular"):
        raise ArgumentError("tensor_scatter: mode is 'linear' or 'circular', found {!r}".format(mode))
    past = tensor(past)
    backend = past.backend
    update = like(update, past)
    axis = axis + past.ndim if axis < 0 else axis
    fits = past.ndim == update.ndim and 0 < axis < past.ndim and update.shape[axis] <= past.shape[axis]
    if not fits or past.shape[:axis] + past.shape[axis + 1 :] != update.shape[:axis] + update.shape[axis + 1 :]:
        raise ShapeError("tensor_scatter: {} cannot be written into {} along {}".format(update.shape, past.shape, axis))
    fast = operation(backend, "tensor_scatter")
    if fast:
        return fast(past, update, write_indices, axis, mode)
    batch, steps = past.shape[0], update.shape[axis]
    at = backend.reshape(backend.arange(0, 1, steps, dtypes.int64), (1, steps))
    if write_indices is not None:
        at = backend.binary("add", at, reshape(astype(tensor(write_indices, backend), dtypes.int64), (batch, 1)))
    if mode == "circular":
        at = backend.binary("remainder", at, backend.full((), past.shape[axis], dtypes.int64))
    elif write_indices is not None:
        from .picking import check_bounds

        at, _ = check_bounds(at, past.shape[axis], axis)
    shape = [1] * past.ndim
    shape[0], shape[axis] = at.shape
    return backend.scatter(past, broadcast_to(reshape(at, shape), update.shape), update, axis, "none")
