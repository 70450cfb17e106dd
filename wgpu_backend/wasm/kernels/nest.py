"""The kernels of plain maps and of reductions: nested loops over the result, then over the reduced elements.

A shape starts as one flat counter; if index expressions need digits of it, it is split into several counters there, so
that divisions become loops. One counter is vectorized: the innermost of the result or of the reduction, whichever makes
more loads contiguous.
"""

from emberlet.sizes.questions import divides, known_equal, positive
from emberlet.sizes.size import least, quotient, typical

from ...kernels.loop import Kernel
from ...lower import index as ix
from ...lower.lowering import Lowering
from ...lower.reductions import identity, specification
from ...run import storage
from ..assembler import Function, TooManyLocals, bits, i32, op
from . import operations, split
from .emitter.places import indices_of
from .emitter.vectors import Emitter, splat
from .folds import fold, operations_const


class Space:
    """The flat position in a shape, as a sum of nested counters. counters: (name, extent), outermost first; flat: the
    Index."""

    def __init__(self, name, count, cuts=()):
        self.counters = []
        self.flat = ix.ZERO
        left = positive(count)
        for at, cut in enumerate(_chain(left, cuts)):
            counter = "{}{}".format(name, at)
            extent = quotient(left, cut)
            self.counters.append((counter, extent))
            self.flat = ix.add(self.flat, ix.mul(ix.counter(counter, extent), cut))
            left = cut
        self.flat = self.flat.bounded(0, ix.last(count))


def _chain(count, cuts):
    """Divisors of count, each dividing the one before, down to 1."""
    out = []
    left = count
    for cut in sorted(cuts, key=typical, reverse=True):
        if 1 < typical(cut) < typical(left) and divides(cut, left):
            out.append(cut)
            left = cut
    out.append(1)
    return out


def cuts_of(values, indices, prefix):
    """The positions that bound the digits of counters whose names begin with `prefix`: {counter: positions}."""
    found = {}

    def look(index):
        for _, atom in index.terms:
            if atom.kind != "digit":
                continue
            base, _, div, mod = atom.payload
            if not isinstance(base, str):
                look(base)
            elif base.startswith(prefix):
                places = found.setdefault(base, [])
                places.append(div)
                if not known_equal(mod, 0):
                    places.append(div * mod)

    for index in indices:
        look(index)
    for value in values:
        for index in indices_of(value):
            look(index)
    return found


def begin(name, slots, lanes=4):
    """An Emitter for a kernel over these slots; its parameters are their addresses, the result's and the scratch
    memory's, and the first and the last step (exclusive) of the loop that threads share."""
    count = len(slots.nodes)
    f = Function(name, ("i32",) * (count + 4))
    f.lanes = lanes
    e = Emitter(f, slots)
    for n in range(count):
        e.addresses[n] = f.param(n)
    e.addresses["out"] = f.param(count)
    e.addresses["scratch"] = f.param(count + 1)
    return e


def finish(emitter, name, slots):
    """The Kernel of what was emitted."""
    return Kernel(name, emitter.f.finish(), list(slots.nodes), (1, 1, 1))


def over(e, counters, wide, write):
    """`write(whether by vectors)` in loops over the elements of a result, one of which threads share. wide: the last
    loop goes by vectors."""
    last = len(counters) - 1
    name, extent = counters[last]
    # An open length that may be less than a vector's goes by vectors as far as they reach, then one by one.
    parts = wide and least(extent) < e.lanes
    steps = [n for _, n in counters]
    if wide:
        steps[last] = 1 if parts else (typical(extent) + e.lanes - 1) // e.lanes
    shared = split.chosen(steps)
    for i in range(last):
        e.loop(counters[i][0], counters[i][1], split=i == shared)
    if wide:
        by_vectors(e, name, extent, write, shared == last and not parts)
    else:
        e.loop(name, extent, split=shared == last)
        write(False)
        e.close()
    for _ in range(last):
        e.close()


