"""What quantization writes, in vectors: quotients, saturated to 8 or 16 bits and rounded. Adding 1.5 * 2 ** 23 rounds
half to even, and leaves the integer in the lowest bits.

In vectors of more than four numbers, a quotient by a known scale is a product with its reciprocal and one correction
(Markstein 1990, "Computation of elementary functions on the IBM RISC System/6000 processor"), in a third of the time of
a division. It is the quotient as rounded to float32 wherever the level does not saturate.
"""

import struct

from emberlet.sizes.size import is_open

from ...record.ranges import narrow_range
from ..assembler import f32, f32_bytes, f32x4, i32, i32x4, op, select

_LARGEST = 1 << 20  # of a quotient: larger ones become this, and are to saturate
_ROUNDING, _ROUNDING_BITS = 12582912.0, 0x4B400000
_SCALES = (2.0**-60, 2.0**60)  # whose quotients, and what remains of them, are neither subnormal nor infinite


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
    quotient, zero, low, high = found
    out = _quotient(e, *quotient.args) if _by_reciprocal(e, quotient) else e.vector(quotient)
    out = op("f32x4.pmin", op("f32x4.pmax", f32x4(low - zero), out), f32x4(high - zero))
    return op("i32x4.sub", op("f32x4.add", out, f32x4(_ROUNDING)), i32x4(_ROUNDING_BITS - zero))


def level(e, value):
    """`levels` of one number."""
    found = _rounded(value)
    if found is None:
        return None
    f, (quotient, zero, low, high) = e.f, found
    least, most = f32(low - zero), f32(high - zero)
    out = f.let(e.scalar(quotient))
    out = f.let(select(op("f32.gt", out, least), out, least))
    out = select(op("f32.lt", out, most), out, most)
    return op("i32.sub", op("i32.reinterpret_f32", op("f32.add", out, f32(_ROUNDING))), i32(_ROUNDING_BITS - zero))


def operands(e, value, vector):
    """The Values that a Value is computed from, by their vectors or their numbers."""
    found = _rounded(value) if value.op == "function" and value.attr[0] in ("to_i32", "to_u32") else None
    if found is None:
        return value.args
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
    divisor = struct.unpack("<f", f32_bytes(float(scale.attr)))[0]
    by, times = f32x4(divisor), f32x4(1 / divisor)
    bounded = f.let(op("f32x4.pmin", e.vector(x), f32x4(divisor * _LARGEST)))  # NaN is kept; -inf becomes NaN, too
    first = f.let(op("f32x4.mul", bounded, times))
    return op("f32x4.relaxed_madd", op("f32x4.relaxed_nmadd", first, by, bounded), times, first)


def _divides_well(scale):
    return _known(scale) and _SCALES[0] < float(scale.attr) < _SCALES[1]


def _known(value):
    return value.op == "const" and not is_open(value.attr)
