"""The kernel of a row region, such as a softmax or a normalization (fuse/rows.py)."""

from emberlet.shapes import size
from emberlet.sizes.size import is_open, typical

from ...lower.lowering import Lowering
from ...lower.reductions import identity
from ...lower.rows import Rows, extents
from ...run import storage
from ..assembler import memory
from .emitter.vectors import splat
from .folds import fold, operations_const
from .nest import Space, begin, by_vectors, contiguity, cuts_of, finish, over, over_spaces

KEPT = 1 << 16  # elements of the longest row whose values are kept


class _Rows(Rows):
    """What a row region computes over given spaces."""

    def __init__(self, item, stored, out, inner):
        self.region = item.anchor.arg
        self.low = low = Lowering(item, stored)
        self.out, self.inner = out, inner
        self.inner_count = size([extent for _, extent in inner.counters])
        Rows.__init__(self, low, self.region, out.flat, inner.flat)
        self.result, self.store = low.place(self.row if self.per_row else self.full)

    def cuts(self):
        return cuts_of(self.low.build.values.values(), (self.store,), "")


def rows(item, stored, name, lanes=4):
    """The Kernel of a "rows" item, whose anchor's arg is the Region. lanes: as in nest.loop."""
    length, count = extents(item.anchor.arg)
    plan = over_spaces(lambda out, inner: _Rows(item, stored, Space("g", count, out), Space("r", length, inner)))
    while lanes > 4:
        kernel, e = _write(plan, name, lanes)
        if kernel and not e.by_one:
            return kernel
        lanes //= 2
    return _write(plan, name, 4)[0]


def _write(plan, name, many_lanes):
    """(the Kernel, its Emitter); no Kernel if vectors of so many lanes are too long."""
    slots = plan.low.slots
    e = begin(name, slots, many_lanes)
    f = e.f
    word = slots.result.word
    out_name, out_extent = plan.out.counters[-1]
    in_name, in_extent = plan.inner.counters[-1]
    lanes = "out" if typical(out_extent) >= many_lanes else None
    if typical(in_extent) >= many_lanes and (lanes is None or typical(in_extent) >= 2 * many_lanes):
        values = plan.bodies + ([] if plan.per_row else [plan.result])
        # Name variables and counters before anything is emitted.
        if lanes is None or contiguity(e, values, in_name) <= contiguity(e, values, out_name):
            lanes = "in"
    if many_lanes != 4 and lanes is None:
        return None, e
    many = 1 + len(plan.region.reductions)
    for _, extent in plan.out.counters + plan.inner.counters:
        many *= extent
    f.work = many

    def element(wide):
        _row(e, plan, word, "out" if wide else "in" if lanes == "in" else None)

    over(e, plan.out.counters, lanes == "out", element)
    return finish(e, name, slots), e


def _row(e, plan, word, lanes):
    """Compute and store a row, or a vector of rows where lanes is "out"."""
    f = e.f
    in_name, in_extent = plan.inner.counters[-1]
    wide = lanes == "out"
    ready = None  # a reduction's body whose values are kept for the results
    for k, reduction in enumerate(plan.region.reductions):
        op_name, type = reduction.arg[0], storage.register(reduction.dtype)
        first = operations_const(identity(op_name, type), type)
        out = f.local("v128" if wide else "f32" if type == "f32" else "i32")
        f.set(out, splat(first, type) if wide else first)
        for counter, extent in plan.inner.counters[:-1]:
            e.loop(counter, extent)
        kept = _kept(plan, k, lanes, in_extent, e.lanes)
        fold(e, op_name, type, plan.bodies[k], in_name, in_extent, out, lanes, kept and _keeping(e, plan))
        for _ in plan.inner.counters[:-1]:
            e.close()
        e.define("red{}".format(k), f.get(out), wide)
        if kept:
            ready = kept
    if plan.per_row:
        _store(e, plan, word, wide)
        return

    def store(wide):
        if ready is not None:
            e.scopes[-1].values[ready.id, "4"] = f.let(memory("v128.load", _place(e, plan)))
        _store(e, plan, word, wide)

    for counter, extent in plan.inner.counters[:-1]:
        e.loop(counter, extent)
    if lanes == "in":
        by_vectors(e, in_name, in_extent, store)
    else:
        e.loop(in_name, in_extent)
        _store(e, plan, word, wide)
        e.close()
    for _ in plan.inner.counters[:-1]:
        e.close()


def _kept(plan, k, lanes, extent, width):
    """The body of reduction k if the results are computed from it, too, and it takes longer than a load, and if it is
    folded by vectors of `width` only."""
    body = plan.bodies[k]
    if lanes != "in" or plan.per_row or body.type != "f32" or body.op in ("load", "const"):
        return None
    if is_open(extent) or extent > KEPT or (width == 4 and extent % 4):
        return None
    waiting = [plan.result]
    seen = {}
    while waiting:
        value = waiting.pop()
        if value is body:
            return body
        if value.id not in seen:
            seen[value.id] = True
            waiting.extend(value.args)
    return None


def _place(e, plan):
    """The address in scratch memory of the current position within a row."""
    return e.index(plan.inner.flat, 4, e.addresses["scratch"])


def _keeping(e, plan):
    e.f.scratch = 4 * plan.inner_count

    def vector(body):
        out = e.f.let(e.vector(body))
        e.f.do(memory("v128.store", _place(e, plan), out))
        return out

    return vector


def _store(e, plan, word, wide):
    if wide:
        e.store_four(plan.store, plan.result, word)
    else:
        e.store(plan.store, plan.result, word)
