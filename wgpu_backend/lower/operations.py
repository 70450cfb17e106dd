"""How each operation that kernels inline is lowered: functions of the Lowering, the node and the indices of an element,
in the table LOWER."""

from emberlet.backend.protocol import BOOLEAN_RESULT
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import surely_less

from ..record.node import numbers, own_numbers
from ..run import storage
from . import index as ix

_INFINITY = float("inf")

# Operations whose result is a value of the narrow dtype whenever the operands are.
_EXACT = (
    "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum", "bitwise_and", "bitwise_or",
    "bitwise_xor", "shift_right", "remainder", "fmod",
)  # fmt: skip
_EXACT_FLOAT_ONLY = ("neg", "abs")


# -- elementwise --------------------------------------------------------------------------------------------------


def _unary(self, node, indices):
    (x,) = node.srcs
    a = self.value(x, indices)
    op = node.arg
    if op in BOOLEAN_RESULT:
        return self.build.make(op, "bool", (a,))
    out = self.build.make(op, a.type, (a,))
    exact = op in (_EXACT_FLOAT_ONLY if x.dtype.is_integer else _EXACT) and not x.dtype.is_integer
    return out if exact else self.round(out, node.dtype)


def _binary(self, node, indices):
    a = self.operand(node.srcs[0], indices)
    b = self.operand(node.srcs[1], indices)
    op = node.arg
    if a.type == "f32":
        out = undisguised(self.build, op, a, b)
        if out is not None:
            return out
    if op in BOOLEAN_RESULT:
        return self.build.make(op, "bool", (a, b))
    out = self.build.make(op, a.type, (a, b))
    return out if op in _EXACT else self.round(out, node.dtype)


def sort_key(self, node, indices, descending):
    """The element as an unsigned number of the same order (shaders/math.wgsl), or of the reverse one."""
    value = self.value(node, indices)
    if value.type == "bool":
        value = self.build.make("cast", "u32", (value,))
    key = self.build.make("function", "u32", (value,), ("sort_key_" + value.type,))
    return self.build.make("bitwise_not", "u32", (key,)) if descending else key


def undisguised(build, op, a, b):
    """x * 0, 0 / x, x / 0, x / infinity and x with itself, written so that shader compilers cannot simplify them to a
    wrong value for infinities, NaN and 0. None for anything else."""
    if a is b:
        if op == "sub":
            return build.make(
                "function", "f32", (build.make("abs", "f32", (a,)), build.const(0, "f32")), ("times_zero",)
            )
        if op == "div":
            return build.make("function", "f32", (a,), ("over_itself",))
        if op in ("eq", "ne", "le", "ge"):
            unordered = build.make("isnan", "bool", (a,))
            return unordered if op == "ne" else build.make("logical_not", "bool", (unordered,))
    if op in ("mul", "div") and [v for v in (a, b) if v.op == "const" and known_equal(v.attr, 0)]:
        return build.make("function", "f32", (a, b), ("times_zero" if op == "mul" else "over_zero",))
    if op == "div" and b.op == "const" and b.attr in (_INFINITY, -_INFINITY):
        zero = build.const(0.0 if b.attr > 0 else -0.0, "f32")
        return build.make("function", "f32", (a, zero), ("times_zero",))
    return None


def _where(self, node, indices):
    condition, a, b = [self.operand(s, indices) for s in node.srcs]
    return self.build.make("where", a.type, (condition, a, b))


def _cast(self, node, indices):
    a = self.value(node.srcs[0], indices)
    if node.arg == "whole":
        return self.build.make("cast", storage.register(node.dtype), (a,))
    return convert(self, a, node.srcs[0].dtype, node.dtype)


