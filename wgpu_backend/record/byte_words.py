"""Records products and convolutions of 8-bit integers as ones of words, each of which holds four neighboring terms as
signed bytes: kernels multiply and add four terms by one operation (`dot4I8Packed`), and read them at once.

A "words" node views bytes, the last axis of its source, as words. The kernel that computes such bytes stores them as
words if it can (fuse/packing.py); then the node is its buffer.

Integers of uint8 become signed by subtracting 128 from them and from their zero point. Zero points stay outside:

    sum of (q - z) (w - v) = sum of q w - z (sum of (w - v)) - v (sum of q).

The first sum on the right is that of the bytes, the second is a constant, and the third, needed for few weights, is a
product with ones. The border of a picture is its zero point.
"""

from emberlet import dtypes, shapes
from emberlet.sizes.questions import divides, known_equal
from emberlet.sizes.size import is_open, typical
from emberlet.tensor import Tensor

from .bounds import interval
from .host_evaluation import is_evaluated, values_of
from .levels import REACH, parts
from .node import depends_on_input, of_open_size, topological
from .range_levels import words_of
from .zero_points import sums

FEWEST = 3  # terms in a row: fewer leave most of a word empty
EXACT = 1 << 24  # integers up to it are exact in float32
LEAST_WORK = 1 << 18  # multiply-adds that are worth a kernel that packs the bytes


def matmul(a, b):
    """a @ b for int32 values that are 8-bit integers less zero points, where b (k, n) is constant; None if they are
    not known to be, or words are of no use."""
    if len(a.shape) < 2 or len(b.shape) != 2 or not _worthwhile(a.shape[-1], shapes.size(a.shape[:-1]) * b.shape[1]):
        return None
    left, right = _Bytes.of(a), _Weights.of(b)
    if left is None or right is None or not _along(left.zero, -2) or not _along(right.zero, 1):
        return None
    of_weight = left.times_sums(b, (0,))
    if left.zero is not None and of_weight is None:
        return None
    backend, terms = a.backend, a.shape[-1]
    x = words(left.q, len(a.shape) - 1)
    total = _product(backend, x, right.words(0))
    if right.zero is not None:
        of_row = _product(backend, x, _ones(backend, terms, (0, 1), 0))
        total = backend.binary("sub", total, backend.binary("mul", of_row, right.zero))
    return total if of_weight is None else backend.binary("sub", total, of_weight)


