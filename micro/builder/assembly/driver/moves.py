"""Copying and filling bytes on the scalar machine.

unaligned: the processor loads and stores words at any address, so that four bytes move at once.
"""

from __future__ import annotations

from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, Scalar

EIGHT = 8
"""Bytes of a turn of the longer loops."""

COPY = Frame(("x", "y", "rows", "n8", "rest", "xgap", "ygap"))
"""rows of `8 * n8 + rest` bytes; xgap, ygap: what is added behind a row."""

FILL = Frame(("y", "value", "rows", "n8", "rest", "ygap"))
"""As COPY. value: the byte."""


def _rows(a: Scalar, f: Frame, step: int) -> None:
    """The end of a row: V0 moves in the input, V1 in the output, V5 counts the rows."""
    if "xgap" in f.fields:
        a.get(V4, f["xgap"])
        a.plus(V0, V4)
    a.get(V4, f["ygap"])
    a.plus(V1, V4)
    a.step(V5, step)
    a.go_if_not_zero_now(V5, "row")
    a.leave(f)


def copy(a: Scalar, unaligned: bool) -> Scalar:
    """Copy bytes; neighboring rows may be one."""
    f = COPY
    a.enter(f, {"x": "A", "y": "A"})
    a.get(V0, f["x"])
    a.get(V1, f["y"])
    a.get(V5, f["rows"])
    a.label("row")
    for name, count in (("n8", EIGHT), ("rest", 1)):
        a.get(V4, f[name])
        a.go_if_zero("eq", V4, f"no {name}")
        a.label(name)
        for k in range(0, count, 4 if unaligned else 1):
            if unaligned and count == EIGHT:
                a.word(V3, V0, k)
                a.store_word(V3, V1, k)
            else:
                a.byte(V3, V0, k)
                a.store_byte(V3, V1, k)
        a.step(V0, count)
        a.step(V1, count)
        a.step(V4, -1)
        a.go_if_not_zero_now(V4, name)
        a.label(f"no {name}")
    _rows(a, f, -1)
    return a


def fill(a: Scalar, unaligned: bool) -> Scalar:
    """Fill rows with a byte."""
    f = FILL
    a.enter(f, {"y": "A"})
    a.get(V1, f["y"])
    a.get(V2, f["value"])
    if unaligned:
        for bits in (8, 16):
            a.copy(V3, V2)
            a.left(V3, bits)
            a.plus(V2, V3)
    a.get(V5, f["rows"])
    a.label("row")
    for name, count in (("n8", EIGHT), ("rest", 1)):
        a.get(V4, f[name])
        a.go_if_zero("eq", V4, f"no {name}")
        a.label(name)
        for k in range(0, count, 4 if unaligned else 1):
            if unaligned and count == EIGHT:
                a.store_word(V2, V1, k)
            else:
                a.store_byte(V2, V1, k)
        a.step(V1, count)
        a.step(V4, -1)
        a.go_if_not_zero_now(V4, name)
        a.label(f"no {name}")
    _rows(a, f, -1)
    return a
