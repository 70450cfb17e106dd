"""Folds: the sum, product, minimum or maximum of a body over a counter, by vectors where that is possible."""

from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import is_open, most, typical

from ...lower.reductions import identity
from ..assembler import bits, f32, i32, i32x4, op
from . import operations
from .emitter.vectors import extract, splat

BLOCK = 1024  # terms of a long float32 sum per accumulator, before it is added to the total
FOLDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "logical_or", "all": "logical_and"}


def operations_const(value, type):
    """A number as a constant of a register type."""
    return f32(float(value)) if type == "f32" else i32(int(value))


def fold(e, op_name, type, body, name, extent, out, lanes, vector=None):
    """Fold `body` over the counter `name` into the local `out`: a vector where lanes is "out", a number elsewhere.

    lanes "in": four positions of the counter at a time, in up to four vectors. vector: what gives a vector of the body,
    e.vector unless something else does.
    """
    f = e.f
    vector = vector or e.vector
    how = FOLDS[op_name]
    long = op_name == "sum" and type == "f32" and most(extent) > 2 * BLOCK
    if long:
        # Rounding errors grow with the number of sequential additions (Higham 1993), so a long sum is summed by blocks.
        whole, rest = extent // BLOCK, extent % BLOCK
        e.loop(name + "_block", whole)
        at = f.let(op("i32.mul", e.counters[name + "_block"][0], i32(BLOCK)))
        _fold_into(e, how, type, body, name, BLOCK, out, lanes, at, op_name, vector)
        e.close()
        if not known_equal(rest, 0):
            e.block()
            _fold_into(e, how, type, body, name, rest, out, lanes, i32(whole * BLOCK), op_name, vector)
            e.close()
        return
    _fold_run(e, how, type, body, name, extent, out, lanes, None, op_name, vector)


def _fold_into(e, how, type, body, name, extent, out, lanes, start, op_name, vector):
    """Fold a part of the counter's range into a separate accumulator, and that into `out`."""
    f = e.f
    part = f.local("v128" if lanes == "out" else "f32")
    zero = operations_const(0, type)
    f.set(part, splat(zero, type) if lanes == "out" else zero)
    _fold_run(e, how, type, body, name, extent, part, lanes, start, op_name, vector)
    f.set(out, f.get(out) + f.get(part))


def _fold_run(e, how, type, body, name, extent, out, lanes, start, op_name, vector):  # noqa: C901
    """Fold `extent` steps of the counter from `start` on."""
    f = e.f

    def combine(number, value, wide):
        args = (f.get(number), value)
        f.set(number, operations.vector(how, type, args) if wide else operations.scalar(how, type, args))

    def stage(first, steps, width, write):
        """`steps` runs of `width` positions each."""
        if known_equal(steps, 0):  # a loop whose bounds are known runs at least once
            return
        e.loop(name + "_at", first + steps * width, width, first)
        base = e.counters[name + "_at"][0]
        e.bind(name, base if start is None else f.let(op("i32.add", base, start)))
        write()
        e.close()

    ends = how in ("min", "max") and type == "f32" and e.lanes == 4 and lanes
    nans = f.local("v128") if ends else None
    if ends:  # a run of "out" goes on with what those of outer loops found, NaN included
        f.set(nans, op("f32x4.ne", f.get(out), f.get(out)) if lanes == "out" else i32x4(0))

    def gather(best):
        """Combine a vector of the body, of which `nans` notes NaN: instructions that keep it take engines longer."""
        if not ends:
            combine(best, vector(body), True)
            return
        value = f.let(vector(body))
        f.set(best, op("f32x4.p" + how, value, f.get(best)))
        f.set(nans, op("v128.or", f.get(nans), op("f32x4.ne", value, value)))

    if lanes != "in":
        stage(0, extent, 1, lambda: gather(out) if lanes == "out" else combine(out, e.scalar(body), False))
        if ends:
            f.set(out, op("v128.or", f.get(out), f.get(nans)))
        return
    first = splat(operations_const(identity(op_name, type), type), type)
    width = e.lanes
    vectors = 4 if typical(extent) >= 8 * width else 1
    parts = [f.local("v128") for _ in range(vectors)]
    for p in parts:
        f.set(p, first)
    e.lane = name
    done = 0

    def several():
        known = e.counters[name]
        for n in range(vectors):
            e.block()
            e.bind(name, f.let(op("i32.add", known[0], i32(width * n))))
            gather(parts[n])
            e.close()

    if vectors > 1:
        stage(0, extent // (width * vectors), width * vectors, several)
        done = extent // (width * vectors) * width * vectors
    if is_open(extent) or extent - done >= width:
        stage(done, (extent - done) // width, width, lambda: gather(parts[0]))
        done += (extent - done) // width * width
    e.lane = None
    e._depends = {}
    if ends:
        f.set(parts[0], op("v128.or", f.get(parts[0]), f.get(nans)))
    while len(parts) > 1:
        half = len(parts) // 2
        for n in range(half):
            combine(parts[n], f.get(parts[n + half]), True)
        parts = parts[:half]
    if width > 4:
        # The last vector begins earlier; its numbers that were folded before are left out.
        if not is_open(extent) and extent > done:
            e.lane = name

            def tail():
                combine(parts[0], _last(e, vector(body), extent - done, first), True)

            stage(extent - width, 1, width, tail)
            e.lane = None
            e._depends = {}
        half = width // 2
        while half:
            combine(parts[0], f.let(op("v128.turn", f.get(parts[0]), i32(half))), True)
            half //= 2
        combine(out, extract(f.get(parts[0]), type, 0), False)
        if not is_open(extent):
            return
    else:
        for n in range(width):
            combine(out, extract(f.get(parts[0]), type, n), False)
    if is_open(extent) or extent > done:
        stage(done, extent - done, 1, lambda: combine(out, e.scalar(body), False))


def _last(e, vector, count, otherwise):
    """The last `count` numbers of a vector; `otherwise` in place of the others."""
    first = splat(i32(e.lanes - count), "i32")
    mask = op("i32x4.ge_s", op("v128.ramp", i32(1)), first)
    return bits(mask, vector, otherwise)
