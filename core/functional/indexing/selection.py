"""x[key], x[key] = value, and slices.

Keys follow NumPy: ints, slices, ..., None (a new axis), bool tensors, and integer tensors or lists. The last broadcast
together; their axes replace the first of them if they are adjacent, and come first otherwise.
"""

from ... import dtypes
from ...backend import operation
from ...errors import IndexingError, ShapeError
from ...shapes import as_int, assume_equal, broadcast, size
from ...tensor import Tensor
from ..movement.rearranging import broadcast_to, moveaxis, permute_dims, reshape
from ..operands import alias, astype, like, tensor
from ..overriding import composite, one_backend


class _Span:
    """A slice on MicroPython, where `slice` cannot be called."""

    def __init__(self, start=None, stop=None, step=None):
        self.start = start
        self.stop = stop
        self.step = step

    def __getitem__(self, key):
        return key


_SLICES = (type(_Span()[0:1]), _Span)


def _slice_positions(key, n):
    """(start, count, step) of a slice on an axis of length n."""
    step = 1 if key.step is None else key.step.__index__() if not isinstance(key.step, int) else key.step
    if not step:
        raise IndexingError("the step of a slice must not be 0")
    start, stop = key.start, key.stop
    if start is None:
        start = 0 if step > 0 else n - 1
    else:
        start = as_int(start)
        start = max(start + n, 0 if step > 0 else -1) if start < 0 else min(start, n if step > 0 else n - 1)
    if stop is None:
        stop = n if step > 0 else -1
    else:
        stop = as_int(stop)
        stop = max(stop + n, 0 if step > 0 else -1) if stop < 0 else min(stop, n if step > 0 else n - 1)
    count = (stop - start + step - (1 if step > 0 else -1)) // step
    return (start, count, step) if count > 0 else (0, 0, 1)


def _part(x, k):
    """One entry of a key as a bool, int, slice, None, `...`, or a Tensor of integers or bools. Raises IndexingError."""
    if not isinstance(k, (bool, int, Tensor)):
        if isinstance(k, (list, tuple, range)):
            k = tensor(list(k), x.backend)
        elif hasattr(k, "__array_interface__"):  # a NumPy array or scalar
            k = tensor(k, x.backend) if k.ndim else k.item()
        if isinstance(k, Tensor) and not k.size and not k.dtype.is_bool:
            k = astype(k, dtypes.int64)
    if isinstance(k, Tensor) and not k.ndim and not k.dtype.is_float:
        k = k.item()
    if isinstance(k, Tensor):
        if not k.dtype.is_bool and not k.dtype.is_integer:
            raise IndexingError("an index is integer or bool, found {}".format(k.dtype))
    elif k is not None and k is not Ellipsis and not isinstance(k, (int,) + _SLICES):
        try:
            k = k.__index__()
        except AttributeError:
            raise IndexingError("cannot index with {!r}".format(k))
    return k


def _parts(x, key):
    """The key as a list with one entry per axis it covers, with `...` expanded."""
    key = list(key) if isinstance(key, tuple) else [key]
    out, used, dots = [], 0, None
    for k in key:
        k = _part(x, k)
        if isinstance(k, Tensor):
            used += k.ndim if k.dtype.is_bool else 1
        elif k is Ellipsis:
            if dots is not None:
                raise IndexingError("an index may contain ... only once")
            dots = len(out)
        elif k is not None and not isinstance(k, bool):
            used += 1
        out.append(k)
    if used > x.ndim:
        raise IndexingError("too many indices: {} for the {} axes of shape {}".format(used, x.ndim, x.shape))
    rest = [_Span()] * (x.ndim - used)
    if dots is None:
        return out + rest
    return out[:dots] + rest + out[dots + 1 :]


def _with_axes_for_bools(x, parts):
    """x and the key, with a new axis of length 1 for each 0-D bool, which is a mask over that axis."""
    shape, out, axis = [], [], 0
    for k in parts:
        if isinstance(k, bool):
            shape.append(1)
            k = x.backend.full((1,), k, dtypes.bool)
        elif k is not None:
            n = k.ndim if isinstance(k, Tensor) and k.dtype.is_bool else 1
            shape += x.shape[axis : axis + n]
            axis += n
        out.append(k)
    return reshape(x, shape), out


