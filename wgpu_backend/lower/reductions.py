"""Describes what each reducing operation folds, as a body over inner counters: sums, matmul, convolution, pooling.

Every such operation has this plain form; tiled kernels replace it for large products and convolutions (kernels/tile.py,
kernels/matmul.py).
"""

from emberlet.errors import refuse
from emberlet.shapes import size

from ..run import storage
from . import index as ix


class Specification:
    """op: the fold; type: the accumulator's; extents: of the inner counters; body(lowering, out, inner) -> Value;
    position: for argmax and argmin, inner -> Index of the answer."""

    def __init__(self, op, type, extents, body, position=None):
        self.op = op
        self.type = type
        self.extents = extents
        self.body = body
        self.position = position

    def size(self):
        return size(self.extents)


def specification(node):
    if node.op not in SPECIFICATIONS:
        refuse("no kernel", node.op, "the wgpu, wasm or native")
    return SPECIFICATIONS[node.op](node)


def _reduce(node):
    (x,) = node.srcs
    op, axes, keepdims = node.arg
    rank = len(x.shape)

    def body(lowering, out, inner):
        indices = [None] * rank
        kept = 0
        for i in range(rank):
            if i in axes:
                indices[i] = inner[axes.index(i)]
                kept += 1 if keepdims else 0
            else:
                indices[i] = out[kept]
                kept += 1
        value = lowering.value(x, indices)
        if op in ("any", "all") and value.type != "bool":
            value = lowering.build.make("cast", "bool", (value,))
        return value

    type = "bool" if op in ("any", "all") else storage.register(x.dtype)
    return Specification(op, type, [x.shape[a] for a in axes], body)


def _argreduce(node):
    (x,) = node.srcs
    op, axis, keepdims = node.arg

    def body(lowering, out, inner):
        indices = list(out)
        if keepdims:
            indices[axis] = inner[0]
        else:
            indices.insert(axis, inner[0])
        value = lowering.value(x, indices)
        return lowering.build.make("cast", "u32", (value,)) if value.type == "bool" else value

    return Specification("arg" + op, storage.word(x.dtype), [x.shape[axis]], body, lambda inner: inner[0])


def _product(lowering, a, b, node=None):
    if node is not None and node.op == "dot_bytes":
        return lowering.build.make("function", "i32", (a, b), ("dot_bytes",))
    return lowering.build.make("mul", a.type, (a, b))


def _matmul(node):
    a, b = node.srcs

    def body(lowering, out, inner):
        lead = list(out[:-2])
        return _product(
            lowering,
            lowering.operand(a, lead + [out[-2], inner[0]]),
            lowering.operand(b, lead + [inner[0], out[-1]]),
            node,
        )

    return Specification("sum", storage.word(node.dtype), [a.shape[-1]], body)


def window(out, taps, stride, padding, dilation):
    """The Index along one spatial axis that output position `out` reads at kernel tap `taps`."""
    return ix.add(ix.add(ix.mul(out, stride), ix.mul(taps, dilation)), ix.const(-padding[0]))


def _conv(node):
    x, weight = node.srcs
    stride, padding, dilation, groups = node.arg
    spatial = len(stride)
    per_group = weight.shape[1]
    out_per_group = weight.shape[0] // groups

    def body(lowering, out, inner):
        channel = inner[0]
        if groups > 1:
            channel = ix.add(channel, ix.mul(ix.floordiv(out[1], out_per_group), per_group))
        at = [out[0], channel]
        conditions = []
        for i in range(spatial):
            w = window(out[2 + i], inner[1 + i], stride[i], padding[i], dilation[i])
            conditions.append((w, x.shape[2 + i]))
            at.append(w.bounded(0, x.shape[2 + i] - 1))
        product = _product(lowering, lowering.value(x, at), lowering.value(weight, [out[1]] + list(inner)), node)
        return lowering.build.guard(conditions, product, lowering.build.const(0, product.type))

    return Specification("sum", storage.word(node.dtype), list(weight.shape[1:]), body)


def _pool(node):
    (x,) = node.srcs
    op, kernel, stride, padding, dilation = node.arg

    def body(lowering, out, inner):
        at = [out[0], out[1]]
        conditions = []
        for i in range(len(kernel)):
            w = window(out[2 + i], inner[i], stride[i], padding[i], dilation[i])
            conditions.append((w, x.shape[2 + i]))
            at.append(w.bounded(0, x.shape[2 + i] - 1))
        type = storage.word(x.dtype)
        fill = lowering.build.const(identity(op, type), type)
        return lowering.build.guard(conditions, lowering.value(x, at), fill)

    return Specification(op, storage.word(x.dtype), list(kernel), body)


def _packed(node):
    """A product with a matrix of few bits, of which all columns are in one panel (record/packed_weights.py)."""
    x, words, scales = node.srcs[:3]
    bits, block = node.arg
    each, rows = 32 // bits, x.shape[1]  # weights of a word
    half = 1 << (bits - 1)

    def body(lowering, out, inner):
        make, constant = lowering.build.make, lowering.build.const  # MicroPython folds `const(…)`
        word, place = inner
        row, column = out
        k = ix.add(ix.mul(word, each), place)
        of_block = [ix.ZERO, ix.floordiv(k, block), column]
        shift = lowering.build.index(ix.mul(place, bits), "u32")
        level = make("shift_right", "u32", (lowering.value(words, [ix.ZERO, word, column]), shift))
        level = make("bitwise_and", "u32", (level, constant(2 * half - 1, "u32")))
        if len(node.srcs) == 3:
            zero = constant(half, "f32")
            level = make("bitwise_xor", "u32", (level, constant(half, "u32")))
        else:
            zero = lowering.value(node.srcs[3], of_block)
        level = make("sub", "f32", (make("cast", "f32", (level,)), zero))
        weight = make("mul", "f32", (level, lowering.value(scales, of_block)))
        value = _product(lowering, lowering.value(x, [row, k.bounded(0, rows - 1)]), weight)
        return lowering.build.guard([(k, rows)], value, constant(0, "f32")) if rows % each else value

    return Specification("sum", "f32", [(rows + each - 1) // each, each], body)


def _dot_bytes(node):
    """A product or, if the node has a window, a convolution of words of four bytes (record/byte_words.py)."""
    return _matmul(node) if node.arg is None else _conv(node)


SPECIFICATIONS = {
    "dot_bytes": _dot_bytes,
    "packed": _packed,
    "reduce": _reduce,
    "argreduce": _argreduce,
    "matmul": _matmul,
    "conv": _conv,
    "pool": _pool,
}


def identity(op, type):
    """The identity element of op."""
    if op == "sum" or op == "any":
        return 0
    if op == "prod" or op == "all":
        return 1
    lowest = op in ("max", "argmax")
    if type == "i32":
        return -(1 << 31) if lowest else (1 << 31) - 1
    if type == "u32":
        return 0 if lowest else (1 << 32) - 1
    if type == "bool":
        return not lowest
    return -float("inf") if lowest else float("inf")
