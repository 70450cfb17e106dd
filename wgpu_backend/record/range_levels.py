"""Records quantizing a tensor by its own range as one operation: words of levels, then the scale and the zero point.

A "range_levels" node holds the words of signed bytes along the last axis of its source, the bits of the scale, and the
zero point, in uint32. "bytes" nodes view words as signed bytes. With the argument "floats" it holds the bits of the
levels less the zero point as float32 in place of the words, for products of floats.
"""

from emberlet import dtypes
from emberlet.sizes.size import is_open
from emberlet.tensor import Tensor

from .node import depends_on_input

MOST = 1 << 15  # elements of a tensor for which one workgroup takes no longer than two dispatches


def range_levels(x):
    """`functional.dynamic_quantize_linear` of a recorded tensor; None where several kernels are better."""
    if x.dtype is not dtypes.float32 or is_open(x.size) or not 0 < x.size <= MOST:
        return None
    if len(x.shape) < 2 or x.size % 4 or not depends_on_input(x.data):
        return None
    backend, shape, count = x.backend, tuple(x.shape), x.size // 4
    found = _record(x, None, count + 2)
    words = backend.slice(found, (0,), (count,), (1,))
    if not shape[-1] % 4:
        words = backend.reshape(words, shape[:-1] + (shape[-1] // 4,))
    scale, point = [backend.reshape(backend.slice(found, (count + i,), (1,), (1,)), ()) for i in range(2)]
    signed = backend._record("bytes", (words,), (words,), "bytes", None, dtypes.int8, words.shape + (4,))
    levels = backend.cast(backend.reshape(signed, shape), dtypes.int32)
    levels = backend.cast(backend.binary("add", levels, backend.full((), 128, dtypes.int32)), dtypes.uint8)
    return levels, backend.bitcast(scale, dtypes.float32), backend.cast(point, dtypes.uint8)


def _record(x, what, count):
    return x.backend._record("range_levels", (x,), (x,), "range_levels", what, dtypes.uint32, (count,))


def floats_of(x):
    """int32 x in float32, where these are levels less the zero point in the range of a tensor: read from a kernel that
    stores them so; None if x is no such tensor."""
    backend, node = x.backend, x.data
    if node.op != "binary" or node.arg != "sub" or node.srcs[0].op != "cast":
        return None
    words = _words(node.srcs[0].srcs[0])
    source = None if words is None else _range_at(words, 0)
    if source is None or source is not _range_at(node.srcs[1], source.count - 1):
        return None
    real = source.srcs[0]
    found = _record(Tensor(real, real.dtype, real.shape, backend), "floats", real.count + 2)
    bits = backend.slice(found, (0,), (real.count,), (1,))
    return backend.reshape(backend.bitcast(bits, dtypes.float32), x.shape)


def _range_at(node, start):
    """The "range_levels" node that a node is read from, from an element on; else None."""
    while node.op in ("cast", "reshape"):
        node = node.srcs[0]
    if node.op != "slice" or node.arg[0] != (start,) or node.srcs[0].op != "range_levels":
        return None
    return node.srcs[0]


def words_of(q, axis):
    """The words along an axis of which 8-bit q, less 128, are the bytes; None if q is no such tensor."""
    words = _words(q.data) if axis == len(q.shape) - 1 else None
    if words is None or len(words.shape) != len(q.shape):  # words of a flat tensor hold elements of several rows
        return None
    return Tensor(words, words.dtype, words.shape, q.backend)


def _words(node):
    """The words that 8-bit levels, less 128, were split from; None if a node is none of these."""
    if node.op != "cast" or node.dtype is not dtypes.uint8:
        return None
    more = node.srcs[0]
    if more.op != "binary" or more.arg != "add" or more.srcs[1].op != "full" or more.srcs[1].arg != 128:
        return None
    split = more.srcs[0].srcs[0] if more.srcs[0].op == "cast" else None
    if split is None or split.op != "reshape" or split.srcs[0].op != "bytes":
        return None
    return split.srcs[0].srcs[0]