def _spans(x, parts):
    """The ints, slices and None of a key as (starts, sizes, steps, resulting shape, [(axis of that shape, advanced
    index)…], whether the advanced indices are not adjacent)."""
    starts, sizes, steps, shape, advanced = [], [], [], [], []
    gap, separated, axis = False, False, 0
    has_arrays = False
    for k in parts:
        has_arrays = has_arrays or isinstance(k, Tensor)
    for k in parts:
        if k is None:
            shape.append(1)
            gap = gap or bool(advanced)
            continue
        if isinstance(k, Tensor):
            separated = separated or gap
            for i in range(k.ndim if k.dtype.is_bool else 1):
                n = x.shape[axis]
                if k.dtype.is_bool and k.shape[i] not in (n, 0):  # the standard: 0 selects nothing
                    raise IndexingError(
                        "a bool index of shape {} does not fit axis {} of {}".format(k.shape, axis, x.shape)
                    )
                if i == 0:
                    advanced.append((len(shape), k))
                starts.append(0)
                sizes.append(n)
                steps.append(1)
                shape.append(n)
                axis += 1
            continue
        n = x.shape[axis]
        if isinstance(k, int):
            if not -n <= k < n:
                raise IndexingError("index {} is outside axis {} of length {}".format(k, axis, n))
            if has_arrays:
                # Beside index arrays an int counts as an index array of one element.
                separated = separated or gap
                advanced.append((len(shape), k))
                shape.append(1)
            starts.append(k % n)
            sizes.append(1)
            steps.append(1)
        else:
            start, count, step = _slice_positions(k, n)
            starts.append(start)
            sizes.append(count)
            steps.append(step)
            shape.append(count)
            gap = gap or bool(advanced)
        axis += 1
    return tuple(starts), tuple(sizes), tuple(steps), tuple(shape), advanced, separated


def _index_arrays(x, advanced):
    """Broadcast integer indices, one per axis: ([axes], [int64 tensors], their shape)."""
    backend = x.backend
    axes, arrays = [], []
    for axis, index in advanced:
        if isinstance(index, int):
            axes.append(axis)
            arrays.append(backend.full((), 0, dtypes.int64))
        elif index.dtype.is_bool:
            found = backend.nonzero(index)
            for i in range(index.ndim):
                axes.append(axis + i)
                arrays.append(reshape(backend.slice(found, (i, 0), (1, found.shape[1]), (1, 1)), (found.shape[1],)))
        else:
            axes.append(axis)
            arrays.append(astype(index, dtypes.int64))
    try:
        shape = broadcast(*[a.shape for a in arrays])
    except ShapeError as error:
        raise IndexingError("index arrays: {}".format(error))
    return axes, arrays, shape


def _linear(x, axes, arrays, shape):
    """One int64 index of `shape` into the merged `axes` of x, with negative indices wrapped and bounds checked."""
    from .picking import check_bounds

    backend = x.backend
    total = None
    for axis, index in zip(axes, arrays):
        n = x.shape[axis]
        index, seen = check_bounds(index, n, axis)
        if len(axes) == 1:
            return broadcast_to(index, shape)
        turned = backend.where(backend.binary("lt", index, backend.full((), 0, index.dtype)),
                         backend.binary("add", index, backend.full((), n, index.dtype)), index)  # fmt: skip
        if not seen:  # clamped, or it would address another row
            turned = backend.binary("maximum", turned, backend.full((), 0, index.dtype))
            turned = backend.binary("minimum", turned, backend.full((), max(0, n - 1), index.dtype))
        total = (
            turned
            if total is None
            else backend.binary("add", backend.binary("mul", total, backend.full((), n, index.dtype)), turned)
        )
    return broadcast_to(total, shape)