def convert(self, a, source, target):
    """Value a of dtype source as dtype target: truncates and saturates from float, wraps between integers."""
    make = self.build.make
    register = storage.register(target)
    if target.is_bool or source.is_bool:
        return make("cast", register, (a,))
    if target.is_float:
        out = make("cast", register, (a,))
        return self.round(out, target) if target.bits < 32 and source is not target else out
    if source.is_float:
        bits = min(target.bits, 32)
        if target.kind == "int":
            lo = "-{}.0".format(1 << (bits - 1))
            hi = "{}.0".format((1 << (bits - 1)) - 1) if bits < 32 else "2147483520.0"
            return make("function", "i32", (a,), ("to_i32", lo, hi))
        hi = "{}.0".format((1 << bits) - 1) if bits < 32 else "4294967040.0"
        return make("function", "u32", (a,), ("to_u32", hi))
    out = make("cast", register, (a,))
    fits = target.bits > source.bits and (target.kind == "int" or source.kind == "uint")
    return out if fits else self.round(out, target)


def _bitcast(self, node, indices):
    a = self.value(node.srcs[0], indices)
    source, target = node.srcs[0].dtype, node.dtype
    make = self.build.make
    if target.bits == 16 and source.is_float != target.is_float:
        if source.is_float:
            bits = make("function", "u32", (a,), ("bits_of_{}".format(source.name),))
            return self.round(make("cast", storage.register(target), (bits,)), target)
        bits = make("function", "u32", (make("cast", "u32", (a,)),), ("wrap_u", "16u"))
        return make("function", "f32", (bits,), ("{}_of_bits".format(target.name),))
    out = make("bitcast", storage.register(target), (a,))
    return self.round(out, target) if target.is_integer else out


def _words(self, node, indices):
    """Four bytes, of the last axis of the source, as a word."""
    four = tuple([self.value(node.srcs[0], list(indices) + [ix.const(c)]) for c in range(4)])
    return self.build.make("function", "u32", four, ("word_of_bytes",))


def four_of_word(self, x, word, vectors=True):
    """The Values of four neighboring elements of x, those of a word of its levels; vectors: whether one may be read."""
    at = ix.mul(word, 4)
    four = [self.value(x, ix.unflatten(ix.add(at, ix.const(c)), x.shape)) for c in range(4)]
    return (self.vector(four) if vectors else None) or four


def _range_levels(self, node, indices):
    """A word of levels, or the bits of a level less the zero point, the bits of the scale, or the zero point, by the
    range that the kernel finds (kernels/range_levels.py)."""
    (x,) = node.srcs
    self.ranged = x
    words = x.count // 4
    last = node.count - 2
    if indices[0].is_const() and indices[0].const >= last:
        text = "bitcast<u32>(range.x)" if indices[0].const == last else "to_u32(range.y, 255.0)"
        return self.build.make("variable", "u32", (), text)
    if node.arg == "floats":
        element = self.value(x, ix.unflatten(indices[0].bounded(0, last - 1), x.shape))
        return self.build.make("function", "u32", (element,), ("bits_of_level", "range"))
    four = four_of_word(self, x, indices[0].bounded(0, words - 1))
    return self.build.make("function", "u32", tuple(four), ("word_of_levels", "range"))


def _bytes(self, node, indices):
    """A signed byte of a word; which one is the last coordinate."""
    word = self.value(node.srcs[0], list(indices[:-1]))
    at = self.build.index(indices[-1], "u32")
    return self.build.make("function", "i32", (word, at), ("byte_of_word",))


# -- constants ----------------------------------------------------------------------------------------------------


def _full(self, node, indices):
    return self.number(node, 0, node.arg, storage.register(node.dtype))


def _arange(self, node, indices):
    start, step = node.arg
    type = storage.register(node.dtype)
    make = self.build.make
    out = self.build.index(indices[0] if indices else ix.ZERO, type)
    bound = self.stored.bind_numbers and own_numbers(node)
    if bound or not known_equal(step, 1):
        out = make("mul", type, (out, self.number(node, 1, step, type)))
    if bound or not known_equal(start, 0):
        out = make("add", type, (out, self.number(node, 0, start, type)))
    return self.round(out, node.dtype)


def _random(self, node, indices):
    words = numbers(node)
    at = self.build.index(ix.flatten(indices, node.shape), "u32")
    words = [self.number(node, i, words[i], "u32") for i in range(len(words))]
    return self.build.make("function", "u32", tuple([at] + words), ("philox_at",))


# -- movement -----------------------------------------------------------------------------------------------------


