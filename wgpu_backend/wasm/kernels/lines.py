"""Kernels that process lines in order: cumulative folds, scatters, sorting."""

from emberlet.sizes.questions import known_equal, positive
from emberlet.sizes.size import is_open, typical

from ...lower import index as ix
from ...lower.lowering import Lowering
from ...lower.operations import lookup, sort_key
from ...lower.reductions import identity
from ...run import storage
from ..assembler import i32, memory, op, select, unsigned_min
from . import operations
from .emitter.numbers import LOADS
from .emitter.vectors import splat
from .folds import FOLDS, operations_const
from .nest import Space, begin, by_vectors, contiguity, cuts_of, finish, over, over_spaces


class _Scan:
    def __init__(self, item, stored, out):
        node = item.anchor
        (x,) = node.srcs
        axis = node.arg[1]
        self.low = low = Lowering(item, stored)
        self.out, self.inner = out, Space("none", 1)
        at = ix.unflatten(out.flat, x.shape[:axis] + x.shape[axis + 1 :])
        at.insert(axis, ix.counter("r", x.shape[axis]))
        self.body = low.value(x, at)
        total = low.round(low.build.make("reduced", storage.register(x.dtype)), node.dtype)
        self.result, self.store = low.place(at, total)

    def cuts(self):
        return cuts_of(self.low.build.values.values(), (self.store,), "g")


