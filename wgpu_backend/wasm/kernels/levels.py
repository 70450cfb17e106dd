"""What quantization writes, in vectors of more than four numbers: quotients, rounded and saturated to 8 or 16 bits.

A quotient by a known scale is a product with its reciprocal and one correction (Markstein 1990, "Computation of
elementary functions on the IBM RISC System/6000 processor"), in a third of the time of a division. It is the quotient
as rounded to float32 wherever the level does not saturate.
"""

import struct

from emberlet.sizes.size import is_open

from ...record.ranges import narrow_range
from ..assembler import f32_bytes, f32x4, op

_LARGEST = 1 << 20  # of a quotient: larger ones become this, and are to saturate
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
    found = clamped(value.args[0])
    if found is None or bounds(value) is None:
        return None
    y, low, high = found
    zero = None
    if y.op == "add" and _known(y.args[1]):
        y, zero = y.args
    quotient = y.args[0] if y.op == "round" else None
    saturates = high - (float(zero.attr) if zero is not None else 0.0) <= _LARGEST
    if quotient is None or quotient.op != "div" or not saturates or not _divides_well(quotient.args[1]):
        return op("v128.whole", e.vector(value.args[0]))
    out = op("f32x4.nearest", _quotient(e, *quotient.args))
    if zero is not None:
        out = op("f32x4.add", out, e.vector(zero))
    out = op("f32x4.pmin", op("f32x4.pmax", f32x4(low), out), f32x4(high))
    return op("v128.whole", out)


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
