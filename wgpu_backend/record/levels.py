"""Tensors that were dequantized from 8 bits, as `dequantize_linear` records them: (q - zero point) * scale."""

from emberlet import dtypes
from emberlet.shapes import size
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open
from emberlet.tensor import Tensor

from .bounds import interval
from .host_evaluation import given

REACH = 255  # of an 8-bit integer from its zero point
MOVES = ("reshape", "permute", "expand")


def levels(x):
    """(int32 values within REACH, float32 scale) whose product a recorded tensor is; None for other tensors. Both are
    Tensors of its backend; the scale has one element, or the axes of x, each of them whole or of length 1."""
    found = parts(x)
    if found is None or x.dtype is not dtypes.float32:
        return None
    q, zero, scale = found
    integers = x.backend.cast(q, dtypes.int32)
    if zero is not None:
        integers = x.backend.binary("sub", integers, x.backend.cast(zero, dtypes.int32))
    if q.dtype.bits > 8 or (zero is not None and zero.dtype.bits > 8):
        known = interval(integers.data)
        if not known or known[0] < -REACH or known[1] > REACH:
            return None
    return integers, scale


def parts(x):
    """(q, zero point or None, scale or None) of a recorded tensor (q - zero point) * scale, or of int32 values
    q - zero point, q in their shape; None for other tensors."""
    node, moves = x.data, []
    while node.op in MOVES:
        moves.append(node)
        node = node.srcs[0]
    q, zero, scale = node, None, None
    if node.op == "binary" and node.arg == "mul" and node.dtype is dtypes.float32 and node.srcs[0].op == "cast":
        q, scale = node.srcs[0].srcs[0], node.srcs[1]
    elif _subtracts(node, x.backend):
        (q, zero), scale = node.srcs[0].srcs, node.srcs[1]
        q = q.srcs[0]
        zero = x.backend.cast(Tensor(zero, zero.dtype, zero.shape, x.backend), q.dtype).data
    elif node.dtype is not dtypes.int32:
        return None
    if zero is None and q.op == "binary" and q.arg == "sub" and _wide(q):
        q, zero = q.srcs
    q = _narrow(q)
    if not q.dtype.is_integer or q.dtype.bits > 32 or not known_equal(q.shape, node.shape):
        return None
    if [part for part in (zero, scale) if part is not None and is_open(part.count)]:
        return None
    found = []
    for part in (q, None if zero is None else _narrow(zero), scale):
        moved = None if part is None else _moved(part, moves, x)
        if part is not None and moved is None:
            return None
        found.append(moved)
    if not known_equal(found[0].shape, x.shape):
        found[0] = x.backend.expand(x.backend.reshape(found[0], (1,) * len(x.shape)), x.shape)
    return found


def _subtracts(node, backend):
    """Whether a node is (q - zero point) * scale of integers q of 8 bits and known zero points, which are floats that
    hold such integers."""
    if node.op != "binary" or node.arg != "mul" or node.dtype is not dtypes.float32:
        return False
    difference = node.srcs[0]
    if difference.op != "binary" or difference.arg != "sub" or difference.srcs[0].op != "cast":
        return False
    q, zero = difference.srcs[0].srcs[0], difference.srcs[1]
    if not q.dtype.is_integer or q.dtype.bits > 8 or is_open(zero.count):
        return False
    host = backend.host  # which imports NumPy, so only here
    known = given(zero, host)
    if known is None:
        return False
    points = set(host.to_list(host.reshape(known, (known.size,))))
    low, high = q.dtype.range
    return all(low <= point <= high and point == int(point) for point in points)


def _narrow(node):
    """The 8-bit node that a node is cast from; any other node unchanged."""
    if node.op == "cast" and _wide(node) and node.srcs[0].dtype.is_integer and node.srcs[0].dtype.bits == 8:
        return node.srcs[0]
    return node


def _wide(node):
    """Whether every 8-bit integer, and the difference of two, fits a node's dtype."""
    return node.dtype.kind == "int" and node.dtype.bits > 8


def _moved(node, moves, x):
    """A part of x before its moves, which may be broadcast to it, as a Tensor after them. None if that is not known."""
    backend = x.backend
    out = Tensor(node, node.dtype, node.shape, backend)
    if not is_open(node.count) and node.count == 1:
        return backend.reshape(out, ())
    if not moves:
        return out if len(out.shape) == len(x.shape) else None
    source = moves[-1].srcs[0]
    for move in reversed(moves):
        if move.op == "permute":
            if len(out.shape) != len(move.arg):
                return None
            out = backend.permute(out, move.arg)
        elif known_equal(out.shape, source.shape):
            out = getattr(backend, move.op)(out, move.shape)
        else:
            shape = _along(out.shape, source.shape, move)
            if shape is None:
                return None
            out = backend.reshape(out, shape)
        source = move
    return out


def _along(shape, source, move):
    """The shape of a value for each slice of `source` along one axis, after a reshape that keeps the axis; None if it
    does not."""
    long = [axis for axis in range(len(shape)) if not known_equal(shape[axis], 1)]
    if move.op != "reshape" or len(long) != 1 or len(shape) != len(source):
        return None
    before = size(source[: long[0]])
    for axis in range(len(move.shape)):
        if known_equal(size(move.shape[:axis]), before) and known_equal(move.shape[axis], shape[long[0]]):
            return tuple([n if i == axis else 1 for i, n in enumerate(move.shape)])
    return None