#: method; array API __getitem__
@one_backend
def getitem(x, key):
    """x[key]; a view if the key holds only ints, slices, None and `...`. Raises IndexingError if it does not fit x."""
    if isinstance(key, int) and not isinstance(key, bool) and x.shape:  # a fast path for the most common key
        n = x.shape[0]
        if not -n <= key < n:
            raise IndexingError("index {} is outside axis 0 of length {}".format(key, n))
        rest = x.shape[1:]
        backend = x.backend
        lead = backend.slice(x, (key % n,) + (0,) * len(rest), (1,) + rest, (1,) * x.ndim)
        return backend.reshape(lead, rest)
    whole = x
    parts = _parts(x, key)
    if True in [isinstance(k, bool) for k in parts]:
        x, parts = _with_axes_for_bools(x, parts)
    starts, sizes, steps, shape, advanced, separated = _spans(x, parts)
    if steps.count(1) != len(steps) or not assume_equal(sizes, x.shape, "indexing"):
        x = x.backend.slice(x, starts, sizes, steps)
    if not assume_equal(shape, x.shape, "indexing"):
        x = x.backend.reshape(x, shape)
    if not advanced:
        return alias(x) if x is whole else x
    axes, arrays, shape = _index_arrays(x, advanced)
    backend = x.backend
    # The indexed axes move to the front and merge into one, from which `take` picks.
    order = axes + [i for i in range(x.ndim) if i not in axes]
    index = _linear(x, axes, arrays, shape)
    rest = tuple([x.shape[i] for i in range(x.ndim) if i not in axes])
    merged = size([x.shape[i] for i in axes])
    out = backend.take(reshape(permute_dims(x, order), (merged,) + rest), index, 0)
    if not separated and axes[0]:
        out = moveaxis(out, tuple(range(len(shape))), tuple(range(axes[0], axes[0] + len(shape))))
    return out


#: function; array API __setitem__ -> None
def setitem(x, key, value):
    """x[key] = value; views taken earlier keep the old values."""
    if hasattr(memoryview, "cast"):  # not on MicroPython, where Tensor's own method calls this function
        x[key] = value
    else:
        x.data = assigned(x, key, value).data


#: method
@one_backend
def assigned(x, key, value):
    """A copy of x in which x[key] is `value` (a number or tensor, broadcast to the shape of x[key])."""
    backend = x.backend
    region = _region(x, key, value)
    if region:
        fast = operation(backend, "assign_region")
        out = fast(x, *region) if fast else None
        if out is not None:
            return out
    flat = backend.reshape(backend.arange(0, 1, x.size, dtypes.int64), x.shape)
    where = getitem(flat, key)
    value = _spread(value, x, where.shape)
    out = backend.scatter(
        reshape(x, (x.size,)), reshape(where, (where.size,)), reshape(value, (where.size,)), 0, "none"
    )
    return reshape(out, x.shape)


def _region(x, key, value):
    """(starts, sizes, steps, value of the shape `sizes`) of an assignment; None if the key holds bools or tensors."""
    parts = _parts(x, key)
    for k in parts:
        if isinstance(k, (bool, Tensor)):
            return None
    starts, sizes, steps, shape, _, _ = _spans(x, parts)
    return starts, sizes, steps, reshape(_spread(value, x, shape), sizes)


def _spread(value, x, shape):
    """A number or tensor as a tensor like x, broadcast to `shape`; surplus leading axes of length 1 are dropped."""
    value = like(value, x)
    lead = value.ndim - len(shape)
    if lead > 0 and value.shape[:lead] == (1,) * lead:
        value = reshape(value, value.shape[lead:])
    try:
        return broadcast_to(value, shape)
    except ShapeError:
        raise ShapeError("cannot assign shape {} to a selection of shape {}".format(value.shape, shape))


#: method; ONNX Slice; ranges: Sequence[slice | Sequence[int]]
def slice(x, ranges):
    """x limited along its leading axes: each range is (start, stop), (start, stop, step) or a slice."""
    return getitem(x, _key(ranges))


#: method; Burn slice_assign; ranges: Sequence[slice | Sequence[int]]
@composite
def slice_assign(x, ranges, values):
    """A copy of x in which the part `slice(x, ranges)` is `values`."""
    return assigned(x, _key(ranges), values)


def _key(ranges):
    return tuple([_Span(*r) if isinstance(r, (tuple, list)) else r for r in ranges])
