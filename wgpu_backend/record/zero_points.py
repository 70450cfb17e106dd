"""Products of 8-bit integers less their zero points, where a zero point is only known when a plan runs: the integers
are multiplied as they are,

    sum of (q - z) w = sum of q w - z (sum of w),

so that they stay within 8 bits, as kernels that multiply bytes want them. The sums of constant weights are constants,
and those of a convolution become signed, as the kernels want them, too.
"""

from emberlet import dtypes
from emberlet.sizes.size import is_open

from .host_evaluation import given
from .levels import parts
from .node import depends_on_input
from .ranges import narrow_range

PIECE = 1 << 20  # weights that are summed at once


def factors(a, b):
    """(a', b', c) such that a @ b is a' @ b' - c, for int32 values within ±255. c: None for 0."""
    b = _less_number(b)
    found = _late(a)
    if found is None or len(b.shape) != 2:
        return a, b, None
    q, zero = found
    if zero.size > 1 and zero.shape[-1] != 1:
        return a, b, None
    of_weights = sums(b, (0,))
    return (a, b, None) if of_weights is None else (q, b, a.backend.binary("mul", zero, of_weights))


def pictures(x, weight, padding):
    """(x', weight', padding', c) such that a convolution of x with a border of zeros is one of x' less c. c: None for
    0."""
    weight = _signed(_less_number(weight))
    found = _late(x)
    of_weights = None
    if found is not None and found[1].size == 1:
        of_weights = sums(weight, tuple(range(1, len(weight.shape))))
    if of_weights is None:
        return x, weight, padding, None
    backend, (q, zero) = x.backend, found
    if [p for p in padding if tuple(p) != (0, 0)]:
        # The border is the zero point, which the difference makes 0.
        around = backend.pad(x, ((0, 0), (0, 0)) + tuple(padding), 0)
        q = backend.cast(backend.binary("add", around, zero), q.dtype)
        padding = ((0, 0),) * len(padding)
    of_weights = backend.reshape(of_weights, (weight.shape[0],) + (1,) * (len(weight.shape) - 2))
    return q, weight, padding, backend.binary("mul", zero, of_weights)


def bordered(x, padding):
    """(x', padding') of the same convolution, whose border is part of the 8-bit integers that x is computed from less a
    number, where they are known: kernels then read these."""
    found = parts(x)
    if found is None or found[0].dtype.bits != 8 or not [p for p in padding if tuple(p) != (0, 0)]:
        return x, padding
    (q, zero), backend = found[:2], x.backend
    point = 0
    if zero is not None:
        point = zero.data.arg if zero.data.op == "full" and not is_open(zero.data.arg) else None
    low, high = q.dtype.range
    if point is None or not low <= point <= high:
        return x, padding
    q = backend.cast(backend.pad(q, ((0, 0), (0, 0)) + tuple(padding), point), dtypes.int32)
    if point:
        q = backend.binary("sub", q, backend.full((), point, dtypes.int32))
    return q, ((0, 0),) * len(padding)


def _late(x):
    """(8-bit integers, int32 zero point) whose difference x is, if the latter depends on an input; else None."""
    found = parts(x)
    if found is None or found[0].dtype.bits != 8 or found[1] is None:
        return None
    q, zero = found[:2]
    within, (low, high) = narrow_range(zero.data), q.dtype.range
    if within is None or within[0] < low or within[1] > high:
        return None
    return (q, x.backend.cast(zero, dtypes.int32)) if depends_on_input(zero.data) else None


def _less_number(w):
    """Constant weights, less a number where they are less data of one element: kernels see how far they reach."""
    found = parts(w)
    if found is None or found[1] is None or found[1].size != 1 or depends_on_input(found[1].data):
        return w
    backend = w.backend
    known = given(found[1].data, backend.host)
    if known is None:
        return w
    number = backend.full((), int(known.item()), dtypes.int32)
    return backend.binary("sub", backend.cast(found[0], dtypes.int32), number)


def _signed(w):
    """Constant weights in uint8, less a number, as ones in int8 less another number."""
    found = parts(w)
    if found is None or found[0].dtype is not dtypes.uint8 or depends_on_input(found[0].data):
        return w
    q, zero, backend = found[0], found[1], w.backend
    host, point = backend.host, 0
    if zero is not None:
        point = zero.data.arg if zero.data.op == "full" else None
    known = None if point is None else given(q.data, host)
    if known is None:
        return w
    moved = host.binary("bitwise_xor", known, host.full((), 128, dtypes.uint8))  # as int8 these bytes are less by 128
    q = backend.from_bytes(host.to_bytes(moved), dtypes.int8, moved.shape)
    return backend.binary("sub", backend.cast(q, dtypes.int32), backend.full((), point - 128, dtypes.int32))


def sums(w, axes):
    """The sums of constant weights along axes, the first or all others, in int32; None if they are not known."""
    found = None if is_open(w.size) or not w.size or depends_on_input(w.data) else parts(w)
    if found is None:
        return None
    host = w.backend.host
    known = [None if part is None else given(part.data, host) for part in found[:2]]
    if known[0] is None or (known[1] is None and found[1] is not None):
        return None
    count = max(1, PIECE * w.shape[0] // w.size)
    found = [host.reduce("sum", piece, axes, False) for piece in _pieces(host, known[0], known[1], count)]
    total = found[0]
    if axes == (0,):
        for more in found[1:]:
            total = host.binary("add", total, more)
    else:
        total = host.concat(found, 0)
    return w.backend.from_bytes(host.to_bytes(total), dtypes.int32, total.shape)


def _pieces(host, q, zero, count):
    """q less its zero point in int32, `count` slices along the first axis at a time: all of them would take four times
    the memory of the weights."""

    def some(x, at):
        sizes = (min(count, x.shape[0] - at),) + tuple(x.shape[1:])
        return host.slice(x, (at,) + (0,) * (len(sizes) - 1), sizes, (1,) * len(sizes))

    for at in range(0, q.shape[0], count):
        piece = host.cast(some(q, at), dtypes.int32)
        if zero is not None:
            less = zero if zero.size == 1 or zero.shape[0] == 1 else some(zero, at)
            piece = host.binary("sub", piece, host.cast(less, dtypes.int32))
        yield piece