def cumulative(item, stored, name):
    """The Kernel of a "cumulative" item; arg (op, axis)."""
    node = item.anchor
    op_name, axis = node.arg
    length = node.shape[axis]
    plan = over_spaces(lambda out, _: _Scan(item, stored, Space("g", node.count // length, out)))
    slots = plan.low.slots
    e = begin(name, slots)
    f = e.f
    type = storage.register(node.srcs[0].dtype)
    lane, extent = plan.out.counters[-1]
    wide = typical(extent) >= 4 and contiguity(e, (plan.body,), lane) < 6
    f.work = node.count
    first = operations_const(identity(op_name, type), type)

    def line(wide):
        acc = f.local("v128" if wide else "f32" if type == "f32" else "i32")
        f.set(acc, splat(first, type) if wide else first)
        e.loop("r", length)
        if wide:
            f.set(acc, operations.vector(FOLDS[op_name], type, (f.get(acc), e.vector(plan.body))))
        else:
            f.set(acc, operations.scalar(FOLDS[op_name], type, (f.get(acc), e.scalar(plan.body))))
        e.define("reduced", f.get(acc), wide)
        if wide:
            e.store_four(plan.store, plan.result, slots.result.word)
        else:
            e.store(plan.store, plan.result, slots.result.word)
        e.close()

    over(e, plan.out.counters, wide, line)
    return finish(e, name, slots)


def scatter(item, stored, name):
    """The Kernel of a "scatter" item: x is copied, then the updates are applied in order; arg (axis, op)."""
    node = item.anchor
    x, picks, updates = node.srcs
    axis, how = node.arg
    low = Lowering(item, stored)
    build = low.build
    copied = Space("c", node.count)
    element = low.value(x, ix.unflatten(copied.flat, node.shape))
    picked = not known_equal(picks.count, 0)
    at = ix.unflatten(ix.counter("u", positive(picks.count)), picks.shape if picked else (1,) * len(picks.shape))
    pick = lookup(low, picks, at, x.shape[axis]) if picked else ix.ZERO
    target = list(at)
    target[axis] = pick
    where = ix.flatten(target, node.shape)
    register = storage.register(node.dtype)
    new = low.value(updates, at)
    if how != "none":
        name_of = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[how]
        old = build.make("variable", register, (), "old")
        new = build.make(name_of, register, (old, new))
        if how in ("add", "mul"):
            new = low.round(new, node.dtype)
    slots = low.slots
    e = begin(name, slots)
    word = slots.result.word
    lane, extent = copied.counters[-1]

    def copy(wide):
        if wide:
            e.store_four(copied.flat, element, word)
        else:
            e.store(copied.flat, element, word)

    if typical(extent) >= 4:
        by_vectors(e, lane, extent, copy)
    else:
        e.loop(lane, extent)
        copy(False)
        e.close()
    if picked:
        f = e.f
        e.loop("u", picks.count)
        inside = op("i32.lt_u", e.index(pick), i32(x.shape[axis]))
        e.branch(inside)
        barrier, e.barrier = e.barrier, len(e.scopes) - 1
        if how != "none":
            place, offset = e.address("out", where, word)
            stored_there = memory(LOADS[word], place, offset=offset)
            if register == "bool":
                stored_there = op("i32.ne", stored_there, i32(0))
            e.define("old", f.let(stored_there))
        e.store(where, new, word)
        e.barrier = barrier
        e.close()
        e.close()
    return finish(e, name, slots)


def sort(item, stored, name):
    """The Kernel of a "sort_runs" item: source x, arg descending; the positions that sort each line of the last axis
    stably: a bottom-up merge sort of unsigned keys in the order of the elements."""
    node = item.anchor
    (x,) = node.srcs
    length = x.shape[-1]
    low = Lowering(item, stored)
    at = ix.unflatten(ix.counter("line", node.count // length), x.shape[:-1]) + [ix.counter("r", length)]
    key = sort_key(low, x, at, node.arg)
    e = begin(name, low.slots)
    f = e.f
    f.scratch = 12 * length
    keys = e.addresses["scratch"]
    f.work = 8 * node.count
    e.loop("line", node.count // length, split=True)
    first = f.let(op("i32.add", keys, i32(4 * length)))
    second = f.let(op("i32.add", keys, i32(8 * length)))
    e.loop("r", length)
    r = e.counters["r"][0]
    f.do(memory("i32.store", _word(keys, r), e.scalar(key)))
    f.do(memory("i32.store", _word(first, r), r))
    e.close()
    source, target, width = f.local("i32"), f.local("i32"), f.local("i32")
    f.set(source, first)
    f.set(target, second)
    f.set(width, i32(1))
    if is_open(length) or length > 1:
        f.begin_loop()
        _merge_all(f, keys, f.get(source), f.get(target), f.get(width), length)
        kept = f.let(f.get(source))
        f.set(source, f.get(target))
        f.set(target, kept)
        f.set(width, op("i32.shl", f.get(width), i32(1)))
        f.branch_if(op("i32.lt_u", f.get(width), i32(length)), 0)
        f.end()
    e.loop("s", length)
    s = e.counters["s"][0]
    line = op("i32.mul", e.counters["line"][0], i32(length))
    place = _word(e.addresses["out"], op("i32.add", line, s))
    f.do(memory("i32.store", place, memory("i32.load", _word(f.get(source), s))))
    e.close()
    e.close()
    return finish(e, name, low.slots)


def _word(base, n):
    return op("i32.add", base, op("i32.shl", n, i32(2)))


def _merge_all(f, keys, source, target, width, length):
    """Merge neighboring runs of `width` positions from source into target."""
    left, right, k = f.local("i32"), f.local("i32"), f.local("i32")
    start = f.local("i32")
    f.set(start, i32(0))
    f.begin_loop()
    middle = f.let(unsigned_min(op("i32.add", f.get(start), width), i32(length)))
    end = f.let(unsigned_min(op("i32.add", middle, width), i32(length)))
    f.set(left, f.get(start))
    f.set(right, middle)
    f.set(k, f.get(start))
    f.begin_loop()
    # Take from the left run if the right one is used up, or if the left one is not and its key is not greater.
    a = f.let(memory("i32.load", _word(source, unsigned_min(f.get(left), i32(length - 1)))))
    b = f.let(memory("i32.load", _word(source, unsigned_min(f.get(right), i32(length - 1)))))
    less = op("i32.le_u", memory("i32.load", _word(keys, a)), memory("i32.load", _word(keys, b)))
    less = op("i32.and", less, op("i32.lt_u", f.get(left), middle))
    take = f.let(op("i32.or", less, op("i32.ge_u", f.get(right), end)))
    f.do(memory("i32.store", _word(target, f.get(k)), select(take, a, b)))
    f.set(left, op("i32.add", f.get(left), take))
    f.set(right, op("i32.add", f.get(right), op("i32.eqz", take)))
    f.set(k, op("i32.add", f.get(k), i32(1)))
    f.branch_if(op("i32.lt_u", f.get(k), end), 0)
    f.end()
    f.set(start, end)
    f.branch_if(op("i32.lt_u", f.get(start), i32(length)), 0)
    f.end()
