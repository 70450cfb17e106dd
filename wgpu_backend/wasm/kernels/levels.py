"""What quantization writes, in vectors: quotients, saturated to 8 or 16 bits and rounded. Adding 1.5 * 2 ** 23 rounds
half to even, and leaves the integer in the lowest bits.

In vectors of more than four numbers, a quotient by a known scale is a product with its reciprocal and one correction
(Markstein 1990, "Computation of elementary functions on the IBM RISC System/6000 processor"), in a third of the time of
a division. It is the quotient as rounded to float32 wherever the level does not saturate.

By a scale of few bits, as `emberlet quantize` chooses them, it is x high + x low in two instructions, where high + low
is the reciprocal to 46 bits: a quotient of 24 bits by 20 is further than that from each number halfway between floats.
"""

import struct

from emberlet.sizes.size import is_open

from ...record.ranges import narrow_range
from ..assembler import f32, f32_bytes, f32x4, i32, i32x4, op, select
from .operations import exponent

_INFINITE = float("inf")
_FINITE = 2.0**120  # less than it, a number and its sums and differences are floats that are not infinite
_BOUNDED = ("mul", "div", "add", "sub", "maximum", "minimum", "where")
_DEEPEST = 12  # operations on operations that `_interval` follows
_LARGEST = 1 << 20  # of a quotient: larger ones become this, and are to saturate
_SURELY, _ERROR = 0.499, 1e-6  # how far a number lies beyond a level that it is rounded to; relative, of a quotient
_UNIT = 2.0**-24  # relative, of one rounding to float32
_ROUNDING, _ROUNDING_BITS = 12582912.0, 0x4B400000
_SCALES = (2.0**-60, 2.0**60)  # whose quotients, and what remains of them, are neither subnormal nor infinite
_FEW_BITS = 20  # of a scale, whose quotients take two instructions


def clamped(value):
    """(y, low, high) of a Value that is `functional.to_levels`'s y between two numbers, and low where y is NaN; else
    None."""
    if value.op != "minimum" or value.type != "f32":
        return None
    above, high = value.args
    if above.op != "where" or not _known(high):
        return None
    test, y, low = above.args
    if test.op != "gt" or test.args[0] is not y or test.args[1] is not low or not _known(low):
        return None
    return y, float(low.attr), float(high.attr)


def levels(e, value):
    """The vector of a Value that casts to integers what is known to fit (`clamped`), else None."""
    found = _rounded(value)
    if found is None:
        known = e.lanes > 4 and clamped(value.args[0]) is not None and bounds(value) is not None
        return op("v128.whole", e.vector(value.args[0])) if known else None
    return op("i32x4.sub", _with_rounding(e, value, found), i32x4(_ROUNDING_BITS - found[1]))


def saturating(e, value, word):
    """A vector of integers that are a Value's bytes, `word`, once they are saturated to these; else None. e's vectors
    have more than four numbers."""
    whole = (-128, 127) if word == "i8" else (0, 255)
    while value.op == "cast" and value.type in ("i32", "u32") and value.args[0].type in ("i32", "u32"):
        value = value.args[0]
    found = _rounded(value) if value.op == "function" and value.attr[0] in ("to_i32", "to_u32") else None
    if found is None or found[2:] != whole:
        known = bounds(value, e.slots)
        return e.vector(value) if known and whole[0] <= known[0] and known[1] <= whole[1] else None
    quotient, zero, low, high = found

    def made():
        out = _quotient(e, *quotient.args) if _by_reciprocal(e, quotient) else e.vector(quotient)
        known = _interval(quotient, e.slots) or (-_INFINITE, _INFINITE)
        if known[1] > _LARGEST:
            out = op("f32x4.pmin", out, f32x4(high - zero))
        if known[0] < -_LARGEST and zero < 0:  # else NaN and what is too small become the lowest integer
            out = op("f32x4.pmax", f32x4(low - zero), out)
        out = op("v128.nearest", out)
        return op("i32x4.add", out, i32x4(zero)) if zero else out

    return e.keep((value.id, "saturating"), e.level(value), made)


def numbers(e, value, one=False):
    """The vector, or the number if `one`, of a Value that is the float of levels, or such a float less a known integer,
    without making integers of them; else None."""
    found = _as_floats(value)
    if found is None:
        return None
    source, rounded, point = found
    kind, constant, made = ("f32", f32, _one_with_rounding) if one else ("f32x4", f32x4, _with_rounding)
    out = op(kind + ".sub", made(e, source, rounded), constant(_ROUNDING))
    return out if rounded[1] == point else op(kind + ".add", out, constant(rounded[1] - point))


