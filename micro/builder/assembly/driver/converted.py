"""The numbers of a list or an array of floats to the bytes of an input, in the function `predict` itself.

numbers.py has the whole arithmetic, which takes two to four times as many instructions. Here, only what is certain is
converted: numbers that are not close to halfway between two steps. Whatever else there is, one such number or one that
is not finite, an integer, another length or type, ends at "refused", where the driver gets all numbers.
"""

from __future__ import annotations

import struct

from ...emit.inputs import BIAS, RECIPROCAL, SLACK, grid_table
from ...program import Port
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7
from .calls import Calls, CallsVfp, place
from .numbers import FIELDS, negate, next_float

NEAR = 0.499
"""How far from an integer a quotient of float32 arithmetic may be. Up to 512 its error is below 2**-13, with that of
the reciprocal; beyond, both it and the exact one are above a byte."""

NEAREST, FARTHEST = 20, 29
"""By how many bits a product may be shifted: numbers.py's `28 - k`. By more, it is zero."""


def is_converted(port: Port) -> bool:
    """Whether all numbers of an input have one step, whose reciprocal is far from the ends of float32."""
    return port.columns is None and port.cuts is None and port.width == 1 and 1e-30 < port.scale < 1e30


def told(port: Port, vfp: bool) -> dict[str, int]:
    """The words of calls.CONSTANTS. "offset": the zero point, in VFP as a float; "reach": in VFP the reciprocal of the
    step as a float, else what an exponent is subtracted from to get the shift; "tie": in VFP NEAR; "carried": what is
    added to a product beside the part of the mantissa whose highest bit is missing."""
    zero, *_, field = grid_table(port)
    if vfp:
        step = 1.0 if port.integer is not None else port.scale
        offset, reach, tie = struct.unpack("<3I", struct.pack("<3f", zero, 1 / step, NEAR))
        return {"size": port.size, "offset": offset, "reach": reach, "tie": tie}
    reciprocal = field & (1 << RECIPROCAL) - 1
    return {
        "size": port.size,
        "offset": zero,
        "reach": 28 + (field >> RECIPROCAL) - BIAS,
        "reciprocal": reciprocal,
        "carried": (reciprocal << 11) + SLACK,
        "tie": 2 * SLACK,
        "sign": 1 << 31,
    }


def converted(a: Calls) -> None:
    """V1: the arguments. V0: where the numbers are; V1: where the bytes go."""
    f = FIELDS
    a.word(V2, V1)
    a.left_from(V3, V2, 30)
    a.go_if_not_zero_now(V3, "refused", far=True)
    a.word(V3, V2)
    a.told(V4, "list")
    a.go_if("eq", V3, V4, "list")
    a.told(V4, "array")
    a.go_if("ne", V3, V4, "refused", far=True)
    a.byte(V4, V2, 4)
    a.number(V5, ord("f"))
    a.go_if("ne", V4, V5, "refused", far=True)
    a.number(V4, 0)
    a.go("counted")
    a.label("list")
    a.number(V4, 1)
    a.told(V5, "float")
    a.put(V5, f["float"])
    a.label("counted")
    a.put(V4, f["way"])
    a.word(V4, V2, 8)
    a.told(V5, "size")
    a.go_if("ne", V4, V5, "refused", far=True)
    a.put(V4, f["count"])
    a.word(V0, V2, 12)
    a.told(V1, "input")
    if isinstance(a, CallsVfp):
        _by_floats(a)
    else:
        _by_integers(a)


def _by_floats(a: CallsVfp) -> None:
    a.vldr(1, V7, place("reach"))
    a.vldr(3, V7, place("tie"))
    a.vldr(4, V7, place("offset"))
    a.label("next")
    next_float(a, V2)
    a.vmov_to(0, V2)
    a.vmul(0, 0, 1)
    a.vcvtr_to_int(2, 0)
    a.vcvt_from_int(2, 2)
    a.vsub(0, 0, 2)
    a.vabs(0, 0)
    a.vcmp(0, 3)
    a.vmrs()
    a.b_if("mi", "certain")
    a.b("refused")
    a.label("certain")
    a.vadd(2, 2, 4)
    a.vcvtr_to_int(2, 2)
    a.vmov_from(V2, 2)
    a.usat(V2, 8, V2)
    a.strb_after(V2, V1, 1)
    a.count_down(FIELDS["count"], "next", far=True)


def _by_integers(a: Calls) -> None:
    """V3: a number's bits; V5: the shift; V4: the product, then the byte."""
    f = FIELDS
    a.label("next")
    next_float(a, V3)
    a.left_from(V4, V3, 1)
    a.right_plain(V4, 24)
    a.told(V5, "reach")
    a.minus(V5, V4)
    a.number(V4, FARTHEST)
    a.go_if("lt", V4, V5, "zero", far=True)
    a.number(V4, NEAREST)
    a.go_if("lt", V5, V4, "refused", far=True)
    a.told(V2, "reciprocal")
    a.left_from(V4, V3, 9)
    a.right_plain(V4, 21)
    a.times(V4, V2)
    a.left_from(V6, V3, 20)
    a.right_plain(V6, 20)
    a.times(V6, V2)
    a.right_plain(V6, 12)
    a.plus(V4, V6)
    a.told(V6, "carried")
    a.plus(V4, V6)
    a.put(V3, f["each"])
    a.number(V6, 32)
    a.minus(V6, V5)
    a.told(V2, "tie")
    a.left_by(V2, V6)
    a.told(V3, "sign")
    a.plus(V2, V3)
    a.copy(V3, V4)
    a.left_by(V3, V6)
    a.go_if("lt", V3, V2, "refused", far=True)
    a.step(V5, -1)
    a.right(V4, V5)
    a.step(V4, 1)
    a.right_plain(V4, 1)
    a.get(V3, f["each"])
    a.go_if_zero("ge", V3, "signed")
    negate(a, V4, V3)
    a.label("signed")
    a.told(V3, "offset")
    a.plus(V4, V3)
    a.go_if_zero("lt", V4, "below")
    a.number(V3, 255)
    a.go_if("lt", V3, V4, "above")
    a.label("byte")
    a.store_byte(V4, V1)
    a.step(V1, 1)
    a.count_down(f["count"], "next", far=True)
    a.go("converted")
    a.label("zero")
    a.told(V4, "offset")
    a.go("byte")
    a.label("below")
    a.number(V4, 0)
    a.go("byte")
    a.label("above")
    a.copy(V4, V3)
    a.go("byte")
    a.label("converted")