def by_vectors(e, name, extent, write, split=False):
    """`write(True)` in a loop over a counter that goes by vectors; `write(False)` for the rest of an open length."""
    even = divides(e.lanes, extent)
    parts = least(extent) < e.lanes and not even
    e.lane = name
    e._depends = {}
    if parts:
        e.loop(name, extent // e.lanes * e.lanes, e.lanes)
    else:
        e.loop(name, extent, e.lanes, clamp=None if even else extent - e.lanes, split=split)
    write(True)
    e.close()
    e.lane = None
    e._depends = {}
    if parts:
        e.loop(name, extent, 1, extent // e.lanes * e.lanes)
        write(False)
        e.close()


class _Plan:
    """What a kernel computes over given spaces."""

    def __init__(self, item, stored, out, inner):
        anchor = item.anchor
        self.low = low = Lowering(item, stored)
        self.out, self.inner = out, inner
        shape = (item.node if anchor is None else anchor).shape
        coordinates = ix.unflatten(out.flat, shape)
        self.spec = self.body = self.position = None
        if anchor is None:
            self.result, self.store = low.place(coordinates)
            return
        self.spec = spec = specification(anchor)
        if not known_equal(spec.size(), 0):
            within = ix.unflatten(inner.flat, spec.extents)
            self.body = spec.body(low, coordinates, within)
            if spec.position:
                self.position = low.build.index(spec.position(within), "i32")
        value = low.build.make("reduced", storage.register(anchor.dtype))
        if anchor.op != "reduce" or anchor.arg[0] in ("sum", "prod"):
            value = low.round(value, anchor.dtype)
        self.result, self.store = low.place(coordinates, value)

    def cuts(self):
        return cuts_of(self.low.build.values.values(), (self.store,), "")


def over_spaces(made):
    """made(out cuts, inner cuts): a plan with the Spaces `out` and `inner`, whose counters are split where digits of
    them are needed."""
    out_cuts, inner_cuts = (), ()
    for _ in range(3):
        plan = made(out_cuts, inner_cuts)
        found = plan.cuts()
        more = [tuple(_places(s, found)) for s in (plan.out, plan.inner)]
        if more == [(), ()]:
            break
        out_cuts, inner_cuts = out_cuts + more[0], inner_cuts + more[1]
    return plan


def _places(space, found):
    """The cuts of a whole space, from those of its counters."""
    out = []
    scale = 1
    for name, extent in reversed(space.counters):
        for place in found.get(name, ()):
            if 1 < typical(place) < typical(extent):
                out.append(place * scale)
        scale *= extent
    return out


def loop(item, stored, name, lanes=4):
    """The Kernel of an item that is a map, or a reduction with its epilogue (lower/reductions.py). lanes: of vectors,
    where neither an index nor an operation needs the numbers one by one."""
    anchor = item.anchor
    count = (item.node if anchor is None else anchor).count
    terms = specification(anchor).size() if anchor is not None else 1
    plan = over_spaces(lambda out, inner: _Plan(item, stored, Space("g", count, out), Space("r", terms, inner)))
    while lanes > 4:
        writer = _Writer(plan, name, lanes=lanes)
        if writer.lanes:
            kernel = writer.kernel()
            if not writer.e.by_one:
                return kernel
        lanes //= 2
    try:
        return _Writer(plan, name).kernel()
    except TooManyLocals:  # depth of nested concatenations: edges within a vector are written lane by lane
        return _Writer(plan, name, vectors=False).kernel()


def contiguity(emitter, values, lane):
    """The cost of the loads of some values when `lane` advances four positions at once."""
    seen = {}
    total = 0

    def walk(value):
        nonlocal total
        if value.id in seen:
            return
        seen[value.id] = True
        for a in value.args:
            walk(a)
        for index in indices_of(value):
            for _, atom in index.terms:
                if atom.kind != "digit":
                    walk(atom.payload)
            c = emitter.coefficient(index, lane)
            total += 1 if c in (0, 1, -1) else 6 if c is not None else 12

    for value in values:
        walk(value)
    return total


class _Writer:
    def __init__(self, plan, name, vectors=True, lanes=4):
        self.plan = plan
        self.name = name
        self.slots = plan.low.slots
        self.word = self.slots.result.word
        self.e = begin(name, self.slots, lanes)
        self.lanes = self._lanes() if vectors else None

    def _lanes(self):
        """The vectorized counter: "out", "in" or None."""
        plan, e = self.plan, self.e
        out_name, out_extent = plan.out.counters[-1]
        across = typical(out_extent) >= e.lanes
        if plan.body is None:
            return "out" if across else None
        inner_name, inner_extent = plan.inner.counters[-1]
        inner_extent = typical(inner_extent)
        along = inner_extent >= 2 * e.lanes and plan.position is None and plan.spec.op not in ("any", "all")
        if not across or not along:
            return "out" if across else "in" if along else None
        if inner_extent < 4 * e.lanes:
            return "out"
        a = contiguity(e, (plan.body,), out_name)
        return "in" if contiguity(e, (plan.body,), inner_name) < a else "out"

    def kernel(self):
        plan, e = self.plan, self.e
        many = 1
        for _, extent in plan.out.counters + (plan.inner.counters if plan.spec is not None else []):
            many *= extent
        e.f.work = many
        over(e, plan.out.counters, self.lanes == "out", self._element)
        return finish(e, self.name, self.slots)

    def _element(self, wide):
        """Compute and store an element, or a vector of them."""
        plan, e = self.plan, self.e
        if plan.spec is not None:
            self._reduce(wide)
        if wide:
            e.store_four(plan.store, plan.result, self.word)
        else:
            e.store(plan.store, plan.result, self.word)

    def _reduce(self, wide):
        plan, e, f = self.plan, self.e, self.e.f
        spec = plan.spec
        first = operations_const(identity(spec.op, spec.type), spec.type)
        if spec.op[:3] == "arg":
            self._arg(first, wide)
            return
        if plan.body is None:
            e.define("reduced", first)
            return
        out = f.local("v128" if wide else "f32" if spec.type == "f32" else "i32")
        f.set(out, splat(first, spec.type) if wide else first)
        loops = plan.inner.counters
        for name, extent in loops[:-1]:
            e.loop(name, extent)
        name, extent = loops[-1]
        lanes = "out" if wide else "in" if self.lanes == "in" else None
        fold(e, spec.op, spec.type, plan.body, name, extent, out, lanes)
        for _ in loops[:-1]:
            e.close()
        e.define("reduced", f.get(out), wide)

    def _arg(self, first, wide):
        plan, e, f = self.plan, self.e, self.e.f
        spec = plan.spec
        sign = "gt" if spec.op == "argmax" else "lt"
        best = f.local("v128" if wide else "i32")
        top = f.local("v128" if wide else "f32" if spec.type == "f32" else "i32")
        f.set(top, splat(first, spec.type) if wide else first)
        f.set(best, splat(i32(0), "i32") if wide else i32(0))
        for name, extent in plan.inner.counters:
            e.loop(name, extent)
        old = f.get(top)
        if wide:
            new = e.vector(plan.body)
            better = operations.vector(sign, spec.type, (new, old))
            if spec.type == "f32":
                nan = op("v128.andnot", op("f32x4.ne", new, new), op("f32x4.ne", old, old))
                better = op("v128.or", better, nan)
            better = f.let(better)
            f.set(top, bits(better, new, old))
            f.set(best, bits(better, e.vector(plan.position), f.get(best)))
        else:
            new = e.scalar(plan.body)
            better = operations.scalar(sign, spec.type, (new, old))
            if spec.type == "f32":
                better = op("i32.or", better, op("i32.and", op("f32.ne", new, new), op("f32.eq", old, old)))
            position = e.scalar(plan.position)
            f.begin_if(better)
            f.set(top, new)
            f.set(best, position)
            f.end()
        for _ in plan.inner.counters:
            e.close()
        e.define("reduced", f.get(best), wide)