def _as_floats(value):
    """(the levels, what `_rounded` knows of them, what is subtracted) of a Value that `numbers` computes; else None."""
    point = 0.0
    if value.op == "sub" and value.type == "f32" and _known(value.args[1]):
        value, point = value.args[0], float(value.args[1].attr)
    if value.op != "cast" or value.type != "f32" or not abs(point) <= _LARGEST or point != int(point):
        return None
    source = value.args[0]
    while source.type in ("i32", "u32") and source.op in ("cast", "function", "sub") and bounds(source) is not None:
        rounded = _rounded(source) if source.op == "function" and source.attr[0] in ("to_i32", "to_u32") else None
        if rounded is not None:
            return (source, rounded, point) if abs(point) <= _LARGEST else None
        if source.op == "sub":
            if not _known(source.args[1]):
                return None
            point += source.args[1].attr
        source = source.args[0]
    return None


def _with_rounding(e, value, found):
    """The vector of what a Value rounds, cut to its levels, and with what rounds it added."""
    quotient, zero, low, high = found

    def made():
        out = _quotient(e, *quotient.args) if _by_reciprocal(e, quotient) else e.vector(quotient)
        known = _interval(quotient, e.slots)
        least, most = low - zero, high - zero
        if known is None or known[0] < least - _SURELY + _ERROR * abs(least):
            out = op("f32x4.pmax", f32x4(least), out)
        if known is None or known[1] > most + _SURELY - _ERROR * abs(most):
            out = op("f32x4.pmin", out, f32x4(most))
        return op("f32x4.add", out, f32x4(_ROUNDING))

    return e.keep((value.id, "rounded"), e.level(value), made)


def level(e, value):
    """`levels` of one number."""
    found = _rounded(value)
    if found is None:
        return None
    bits = op("i32.reinterpret_f32", _one_with_rounding(e, value, found))
    return op("i32.sub", bits, i32(_ROUNDING_BITS - found[1]))


def _one_with_rounding(e, value, found):
    f, (quotient, zero, low, high) = e.f, found
    least, most = f32(low - zero), f32(high - zero)

    def made():
        out = f.let(e.scalar(quotient))
        out = f.let(select(op("f32.gt", out, least), out, least))
        return op("f32.add", select(op("f32.lt", out, most), out, most), f32(_ROUNDING))

    return e.keep((value.id, "one rounded"), e.level(value), made)


def operands(e, value, vector):
    """The Values that a Value is computed from, by their vectors or their numbers."""
    found = _rounded(value) if value.op == "function" and value.attr[0] in ("to_i32", "to_u32") else None
    if value.op in ("cast", "sub"):
        as_floats = _as_floats(value)
        found = None if as_floats is None else as_floats[1]
    if found is None:
        x = exponent(value) if vector else None
        return value.args if x is None else (x,)
    return found[0].args[:1] if vector and _by_reciprocal(e, found[0]) else found[:1]


def _rounded(value):
    """(what is rounded, zero point, lowest, highest level) of a cast to integers of levels as they are by definition;
    else None. They are integers, so that it may be cut to them before it is rounded, less the zero point."""
    found = clamped(value.args[0])
    if found is None or bounds(value) is None:
        return None
    y, low, high = found
    zero = 0.0
    if y.op == "add" and _known(y.args[1]):
        y, zero = y.args[0], float(y.args[1].attr)
    if y.op != "round" or [n for n in (zero, low, high) if not abs(n) <= _LARGEST or n != int(n)]:
        return None
    return y.args[0], int(zero), low, high


def _by_reciprocal(e, quotient):
    """Whether a quotient is computed by a reciprocal: where an instruction multiplies and adds with one rounding."""
    return e.lanes > 4 and quotient.op == "div" and _divides_well(quotient.args[1])


def bounds(value, slots=None):
    """(the lowest, the highest) an integer Value may be, if it follows from quantization; else None. slots: those that
    it loads from, if what is known of them counts."""
    if value.op == "load" and slots is not None and value.type in ("i32", "u32"):
        return narrow_range(slots.nodes[value.attr[0]])
    if value.op == "const" and not is_open(value.attr) and value.type in ("i32", "u32"):
        return int(value.attr), int(value.attr)
    if value.op == "function" and value.attr[0] in ("to_i32", "to_u32"):
        found = clamped(value.args[0])
        least, most = [float(n) for n in (("0",) + value.attr[1:])[-2:]]
        return (int(found[1]), int(found[2])) if found and least <= found[1] <= found[2] <= most else None
    if value.op == "cast" and value.type in ("i32", "u32") and value.args[0].type in ("i32", "u32"):
        found = bounds(value.args[0], slots)
        return found if (found and found[0] >= 0) or value.type == value.args[0].type == "i32" else None
    if value.op == "sub" and value.type == "i32":
        a, b = [bounds(v, slots) for v in value.args]
        return (a[0] - b[1], a[1] - b[0]) if a and b else None
    if value.op == "function" and value.attr[0] == "wrap_i":
        found = bounds(value.args[0], slots)
        half = 1 << (int(value.attr[1][:-1]) - 1)
        return found if found and -half <= found[0] and found[1] < half else None
    return None


