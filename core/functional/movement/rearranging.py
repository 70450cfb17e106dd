"""Moving elements without arithmetic: axes, views, padding, repetition."""

from ...backend import operation
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import as_int, assume_equal, axes_of, axis_of, broadcast, size
from ..operands import alias, tensor
from ..overriding import composite, one_backend
from ..reshaping import reshape


#: method; array API
def permute_dims(x, axes):
    """Axis i of the result is axis axes[i] of x."""
    x = tensor(x)
    axes = tuple([axis_of(a, x.ndim) for a in axes])
    if sorted(axes) != list(range(x.ndim)):
        raise ShapeError("axes {} are not a permutation of the {} axes of {}".format(axes, x.ndim, x.shape))
    return alias(x) if list(axes) == sorted(axes) else x.backend.permute(x, axes)


#: method; ONNX Transpose; Burn permute; axes: Any
def permute(x, *axes):
    """`permute_dims` with the axes as a tuple or one by one."""
    return permute_dims(x, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


#: method; NumPy transpose; PyTorch transpose; Burn transpose; axes: Any; more: int
def transpose(x, axes=None, *more):
    """x with its last two axes swapped; with `axes` (a tuple, or one by one), `permute_dims`. NumPy reverses all axes
    instead: for that, pass all of them."""
    return matrix_transpose(x) if axes is None else permute_dims(x, (axes,) + more if more else axes)


#: method; array API
def matrix_transpose(x):
    """The last two axes swapped."""
    x = tensor(x)
    if x.ndim < 2:
        raise ShapeError("a matrix needs at least 2 axes, found shape {}".format(x.shape))
    return swap_dims(x, -2, -1)


#: method; Burn swap_dims; dim1: int; dim2: int
def swap_dims(x, dim1, dim2):
    """Two axes swapped."""
    x = tensor(x)
    axes = list(range(x.ndim))
    a, b = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    axes[a], axes[b] = b, a
    return permute_dims(x, axes)


#: method; array API; source: int | Sequence[int]; destination: int | Sequence[int]
def moveaxis(x, source, destination):
    """The axes `source` moved to positions `destination`; the others keep their order."""
    x = tensor(x)
    source = (source,) if isinstance(source, int) else source
    destination = (destination,) if isinstance(destination, int) else destination
    if len(source) != len(destination):
        raise ShapeError("moveaxis got {} sources and {} destinations".format(len(source), len(destination)))
    source = [axis_of(a, x.ndim) for a in source]
    destination = [axis_of(a, x.ndim) for a in destination]
    axes_of(source, x.ndim), axes_of(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return permute_dims(x, order)


#: method; PyTorch movedim; Burn movedim; source: int | Sequence[int]; destination: int | Sequence[int]
def movedim(x, source, destination):
    """`moveaxis` by PyTorch's and Burn's name."""
    return moveaxis(x, source, destination)


#: method; array API; PyTorch squeeze; axis: int | Sequence[int]
def squeeze(x, axis=None):
    """x without the axes `axis` (int or tuple; None: all of length 1). Raises ShapeError if one of them is longer than
    1."""
    x = tensor(x)
    axes = [i for i in range(x.ndim) if x.shape[i] == 1] if axis is None else axes_of(axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError("axis {} of {} has length {}, only 1 can be squeezed".format(a, x.shape, x.shape[a]))
    return reshape(x, [x.shape[i] for i in range(x.ndim) if i not in axes])


#: method; array API; axis: int | Sequence[int]
def expand_dims(x, axis=0):
    """x with a new axis of length 1 at each position in `axis` (int or tuple) of the result."""
    x = tensor(x)
    new = axes_of(axis if isinstance(axis, int) else tuple(axis), x.ndim + (1 if isinstance(axis, int) else len(axis)))
    out = list(x.shape)
    for a in new:
        out.insert(a, 1)
    return reshape(x, out)


#: method; ONNX Unsqueeze; PyTorch unsqueeze; Burn unsqueeze, unsqueeze_dim; axis: int | Sequence[int]
def unsqueeze(x, axis=0):
    """`expand_dims` by PyTorch's and Burn's name."""
    return expand_dims(x, axis)


#: method; array API
def broadcast_to(x, shape):
    """x broadcast to `shape` by NumPy's rule (a view)."""
    x = tensor(x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if assume_equal(x.shape, shape, "broadcast_to"):
        return alias(x)
    _not_negative(shape, "a shape")
    if not assume_equal(broadcast(x.shape, shape), shape, "broadcast_to"):
        raise ShapeError("shape {} does not broadcast to {}".format(x.shape, shape))
    return x.backend.expand(x, shape)


#: method; Burn expand; shape: Any
def expand(x, *shape):
    """x broadcast to shape, where -1 keeps an axis and both shapes broadcast (ONNX Expand, PyTorch and Burn expand)."""
    x = tensor(x)
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    lead = len(shape) - x.ndim
    if -1 in shape:
        if lead < 0 or -1 in shape[:lead]:
            raise ShapeError("-1 in {} keeps an axis that {} does not have".format(shape, x.shape))
        shape = tuple([x.shape[i - lead] if shape[i] == -1 else shape[i] for i in range(len(shape))])
    return broadcast_to(x, broadcast(x.shape, shape))


#: function; array API; arrays: TensorLike -> list[Tensor]
@one_backend
def broadcast_arrays(*arrays):
    """All arrays broadcast to their common shape (a list of views)."""
    arrays = [tensor(a) for a in arrays]
    shape = broadcast(*[a.shape for a in arrays])
    return [broadcast_to(a, shape) for a in arrays]


#: function; array API; NumPy broadcast_shapes; shapes: Sequence[int] -> tuple[int, ...]
def broadcast_shapes(*shapes):
    """The shape that all `shapes` broadcast to."""
    return broadcast(*[tuple(s) for s in shapes])


def _slice(x, starts, sizes, steps):
    return x.backend.slice(x, tuple(starts), tuple(sizes), tuple(steps))


#: method; PyTorch narrow; Burn narrow; start: int
def narrow(x, axis, start, length):
    """`length` elements along axis from `start` on (a view)."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    if start < 0:
        start += x.shape[axis]
    if start < 0 or length < 0 or start + length > x.shape[axis]:
        raise ShapeError("{} elements from {} do not lie in axis {} of {}".format(length, start, axis, x.shape))
    if length == x.shape[axis]:
        return alias(x)
    starts, sizes = [0] * x.ndim, list(x.shape)
    starts[axis], sizes[axis] = start, length
    return _slice(x, starts, sizes, [1] * x.ndim)


#: method; array API; Burn flip
@composite
def flip(x, axis=None):
    """The elements in reverse order along axis (int or tuple; None: all axes)."""
    x = tensor(x)
    axes = axes_of(axis, x.ndim)
    if not x.size or not axes:
        return alias(x)
    starts = [x.shape[i] - 1 if i in axes else 0 for i in range(x.ndim)]
    return _slice(x, starts, x.shape, [-1 if i in axes else 1 for i in range(x.ndim)])


#: method; array API; shift: int | Sequence[int]
@composite
def roll(x, shift, axis=None):
    """x with its elements shifted along axis by `shift` places, wrapping around.

    shift and axis: an int or a tuple; a single one applies to all of the other. axis None rolls the flattened elements.
    Raises DTypeError for a shift that is not an integer, ShapeError if the tuples differ in length.
    """
    x = alias(tensor(x))
    shifts = [_whole_shift(s) for s in (shift if isinstance(shift, (tuple, list)) else (shift,))]
    if axis is None:
        return reshape(roll(reshape(x, (-1,)) if x.size else x, shifts, 0) if x.ndim else x, x.shape)
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ShapeError("roll needs a shift for each axis, found shifts {} and axes {}".format(shifts, axes))
    for s, a in zip(shifts, axes):
        a = axis_of(a, x.ndim)
        n = x.shape[a]
        s = s % n if n else 0
        if s:
            fast = operation(x.backend, "rotate")
            x = fast(x, s, a) if fast else x.backend.concat((narrow(x, a, n - s, s), narrow(x, a, 0, n - s)), a)
    return x


def _whole_shift(value):
    if isinstance(value, int):
        return value
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise DTypeError("roll shifts by integers, found {!r}".format(value))


#: method; array API; Burn repeat
@composite
def tile(x, repetitions):
    """x repeated repetitions[i] times along axis i; the shorter of x.shape and repetitions is extended with leading
    ones."""
    x = tensor(x)
    repetitions = [repetitions] if isinstance(repetitions, int) else [as_int(r) for r in repetitions]
    _not_negative(repetitions, "tile")
    repetitions = [1] * (x.ndim - len(repetitions)) + repetitions
    if len(repetitions) > x.ndim:
        x = reshape(x, (1,) * (len(repetitions) - x.ndim) + x.shape)
    out = tuple([x.shape[i] * repetitions[i] for i in range(x.ndim)])
    if not size(out):
        return x.backend.full(out, 0, x.dtype)
    # One new axis of length 1 before each repeated one, expanded, and merged again.
    thin, wide = [], []
    for i in range(x.ndim):
        if repetitions[i] != 1:
            thin.append(1)
            wide.append(repetitions[i])
        thin.append(x.shape[i])
        wide.append(x.shape[i])
    return reshape(broadcast_to(reshape(x, thin), tuple(wide)), out)


#: method; array API; repeats: TensorLike
@composite
def repeat(x, repeats, *, axis=None):
    """Each element repeated `repeats` times (int, or one number per element) along axis; None flattens first."""
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = axis_of(axis, x.ndim)
    if hasattr(repeats, "tolist"):
        repeats = repeats.tolist()
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        repeats = repeats[0]
    _not_negative([repeats] if isinstance(repeats, int) else repeats, "repeat")
    if isinstance(repeats, int):
        lead, tail = x.shape[: axis + 1], x.shape[axis + 1 :]
        wide = broadcast_to(reshape(x, lead + (1,) + tail), lead + (repeats,) + tail)
        return reshape(wide, x.shape[:axis] + (x.shape[axis] * repeats,) + tail)
    if len(repeats) != x.shape[axis]:
        raise ShapeError("got {} repeats for axis {} of {}".format(len(repeats), axis, x.shape))
    index = []
    for i in range(len(repeats)):
        index += [i] * repeats[i]
    from ... import dtypes

    return x.backend.take(x, x.backend.from_list(index, dtypes.int64, (len(index),)), axis)


#: method; Burn repeat_dim; times: int
@composite
def repeat_dim(x, axis, times):
    """x repeated as a whole `times` times along axis (Burn's repeat_dim)."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    return tile(x, [times if i == axis else 1 for i in range(x.ndim)])


#: method; ONNX Pad; Burn pad; pads: int | Sequence[Any]; value: float; x: TensorLike
def pad(x, pads, value=0, mode="constant"):
    """x padded along its axes.

    pads: one (low, high) pair per axis, or a flat (left, right, top, bottom) for the last two axes, as in Burn; or an
    int for both sides of every axis.
    Negative pads crop. mode: "constant" (`value`), "reflect" (mirrored without repeating the edge), "edge" (the edge
    repeated) or "wrap".
    """
    x = tensor(x)
    pads = [(pads, pads)] * x.ndim if isinstance(pads, int) else list(pads)
    if x.ndim == 1 and len(pads) == 2:
        pads = [pads]
    if len(pads) == 4 and x.ndim >= 2 and isinstance(pads[0], int):
        pads = [(0, 0)] * (x.ndim - 2) + [(pads[2], pads[3]), (pads[0], pads[1])]
    if len(pads) != x.ndim:
        raise ShapeError("pad needs a (low, high) pair for each of {} axes, found {}".format(x.ndim, len(pads)))
    pads = [tuple([as_int(n) for n in p]) for p in pads]
    for i in range(x.ndim):
        low, high = pads[i]
        if low < 0 or high < 0:
            start = max(0, -low)
            x = narrow(x, i, start, max(0, x.shape[i] - start - max(0, -high)))
    pads = tuple([(max(0, low), max(0, high)) for low, high in pads])
    if mode == "constant":
        if hasattr(value, "item"):
            value = value.item()
        if value and x.dtype.is_integer:
            from ..promotion import check_range

            check_range(value, x.dtype)
        return x.backend.pad(x, pads, value) if size(x.shape) or pads else alias(x)
    return _pad_from_inside(x, pads, mode)


def _pad_from_inside(x, pads, mode):
    from ... import dtypes

    backend = x.backend
    x = alias(x)
    for axis in range(x.ndim):
        low, high = pads[axis]
        n = x.shape[axis]
        if not (low or high):
            continue
        positions = range(-low, n + high)
        if not n:
            raise ShapeError("cannot pad the empty axis {} of {} in mode {!r}".format(axis, x.shape, mode))
        if mode == "edge":
            index = [min(max(p, 0), n - 1) for p in positions]
        elif mode == "wrap":
            index = [p % n for p in positions]
        elif mode == "reflect":
            turn = max(1, 2 * n - 2)
            index = [n - 1 - abs(n - 1 - p % turn) if n > 1 else 0 for p in positions]
        else:
            raise ArgumentError("pad mode is constant, reflect, edge or wrap, found {!r}".format(mode))
        x = backend.take(x, backend.from_list(index, dtypes.int64, (len(index),)), axis)
    return x


#: method; ONNX DepthToSpace
@composite
def depth_to_space(x, block_size, mode="DCR"):
    """(n, c, h, w) -> (n, c / b², h·b, w·b); mode "DCR" or "CRD" says how the channels are laid out (ONNX)."""
    if mode not in ("DCR", "CRD"):
        raise ArgumentError("depth_to_space: mode is 'DCR' or 'CRD', found {!r}".format(mode))
    n, c, h, w = _image(x, "depth_to_space", block_size)
    b = block_size
    if c % (b * b):
        raise ShapeError("{} channels do not divide into blocks of {}×{}".format(c, b, b))
    rest = c // (b * b)
    if mode == "DCR":
        x = permute_dims(reshape(x, (n, b, b, rest, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = permute_dims(reshape(x, (n, rest, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(x, (n, rest, h * b, w * b))


#: method; ONNX SpaceToDepth
@composite
def space_to_depth(x, block_size):
    """(n, c, h, w) -> (n, c·b², h / b, w / b)."""
    n, c, h, w = _image(x, "space_to_depth", block_size)
    b = block_size
    if h % b or w % b:
        raise ShapeError("{}×{} does not divide into blocks of {}×{}".format(h, w, b, b))
    x = permute_dims(reshape(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return reshape(x, (n, c * b * b, h // b, w // b))


def _image(x, what, block_size):
    """The shape (n, c, h, w) of x. Raises ShapeError for another rank, or blocks of less than 1."""
    if len(x.shape) != 4 or block_size < 1:
        raise ShapeError(
            "{} needs (n, c, h, w) and blocks of 1 or more, found {} and {}".format(what, x.shape, block_size)
        )
    return x.shape


def _not_negative(sizes, what):
    for n in sizes:
        if n < 0:
            raise ShapeError("{} has no negative sizes, found {}".format(what, tuple(sizes)))
