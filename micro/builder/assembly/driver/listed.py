"""An output's bytes to float32 numbers: `get`, of which emit/outputs.py makes a list."""

from __future__ import annotations

import numpy as np

from ...program import Port
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7
from .numbers import Numbers, negate

FIELDS = Frame(("x", "y", "count", "zero", "mantissa", "exponent"))
"""x: "i", the address of the numbers in words; y: where the bytes are, in A; zero: the zero point; mantissa, exponent:
of the step, the exponent 7 above itself."""

CARRIED = 8
"""Bits by which the product of a mantissa of 24 bits and the distance of a byte from zero is longer at most."""


def fields(port: Port) -> dict[str, int | str]:
    """The fields of an output."""
    bits = int(np.float32(port.scale).view(np.uint32))
    step = {"mantissa": bits & 0x7FFFFF | 0x800000, "exponent": (bits >> 23) + CARRIED - 1}
    return {"x": "i", "y": port.place, "count": port.size, "zero": port.zero, **step}


def listed(a: Numbers) -> Numbers:
    """The kernel. V2: a number in steps; V3: its exponent; V5: its bits. The product is rounded half to even."""
    f = FIELDS
    a.enter(f, {"y": "A"})
    a.get(V0, f["y"])
    a.get(V1, f["x"])
    a.left(V1, 2)
    a.get(V6, f["mantissa"])
    a.label("next")
    a.byte(V2, V0)
    a.step(V0, 1)
    a.get(V3, f["zero"])
    a.minus(V2, V3)
    a.copy(V5, V2)
    a.go_if_zero("eq", V2, "store")
    a.copy(V4, V2)
    a.go_if_zero("ge", V2, "positive")
    negate(a, V4, V5)
    a.label("positive")
    a.times(V4, V6)
    a.get(V3, f["exponent"])
    a.label("shift")
    a.go_if_zero("lt", V4, "shifted")
    a.left(V4, 1)
    a.step(V3, -1)
    a.go("shift")
    a.label("shifted")
    a.copy(V5, V4)
    a.right_plain(V5, CARRIED)
    a.low_byte(V4)
    a.number(V7, 1)
    a.bitwise_and(V7, V5)
    a.plus(V4, V7)
    a.step(V4, (1 << CARRIED >> 1) - 1)
    a.right_plain(V4, CARRIED)
    a.plus(V5, V4)
    a.left(V3, 23)
    a.plus(V5, V3)
    a.right_plain(V2, 31)
    a.left(V2, 31)
    a.plus(V5, V2)
    a.label("store")
    a.store_word(V5, V1)
    a.step(V1, 4)
    a.count_down(f["count"], "next", far=True)
    a.leave(f)
    return a