def conv(x, weight, stride, padding, dilation, groups):
    """The convolution of such values, whose weight (o, c, ...) is constant; None as `matmul`."""
    terms, pixels = weight.shape[1], shapes.size(x.shape[2:])
    along = _in_windows(x, weight, stride, padding, dilation, groups)
    few = is_open(terms) or (terms < FEWEST and not along)
    if few or not _worthwhile(shapes.size(weight.shape[1:]), weight.shape[0] * pixels):
        return None
    left, right = _Bytes.of(x), _Weights.of(weight)
    if left is None or right is None or not _along(left.zero, None) or not _along(right.zero, 0):
        return None
    rank = len(stride)
    of_weight = left.times_sums(weight, tuple(range(1, rank + 2)))
    if left.zero is not None and of_weight is None:
        return None
    backend = x.backend
    if along:
        if right.zero is not None:
            return None
        packed = words(left.q, rank + 1)
        window = (tuple(stride[:-1]) + (stride[-1] // 4,), ((0, 0),) * rank, tuple(dilation), groups)
        total = _convolution(backend, packed, right.words(rank + 1), window)
    else:
        packed = left.picture(groups, terms, padding)
        window = (tuple(stride), ((0, 0),) * rank, tuple(dilation), groups)
        total = _convolution(backend, packed, right.words(1), window)
    spread = (weight.shape[0],) + (1,) * rank
    if right.zero is not None:
        ones = _ones(backend, terms, tuple(weight.shape), 1)
        of_window = _convolution(backend, packed, ones, window)
        zero = backend.reshape(right.zero, spread if right.zero.size > 1 else ())
        total = backend.binary("sub", total, backend.binary("mul", of_window, zero))
    return total if of_weight is None else backend.binary("sub", total, backend.reshape(of_weight, spread))


def _in_windows(x, weight, stride, padding, dilation, groups):
    """Whether a convolution of few channels, as of a signal with the waves of a Fourier transform, has whole words
    along the last axis."""
    if weight.shape[1] >= FEWEST or groups > 1 or [p for p in padding if not known_equal(tuple(p), (0, 0))]:
        return False
    return dilation[-1] == 1 and all(divides(4, n) for n in (stride[-1], weight.shape[-1], x.shape[-1]))


def largest_sum(a, b, terms):
    """The largest sum of `terms` products of two tensors' int32 values, which are within 255 of 0, if float32 holds all
    of them: it is added and multiplied faster than int32. Else None."""
    if is_open(terms):
        return None
    largest = terms
    for x in (a, b):
        known = interval(x.data)
        largest = largest * (min(REACH, max(-known[0], known[1])) if known else REACH)
    return largest if largest < EXACT else None


def _worthwhile(terms, cells):
    return not is_open(terms) and terms >= FEWEST and typical(cells * terms) >= LEAST_WORK


def _along(zero, axis):
    """Whether a zero point is None, of one element, or has its elements along one axis."""
    return zero is None or zero.size == 1 or (axis is not None and zero.shape[axis] == zero.size)


def words(q, axis):
    """8-bit integers, of uint8 less 128, four neighbors along an axis in each word of uint32; the last one is filled up
    with zeros."""
    backend, node = q.backend, q.data
    ranged = words_of(q, axis)
    if ranged is not None:
        return ranged
    parts = [q]
    if node.op == "concat" and node.arg == axis and not [1 for s in node.srcs if not divides(4, s.shape[axis])]:
        parts = [Tensor(s, s.dtype, s.shape, backend) for s in node.srcs]  # each of whole words
    parts = [_fours(_signed(part), axis) for part in parts]
    found = backend.concat(parts, axis) if len(parts) > 1 else parts[0]
    return backend._record("words", (found,), (), "words", None, dtypes.uint32, found.shape[:-1])


def _signed(q):
    """q as int8, of uint8 less 128."""
    backend = q.backend
    if q.dtype is dtypes.int8:
        return q
    less = backend.full((), 128, dtypes.int32)
    return backend.cast(backend.binary("sub", backend.cast(q, dtypes.int32), less), dtypes.int8)


def _fours(x, axis):
    """x with four neighbors along an axis as the last axis."""
    backend, shape = x.backend, tuple(x.shape)
    missing = -shape[axis] % 4
    if missing:
        zeros = backend.full(shape[:axis] + (missing,) + shape[axis + 1 :], 0, x.dtype)
        x = backend.concat((x, zeros), axis)
    x = backend.reshape(x, shape[:axis] + ((shape[axis] + missing) // 4, 4) + shape[axis + 1 :])
    rank = len(x.shape)
    return x if axis == rank - 2 else backend.permute(x, [i for i in range(rank) if i != axis + 1] + [axis + 1])


def _product(backend, x, matrix):
    shape = tuple(x.shape[:-1]) + (matrix.shape[-1],)
    return backend._record("dot_bytes", (x, matrix), (), "dot_bytes", None, dtypes.int32, shape)


def _convolution(backend, x, weight, window):
    stride, padding, dilation = window[:3]
    pixels = [
        shapes.window(x.shape[2 + i], weight.shape[2 + i], stride[i], padding[i], dilation[i])
        for i in range(len(stride))
    ]
    shape = (x.shape[0], weight.shape[0]) + tuple(pixels)
    return backend._record("dot_bytes", (x, weight), (), "dot_bytes", window, dtypes.int32, shape)


def _ones(backend, terms, shape, axis):
    """Words of ones along an axis, with zeros beyond the last term: there a border has its zero point."""

    def some(count, word):
        return backend.full(shape[:axis] + (count,) + shape[axis + 1 :], word, dtypes.uint32)

    found = [some(terms // 4, 0x01010101)] if terms >= 4 else []
    if terms % 4:
        found.append(some(1, (1 << 8 * (terms % 4)) // 255))
    return backend.concat(found, axis) if len(found) > 1 else found[0]


class _Bytes:
    """Values q - zero: q in 8 bits, and the zero point in int32 of q as int8, None for 0."""

    def __init__(self, centered, q, zero):
        self.centered = centered
        self.q = q
        self.zero = zero

    @staticmethod
    def of(x):
        """The _Bytes of a recorded tensor that depends on an input; None if it is no such difference."""
        found = parts(x)
        if found is None or found[0].dtype.bits != 8 or not depends_on_input(x.data):
            return None
        backend, (q, zero, _) = x.backend, found
        if zero is not None:
            zero = backend.cast(zero, dtypes.int32)
        if q.dtype.kind == "uint":
            less = backend.full((), 128, dtypes.int32)
            zero = backend.full((), -128, dtypes.int32) if zero is None else backend.binary("sub", zero, less)
        if zero is not None and zero.data.op == "full" and not is_open(zero.data.arg) and zero.data.arg == 0:
            zero = None
        return _Bytes(x, q, zero)

    def picture(self, groups, terms, padding):
        """The words of four channels, (n, groups * words, ...), of `terms` channels in each group, with a border that
        stands for zeros."""
        q, backend, around = self.q, self.q.backend, ((0, 0), (0, 0)) + tuple(padding)
        bare = not [p for p in padding if not known_equal(tuple(p), (0, 0))]
        known = self.zero is None or self.zero.data.op == "full"
        if not bare and not known:
            q = backend.binary("add", backend.pad(self.centered, around, 0), self.zero)
            q = backend.cast(q, dtypes.int8)
        if terms % 4:
            pixels = tuple(q.shape[2:])
            packed = words(backend.reshape(q, (q.shape[0], groups, terms) + pixels), 2)
            packed = backend.reshape(packed, (q.shape[0], groups * ((terms + 3) // 4)) + pixels)
        else:
            packed = words(q, 1)
        if bare or not known:
            return packed
        point = 0 if self.zero is None else self.zero.data.arg
        return backend.pad(packed, around, (point & 255) * 0x01010101)

    def times_sums(self, weight, axes):
        """What the zero point adds to a sum of products: itself times the sums of a weight along axes. None if it is 0
        or these are not known."""
        of_weight = None if self.zero is None else sums(weight, axes)
        return None if of_weight is None else self.zero.backend.binary("mul", self.zero, of_weight)


class _Weights:
    """Constant values q - zero: q as the host's int8, the zero point as a Tensor in int32, None for 0."""

    def __init__(self, backend, q, zero):
        self.backend = backend
        self.q = q
        self.zero = zero

    @staticmethod
    def of(w):
        """The _Weights of a recorded constant; None if it is no such difference."""
        found = parts(w)
        if found is None or found[0].dtype.bits != 8:
            return None
        backend, host = w.backend, w.backend.host
        nodes = topological([part.data for part in found[:2] if part is not None])
        if [n for n in nodes if n.op in ("input", "buffer") or of_open_size(n) or not is_evaluated(n)]:
            return None
        q = values_of([found[0].data], host)[0]
        zero = None if found[1] is None else host.cast(values_of([found[1].data], host)[0], dtypes.int32)
        if q.dtype.kind == "uint":
            moved = host.binary("bitwise_xor", q, host.full((), 128, dtypes.uint8))  # as int8 these are less by 128
            q = host.from_bytes(host.to_bytes(moved), dtypes.int8, q.shape)
            less = host.full((), 128, dtypes.int32)
            zero = host.unary("neg", less) if zero is None else host.binary("sub", zero, less)
        if zero is not None and not [n for n in host.to_list(host.reshape(zero, (zero.size,))) if n]:
            zero = None
        if zero is not None:
            zero = backend.from_bytes(host.to_bytes(zero), dtypes.int32, zero.shape)
        return _Weights(backend, q, zero)

    def count(self, terms):
        """The words of `terms` terms."""
        return (terms + 3) // 4

    def words(self, axis):
        """The words of four neighbors along an axis, as data."""
        host, q = self.backend.host, self.q
        shape = tuple(q.shape)
        missing = -shape[axis] % 4
        if missing:
            q = host.pad(q, [(0, missing if i == axis else 0) for i in range(len(shape))], 0)
        shape = shape[:axis] + (self.count(shape[axis]),) + shape[axis + 1 :]
        q = host.reshape(q, shape[: axis + 1] + (4,) + shape[axis + 1 :])
        order = [i for i in range(len(shape) + 1) if i != axis + 1] + [axis + 1]
        data = host.to_bytes(host.permute(q, tuple(order)))
        return self.backend.from_bytes(data, dtypes.uint32, shape)
