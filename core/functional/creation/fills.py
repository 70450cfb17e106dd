"""The creation functions of the array API standard, and masks of triangles and diagonals."""

from ... import dtypes
from ...backend import get_backend
from ...errors import ArgumentError, ShapeError
from ...tensor import Tensor
from ..operands import default_dtype, tensor
from ..overriding import one_backend


def _shape(shape):
    if isinstance(shape, int):
        shape = (shape,)
    try:
        shape = tuple([d.__index__() if not isinstance(d, int) else d for d in shape])
    except AttributeError:
        raise ShapeError("a shape must hold integers, found {}".format(shape))
    for d in shape:
        if d < 0:
            raise ShapeError("a shape has no negative sizes, found {}".format(shape))
    return shape


#: function; array API; x: Any
def from_dlpack(x, *, device=None, backend=None, copy=None):
    """A tensor from an object with `__dlpack__`. It shares memory if the backend's data is on the CPU."""
    from ...host.sharing.dlpack import from_dlpack

    return from_dlpack(x, get_backend(backend or device), copy)


#: function; array API; Burn full; fill_value: float
def full(shape, fill_value, *, dtype=None, device=None, backend=None):
    """A tensor filled with `fill_value`, whose Python type determines the dtype unless one is given. Raises DTypeError
    if fill_value is out of an integer dtype's range.
    """
    dtype = default_dtype(fill_value) if dtype is None else dtypes.dtype(dtype)
    if dtype.is_integer:
        from ..promotion import check_range

        check_range(fill_value, dtype)
    return get_backend(backend or device).full(_shape(shape), fill_value, dtype)


#: function; array API; Burn zeros
def zeros(shape, *, dtype=None, device=None, backend=None):
    """Zeros, float32 unless `dtype` is given."""
    return full(shape, 0, dtype=dtype or dtypes.float32, backend=backend or device)


#: function; array API; Burn ones
def ones(shape, *, dtype=None, device=None, backend=None):
    """Ones, float32 unless `dtype` is given."""
    return full(shape, 1, dtype=dtype or dtypes.float32, backend=backend or device)


#: function; array API; Burn empty
def empty(shape, *, dtype=None, device=None, backend=None):
    """A tensor whose values are unspecified (here zeros)."""
    return zeros(shape, dtype=dtype, backend=backend or device)


