"""An output's bytes to float32 numbers: `get`, of which emit/outputs.py makes a list."""

from __future__ import annotations

import numpy as np

from ...program import Port
from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V5, V6, V7
from .numbers import Numbers
from .products import CARRIED, product

FIELDS = Frame(("x", "y", "count", "zero", "mantissa", "exponent"))
"""x: "i", the address of the numbers in words; y: where the bytes are, in A; zero: the zero point; mantissa, exponent:
of the step, the exponent 7 above itself."""


def fields(port: Port) -> dict[str, int | str]:
    """The fields of an output."""
    bits = int(np.float32(port.scale).view(np.uint32))
    step = {"mantissa": bits & 0x7FFFFF | 0x800000, "exponent": (bits >> 23) + CARRIED - 1}
    return {"x": "i", "y": port.place, "count": port.size, "zero": port.zero, **step}


def listed(a: Numbers) -> Numbers:
    """The kernel. V2: a number in steps; V5: its bits."""
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
    a.get(V3, f["exponent"])
    product(a, V7)
    a.store_word(V5, V1)
    a.step(V1, 4)
    a.count_down(f["count"], "next", far=True)
    a.leave(f)
    return a
