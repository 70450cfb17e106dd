"""Lowering: from graph nodes to the kernel IR.

`Lowering.value(node, indices)` is the element of `node` at `indices` as a kernel IR Value. Stored nodes become loads;
everything else is inlined, movement operations by rewriting the indices. `loop` makes the kernel of one stored node.
"""

from emberlet import dtypes
from emberlet.backend.protocol import BOOLEAN_RESULT
from emberlet.sizes.questions import known_equal, positive
from emberlet.sizes.size import surely_less

from ..record.node import Node, no_kernel, numbers, own_numbers
from ..run import storage
from . import index as ix
from .kernel_ir import Builder, Loop, Reduction, Slots, coordinates
from .reductions import identity, specification

_INFINITY = float("inf")

# Operations whose result is a value of the narrow dtype whenever the operands are.
_EXACT = (
    "neg", "abs", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum", "bitwise_and", "bitwise_or",
    "bitwise_xor", "shift_right", "remainder", "fmod",
)  # fmt: skip
_EXACT_FLOAT_ONLY = ("neg", "abs")


class Lowering:
    """Builds the Values of one kernel. item: what it computes; stored: the Stored nodes, which have, or will have, a
    buffer of their own."""

    def __init__(self, item, stored, anchor=None, flat_reduction=False):
        self.build = Builder()
        self.item = item
        self.stored = stored
        self.anchor = anchor
        self.flat_reduction = flat_reduction
        self.reduction = None
        whole = item.region[0] if item.region else item.node
        self.slots = Slots(result=whole, limits=stored.limits)
        self._memo = {}
        self._root = None
        self._fixed = {}
        self._numbers = None

    def load(self, node, flat):
        return self.build.load(self.slots.of(node), flat, storage.register(node.dtype))

    def number(self, node, which, plain, type):
        """Number `which` of node.numbers as a Value: the literal `plain`, or an element of the kernel's buffer of
        numbers if the kernel is to serve other numbers too."""
        if not self.stored.bind_numbers:
            return self.build.const(plain, type)
        if self._numbers is None:
            self._numbers = Node("numbers", (), [], dtypes.uint32, (0,))
        known = self._numbers.arg
        if (id(node), which) not in known:
            known.append((id(node), which))
            self._numbers.count = len(known)
            self._numbers.shape = (len(known),)
        word = self.load(self._numbers, ix.const(known.index((id(node), which))))
        if type == "bool":
            return self.build.make("ne", "bool", (word, self.build.const(0, "u32")))
        return word if type == "u32" else self.build.make("bitcast", type, (word,))

    def fix(self, node, value):
        """Make `node` evaluate to `value` from now on, whatever the indices."""
        self._fixed[id(node)] = value

    def vector(self, four):
        """Four loads as the components of one vec4 load, or None if they are not contiguous and aligned."""
        slot = None
        for v in four:
            if v.op != "load" or v.type != "f32" or (slot is not None and v.attr[0] != slot):
                return None
            slot = v.attr[0]
        if not ix.consecutive([v.attr[1] for v in four]):
            return None
        if self.slots.types[slot][:4] != "vec4":
            self.slots.types[slot] = "vec4<{}>".format(self.slots.types[slot])
        at = ix.quarter(four[0].attr[1])
        whole = self.build.make("load4", "vec4", (), (slot, at), (slot, at.key))
        return [self.build.make("component", "f32", (whole,), i) for i in range(4)]

    def value(self, node, indices):
        key = (id(node), tuple([i.identity for i in indices]))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._value(node, indices)
        return found

    def _value(self, node, indices):
        if node is self.anchor:
            return self._reduce(node, indices)
        if id(node) in self._fixed:
            return self._fixed[id(node)]
        if known_equal(node.count, 0):
            return self.build.const(0, storage.register(node.dtype))  # never read: there is no buffer
        if node is not self._root and (node.op in ("data", "buffer", "input") or id(node) in self.stored):
            return self.load(node, ix.flatten(indices, node.shape))
        if node.op not in _LOWER:
            raise no_kernel(node.op)
        return _LOWER[node.op](self, node, indices)

    def operand(self, node, indices):
        """The element of `node` that broadcasts to `indices` (NumPy's rule)."""
        skip = len(indices) - len(node.shape)
        lengths = node.shape
        return self.value(
            node, [ix.ZERO if known_equal(lengths[i], 1) else indices[skip + i] for i in range(len(lengths))]
        )

    def round(self, value, dtype):
        """`value` rounded or wrapped to a narrow dtype."""
        how = storage.rounding(dtype)
        if how is None:
            return value
        name, bits = how
        attr = (name,) if bits is None else (name, "{}u".format(bits))
        return self.build.make("function", value.type, (value,), attr)

    def _reduce(self, node, indices):
        if self.reduction is None:
            spec = specification(node)
            if known_equal(spec.size(), 0):
                # A constant, so that dividing by it is `undisguised`.
                type = storage.register(node.dtype)
                return self.build.const(identity(spec.op, type), type)
            counters = [("r{}".format(i), spec.extents[i]) for i in range(len(spec.extents))]
            if self.flat_reduction:
                inner = coordinates("r", spec.extents)
                counters = [("r", positive(spec.size()))]
            else:
                inner = [ix.counter(name, extent) for name, extent in counters]
            body = spec.body(self, indices, inner)
            position = spec.position(inner) if spec.position else None
            self.reduction = Reduction(spec.op, spec.type, counters, body, position)
        out = self.build.make("reduced", storage.register(node.dtype))
        if node.op != "reduce" or node.arg[0] in ("sum", "prod"):
            out = self.round(out, node.dtype)
        return out

    def place(self, coordinates, value=None):
        """(result, index to store it at) for the element of the item's anchor at `coordinates`, whose value is `value`.

        The epilogue is applied to the value. The index counts in the buffer that the item writes: for a region, the
        concatenation's.
        """
        item = self.item
        self._root = None if item.copy else item.node
        if value is not None:
            self._fixed[id(item.anchor)] = value
            # A cell beyond the edge can have the coordinates of one inside, which must not reuse its value.
            self._memo = {}
        shape = item.anchor.shape if item.anchor is not None else item.node.shape
        for node in item.chain:
            if node.op == "reshape":
                coordinates = ix.unflatten(ix.flatten(coordinates, shape), node.shape)
            elif node.op == "permute":
                coordinates = [coordinates[axis] for axis in node.arg]
            shape = node.shape
        result = self.value(item.node, coordinates)
        if item.region is None:
            return result, ix.flatten(coordinates, shape)
        whole, starts = item.region
        coordinates = [ix.add(coordinates[i], ix.const(starts[i])) for i in range(len(starts))]
        return result, ix.flatten(coordinates, whole.shape)

    def loop(self, name, wide=False):
        """The Loop that computes the item, one counter "g" over the elements it stores; wide: four at a time."""
        item, node = self.item, self.item.node
        self._root = None if item.copy else node
        cells = []
        for c in range(4 if wide else 1):
            flat = ix.counter("g", positive(node.count))
            if wide:
                flat = ix.add(ix.mul(ix.counter("g", node.count // 4), 4), ix.const(c))
            indices = ix.unflatten(flat, node.shape)
            store = flat
            if item.region is not None:
                whole, starts = item.region
                store = ix.flatten([ix.add(indices[i], ix.const(starts[i])) for i in range(len(starts))], whole.shape)
            cells.append((self.value(node, indices), store))
        loop = Loop(name, self.slots, node.count // len(cells), cells, self.reduction)
        if wide:
            self._widen_loads()
            loop.vector_out = ix.consecutive([store for _, store in cells])
        return loop

    def _widen_loads(self):
        """Read slots as vectors that are only read at 4 * q + constant."""
        fits = {}
        for key in self.build.values:
            v = self.build.values[key]
            if v.op == "load":
                slot, index = v.attr
                fits[slot] = fits.get(slot, True) and ix.fours(index) and not index.is_const()
        for slot in fits:
            if fits[slot]:
                self.slots.types[slot] = "vec4<{}>".format(self.slots.types[slot])


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
    return convert(self, self.value(node.srcs[0], indices), node.srcs[0].dtype, node.dtype)


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


_LOWER = {
    "unary": _unary, "binary": _binary, "where": _where, "cast": _cast, "bitcast": _bitcast, "full": _full,
    "arange": _arange, "random": _random, "reshape": _reshape, "permute": _permute, "expand": _expand,
    "slice": _slice, "pad": _pad, "concat": _concat, "take": _take, "gather": _gather,
}  # fmt: skip