def is_wrapped(value):
    """Whether a Value that wraps integers to fewer bits leaves them as they are."""
    return value.attr[0] == "wrap_i" and bounds(value) is not None


def _quotient(e, x, scale):
    f = e.f
    divisor = _float32(float(scale.attr))
    parts = _reciprocal(divisor)
    if parts is not None:
        whole = f.let(e.vector(x))
        rest = op("f32x4.mul", whole, f32x4(parts[1]))
        if not parts[1]:
            return op("f32x4.mul", whole, f32x4(parts[0]))
        return op("f32x4.relaxed_madd", whole, f32x4(parts[0]), rest)
    by, times = f32x4(divisor), f32x4(1 / divisor)
    bounded = e.vector(x)
    if _reach(x, e.slots) > divisor * _LARGEST / 2:
        bounded = f.let(op("f32x4.pmin", bounded, f32x4(divisor * _LARGEST)))  # NaN is kept; -inf becomes NaN, too
    first = f.let(op("f32x4.mul", bounded, times))
    return op("f32x4.relaxed_madd", op("f32x4.relaxed_nmadd", first, by, bounded), times, first)


def _float32(number):
    return struct.unpack("<f", f32_bytes(number))[0]


def _reciprocal(divisor):
    """(high, low), whose sum is the reciprocal of a float32 of at most _FEW_BITS bits to 46 bits; else None. low is not
    negative, so that infinite numbers stay what they are."""
    word = struct.unpack("<I", f32_bytes(divisor))[0]
    if word & ((1 << (24 - _FEW_BITS)) - 1):
        return None
    exact = 1 / divisor
    high = _float32(exact)
    if high > exact:
        high = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", f32_bytes(high))[0] - 1))[0]
    return high, _float32(exact - high)


def _reach(value, slots):
    """About the largest magnitude of a Value; infinite where `_interval` does not know it."""
    found = _interval(value, slots)
    return _INFINITE if found is None else max(abs(found[0]), abs(found[1]))


def _interval(value, slots, depth=0):
    """The (least, largest) number that a Value may be as float32, where both follow from levels and known numbers; else
    None. slots: those that it loads from."""
    if value.op == "const" and value.type == "f32" and _known(value):
        number = float(value.attr)
        return _widened(number, number) if abs(number) < _INFINITE else None
    if value.op == "cast" and value.type == "f32" and value.args[0].type in ("i32", "u32"):
        found = bounds(value.args[0], slots)
        return None if found is None else _widened(*found)
    if value.type != "f32" or value.op not in _BOUNDED or depth == _DEEPEST:
        return None
    a, b = [_interval(v, slots, depth + 1) for v in value.args[-2:]]
    found = None if a is None or b is None else _combined(value.op, a, b)
    return _widened(*found) if found and -_FINITE < found[0] and found[1] < _FINITE else None


def _widened(low, high):
    """An interval that holds its numbers after one rounding, too: large numbers between add to those that come out."""
    return low - _UNIT * abs(low), high + _UNIT * abs(high)


def _combined(name, a, b):
    """The interval of an operation on numbers of two, before it is rounded."""
    if name in ("mul", "div"):
        if name == "div" and b[0] <= 0 <= b[1]:
            return None
        corners = [x * y if name == "mul" else x / y for x in a for y in b]
        return min(corners), max(corners)
    if name == "add":
        return a[0] + b[0], a[1] + b[1]
    if name == "sub":
        return a[0] - b[1], a[1] - b[0]
    if name == "where":
        return min(a[0], b[0]), max(a[1], b[1])
    choose = max if name == "maximum" else min
    return choose(a[0], b[0]), choose(a[1], b[1])


def _divides_well(scale):
    return _known(scale) and _SCALES[0] < float(scale.attr) < _SCALES[1]


def _known(value):
    return value.op == "const" and not is_open(value.attr)


def bare(value):
    """A Value without the casts and wrapping that leave integers within 8 bits, or the difference of two, unchanged."""
    while (value.op == "cast" and value.type == "i32") or (value.op == "function" and value.attr == ("wrap_i", "16u")):
        if value.args[0].type not in ("i32", "u32"):
            break
        value = value.args[0]
    return value


def offset_load(value):
    """(the Value that is loaded, the number that is subtracted from it) of a Value that is such a difference, but for
    casts and wrapping as in `bare`; (the Value, 0) for others."""
    found, number = bare(value), 0
    if found.op == "sub" and found.args[1].op == "const" and not is_open(found.args[1].attr):
        found, number = bare(found.args[0]), int(found.args[1].attr)
    return (found, number) if found.op == "load" and found.type in ("i32", "u32") else (value, 0)
