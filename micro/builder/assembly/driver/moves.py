"""Copying and filling bytes on the scalar machine.

words: four bytes move at once, as the processor loads and stores words at any address, or all begin at whole words.
"""

from __future__ import annotations

from collections.abc import Callable

from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, Scalar

EIGHT = 8
"""Bytes of a turn of the longer loops."""

COPY = Frame(("x", "y", "rows", "n8", "rest", "xgap", "ygap"))
"""rows of `8 * n8 + rest` bytes; xgap, ygap: what is added behind a row."""

FILL = Frame(("y", "value", "rows", "n8", "rest", "ygap"))
"""As COPY. value: the byte."""


def _move_rows(a: Scalar, f: Frame, words: bool, move: Callable[[bool, int], None], *pointers: int) -> None:
    """All rows: V5 counts them, V0 moves in the input, V1 in the output. words: whether the longer loop moves four
    bytes at once; move: (four?, offset)."""
    a.label("row")
    for name, count in (("n8", EIGHT), ("rest", 1)):
        a.get(V4, f[name])
        a.go_if_zero("eq", V4, f"no {name}")
        a.label(name)
        four = words and count == EIGHT
        for k in range(0, count, 4 if four else 1):
            move(four, k)
        for pointer in pointers:
            a.step(pointer, count)
        a.step(V4, -1)
        a.go_if_not_zero_now(V4, name)
        a.label(f"no {name}")
    if "xgap" in f.fields:
        a.get(V4, f["xgap"])
        a.plus(V0, V4)
    a.get(V4, f["ygap"])
    a.plus(V1, V4)
    a.step(V5, -1)
    a.go_if_not_zero_now(V5, "row")
    a.leave(f)


def copy(a: Scalar, words: bool) -> Scalar:
    """Copy bytes; neighboring rows may be one."""
    a.enter(COPY, {"x": "A", "y": "A"})
    a.get(V0, COPY["x"])
    a.get(V1, COPY["y"])
    a.get(V5, COPY["rows"])

    def move(four: bool, k: int) -> None:
        (a.word if four else a.byte)(V3, V0, k)
        (a.store_word if four else a.store_byte)(V3, V1, k)

    _move_rows(a, COPY, words, move, V0, V1)
    return a


def fill(a: Scalar, words: bool) -> Scalar:
    """Fill rows with a byte."""
    a.enter(FILL, {"y": "A"})
    a.get(V1, FILL["y"])
    a.get(V2, FILL["value"])
    if words:
        for bits in (8, 16):
            a.copy(V3, V2)
            a.left(V3, bits)
            a.plus(V2, V3)
    a.get(V5, FILL["rows"])
    _move_rows(a, FILL, words, lambda four, k: (a.store_word if four else a.store_byte)(V2, V1, k), V1)
    return a