def _reshape(self, node, indices):
    (x,) = node.srcs
    return self.value(x, ix.unflatten(ix.flatten(indices, node.shape), x.shape))


def _permute(self, node, indices):
    (x,) = node.srcs
    back = [None] * len(x.shape)
    for i in range(len(back)):
        back[node.arg[i]] = indices[i]
    return self.value(x, back)


def _expand(self, node, indices):
    return self.operand(node.srcs[0], indices)


def _slice(self, node, indices):
    (x,) = node.srcs
    starts, steps = node.arg
    bound = own_numbers(node) if self.stored.bind_numbers else ()
    inner = []
    for i in range(len(indices)):
        start = ix.const(starts[i])
        if i in bound:
            # The range covers every slice of this length and step.
            reach = (node.shape[i] - 1) * abs(steps[i])
            low, high = (0, x.shape[i] - 1 - reach) if steps[i] > 0 else (reach, x.shape[i] - 1)
            start = ix.of_value(self.number(node, i, starts[i], "u32"), low, high)
        inner.append(ix.add(ix.mul(indices[i], steps[i]), start).bounded(0, ix.last(x.shape[i])))
    return self.value(x, inner)


def _pad(self, node, indices):
    (x,) = node.srcs
    padding, fill = node.arg
    conditions = []
    inner = []
    for i in range(len(indices)):
        at = ix.add(indices[i], ix.const(-padding[i][0]))
        if not known_equal(padding[i], (0, 0)):
            conditions.append((at, x.shape[i]))
        inner.append(at.bounded(0, ix.last(x.shape[i])))
    return self.build.guard(conditions, self.value(x, inner), self.number(node, 0, fill, storage.register(x.dtype)))


def _concat(self, node, indices):
    axis = node.arg
    starts = []
    values = []
    at = 0
    for s in node.srcs:
        extent = s.shape[axis]
        here = indices[axis]
        if known_equal(extent, 0) or surely_less(here.hi, at) or surely_less(at + extent - 1, here.lo):
            at += extent
            continue  # never read
        inner = list(indices)
        inner[axis] = ix.add(here, ix.const(-at)).bounded(0, extent - 1)
        values.append(self.value(s, inner))
        starts.append(at)
        at += extent
    if not values:
        return self.build.const(0, storage.register(node.dtype))  # inside a branch that is never taken
    if len(values) == 1:
        return values[0]
    return self.build.choose(indices[axis], tuple(starts), values)


def lookup(self, indices_node, indices, extent, clamped=False):
    """The Index that `indices_node` holds at `indices`; a negative one counts from the end of `extent`. clamped: one
    that is out of range becomes the nearest valid one."""
    at = self.value(indices_node, indices)
    make, const = self.build.make, self.build.const
    if at.type == "i32":
        low = make("lt", "bool", (at, const(0, "i32")))
        at = make("where", "i32", (low, make("add", "i32", (at, const(extent, "i32"))), at))
    if clamped:
        if at.type == "i32":
            at = make("maximum", "i32", (at, const(0, "i32")))
        at = make("minimum", at.type, (at, const(ix.last(extent), at.type)))
    return ix.of_value(at, 0, ix.last(extent))


def _take(self, node, indices):
    x, picks = node.srcs
    axis = node.arg
    rank = len(picks.shape)
    at = lookup(self, picks, indices[axis : axis + rank], x.shape[axis], True)
    return self.value(x, list(indices[:axis]) + [at] + list(indices[axis + rank :]))


def _gather(self, node, indices):
    x, picks = node.srcs
    inner = list(indices)
    inner[node.arg] = lookup(self, picks, indices, x.shape[node.arg], True)
    return self.value(x, inner)


LOWER = {
    "unary": _unary, "binary": _binary, "where": _where, "cast": _cast, "bitcast": _bitcast, "full": _full,
    "arange": _arange, "random": _random, "reshape": _reshape, "permute": _permute, "expand": _expand,
    "slice": _slice, "pad": _pad, "concat": _concat, "take": _take, "gather": _gather, "words": _words,
    "bytes": _bytes, "range_levels": _range_levels,
}  # fmt: skip
