"""Records quantizing a tensor by its own range as one operation: words of levels, then the scale and the zero point.

A "range_levels" node holds the words of signed bytes along the last axis of its source, the bits of the scale, and the
zero point, in uint32. "bytes" nodes view words as signed bytes.
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
    if len(x.shape) < 2 or x.shape[-1] % 4 or not depends_on_input(x.data):
        return None
    backend, shape, count = x.backend, tuple(x.shape), x.size // 4
    found = backend._record("range_levels", (x,), (x,), "range_levels", None, dtypes.uint32, (count + 2,))
    words = backend.reshape(backend.slice(found, (0,), (count,), (1,)), shape[:-1] + (shape[-1] // 4,))
    scale, point = [backend.reshape(backend.slice(found, (count + i,), (1,), (1,)), ()) for i in range(2)]
    signed = backend._record("bytes", (words,), (words,), "bytes", None, dtypes.int8, words.shape + (4,))
    levels = backend.cast(backend.reshape(signed, shape), dtypes.int32)
    levels = backend.cast(backend.binary("add", levels, backend.full((), 128, dtypes.int32)), dtypes.uint8)
    return levels, backend.bitcast(scale, dtypes.float32), backend.cast(point, dtypes.uint8)


def words_of(q, axis):
    """The words along an axis of which 8-bit q, less 128, are the bytes; None if q is no such tensor."""
    node = q.data
    if axis != len(q.shape) - 1 or node.op != "cast" or node.dtype is not dtypes.uint8:
        return None
    more = node.srcs[0]
    if more.op != "binary" or more.arg != "add" or more.srcs[1].op != "full" or more.srcs[1].arg != 128:
        return None
    split = more.srcs[0].srcs[0] if more.srcs[0].op == "cast" else None
    if split is None or split.op != "reshape" or split.srcs[0].op != "bytes":
        return None
    words = split.srcs[0].srcs[0]
    return Tensor(words, words.dtype, words.shape, q.backend)