#: method; array API; Burn full_like; fill_value: float
def full_like(x, fill_value, *, dtype=None, device=None, backend=None):
    """`full` with x's shape, and x's dtype and backend unless given."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, backend=backend or device or x.backend)


#: method; array API; Burn zeros_like
def zeros_like(x, *, dtype=None, device=None, backend=None):
    """`zeros` with x's shape, and x's dtype and backend unless given."""
    return full_like(x, 0, dtype=dtype, backend=backend or device)


#: method; array API; Burn ones_like
def ones_like(x, *, dtype=None, device=None, backend=None):
    """`ones` with x's shape, and x's dtype and backend unless given."""
    return full_like(x, 1, dtype=dtype, backend=backend or device)


#: method; array API
def empty_like(x, *, dtype=None, device=None, backend=None):
    """`empty` with x's shape, and x's dtype and backend unless given."""
    return full_like(x, 0, dtype=dtype, backend=backend or device)


#: function; array API; Burn arange, arange_step; start: float; stop: float; step: float
def arange(start, stop=None, step=1, *, dtype=None, device=None, backend=None):
    """start, start + step, … below stop (1-D). int64 when all three are ints, else float32.

    Raises ShapeError if the step is 0, an argument is NaN, or the result would be infinitely long.
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = [v.item() if isinstance(v, Tensor) else v for v in (start, stop, step)]
    if step and isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        count = max(0, -(-(stop - start) // step))
        found = dtypes.int64
    else:
        count = (stop - start) / step if step else float("nan")
        if count - count != 0:
            message = "arange from {} to {} in steps of {} has no length; take finite numbers and a step other than 0"
            raise ShapeError(message.format(start, stop, step))
        count = max(0, int(count) + (count > int(count)))
        found = dtypes.float32
    return get_backend(backend or device).arange(start, step, count, dtypes.dtype(dtype) if dtype else found)


#: function; array API; start: float; stop: float; num: int
def linspace(start, stop, num, *, dtype=None, device=None, backend=None, endpoint=True):
    """num evenly spaced values from start to stop (1-D); stop is included only if `endpoint`."""
    from ..elementwise.arithmetic import add, multiply

    target = get_backend(backend or device)
    dtype = dtypes.dtype(dtype or dtypes.float32)
    wide = dtype if dtype.is_float else dtypes.float64
    (num,) = _shape(num)
    gaps = num - 1 if endpoint else num
    step = (stop - start) / gaps if gaps > 0 else 0.0
    if num and endpoint and num > 1:
        # The last value is exactly `stop`.
        body = add(multiply(target.arange(0, 1, num - 1, wide), step), float(start))
        x = target.concat((body, target.full((1,), float(stop), wide)), 0)
    else:
        x = add(multiply(target.arange(0, 1, num, wide), step), float(start))
    return x if x.dtype is dtype else target.cast(x, dtype)


#: function; array API; Burn eye; n_rows: int; n_cols: int
def eye(n_rows, n_cols=None, *, k=0, dtype=None, device=None, backend=None):
    """A matrix (n_rows, n_cols) with ones on diagonal k and zeros elsewhere."""
    target = get_backend(backend or device)
    n_rows, n_cols = _shape((n_rows, n_rows if n_cols is None else n_cols))
    row = target.reshape(target.arange(k, 1, n_rows, dtypes.int64), (n_rows, 1))
    col = target.reshape(target.arange(0, 1, n_cols, dtypes.int64), (1, n_cols))
    return target.cast(target.binary("eq", row, col), dtypes.dtype(dtype or dtypes.float32))


#: function; array API; arrays: TensorLike -> list[Tensor]
@one_backend
def meshgrid(*arrays, indexing="xy"):
    """Coordinate tensors of the grid that the 1-D arrays span. indexing: "xy" swaps the first two axes, "ij" does
    not."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError("indexing is 'xy' or 'ij', found {!r}".format(indexing))
    arrays = [tensor(a) for a in arrays]
    n = len(arrays)
    shape = [a.size for a in arrays]
    place = list(range(n))
    if indexing == "xy" and n > 1:
        shape[0], shape[1] = shape[1], shape[0]
        place[0], place[1] = 1, 0
    out = []
    for i in range(n):
        a = arrays[i]
        ones_ = [1] * n
        ones_[place[i]] = a.size
        out.append(a.backend.expand(a.backend.reshape(a, tuple(ones_)), tuple(shape)))
    return out


def _band(x, k, keep_lower):
    x = tensor(x)
    if x.ndim < 2:
        raise ShapeError("a matrix needs at least 2 axes, found shape {}".format(x.shape))
    b = x.backend
    rows, cols = x.shape[-2:]
    row = b.reshape(b.arange(k, 1, rows, dtypes.int64), (rows, 1))
    col = b.reshape(b.arange(0, 1, cols, dtypes.int64), (1, cols))
    return b.where(b.binary("le" if keep_lower else "ge", col, row), x, b.full((), 0, x.dtype))


#: method; array API; Burn tril
def tril(x, k=0):
    """The matrices of x (…, m, n) with everything above diagonal k zero."""
    return _band(x, k, True)


#: method; array API; Burn triu
def triu(x, k=0):
    """The matrices of x (…, m, n) with everything below diagonal k zero."""
    return _band(x, k, False)


def _mask(shape, diagonal, op, backend):
    b = get_backend(backend)
    rows, cols = shape[-2], shape[-1]
    row = b.reshape(b.arange(diagonal, 1, rows, dtypes.int64), (rows, 1))
    col = b.reshape(b.arange(0, 1, cols, dtypes.int64), (1, cols))
    return b.expand(b.binary(op, col, row), _shape(shape))


#: function; Burn tril_mask -> Tensor[bool]
def tril_mask(shape, diagonal=0, *, backend=None):
    """bool (…, m, n): False in the lower triangle up to `diagonal`, True above it (the part for `mask_fill` to
    fill)."""
    return _mask(shape, diagonal, "gt", backend)


#: function; Burn triu_mask -> Tensor[bool]
def triu_mask(shape, diagonal=0, *, backend=None):
    """bool (…, m, n): False in the upper triangle from `diagonal` on, True below it."""
    return _mask(shape, diagonal, "lt", backend)


#: function; Burn diag_mask -> Tensor[bool]
def diag_mask(shape, diagonal=0, *, backend=None):
    """bool (…, m, n): False on the diagonal, True elsewhere."""
    return _mask(shape, diagonal, "ne", backend)


#: function; Burn cartesian_grid -> Tensor[int]
def cartesian_grid(shape, *, backend=None):
    """int64 (*shape, rank): the index of every position in a grid of the given shape."""
    b = get_backend(backend)
    shape = _shape(shape)
    columns = []
    for i in range(len(shape)):
        along = [1] * len(shape)
        along[i] = shape[i]
        index = b.reshape(b.arange(0, 1, shape[i], dtypes.int64), tuple(along))
        columns.append(b.reshape(b.expand(index, shape), shape + (1,)))
    return b.concat(columns, len(shape))
