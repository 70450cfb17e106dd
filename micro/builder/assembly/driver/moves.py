"""Copying and filling bytes on the scalar machine.

how: "bytes"; "words", four bytes at once, where the processor loads and stores words at any address; or "aligned",
sixteen bytes at once, which all begin at whole words.
"""

from __future__ import annotations

from collections.abc import Callable

from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7, Scalar

EIGHT = 8
"""Bytes of a turn of the longer loops, of which "aligned" makes two at a time."""

COPY = Frame(("x", "y", "rows", "n8", "rest", "xgap", "ygap"))
"""rows of `8 * n8 + rest` bytes; xgap, ygap: what is added behind a row."""

FILL = Frame(("y", "value", "rows", "n8", "rest", "ygap"))
"""As COPY. value: the byte."""

WORDS = V2, V3, V6, V7
"""What moves at once."""


def _loop(a: Scalar, f: Frame, name: str, body: Callable[[], None]) -> None:
    a.get(V4, f[name])
    a.go_if_zero("eq", V4, f"no {name}")
    a.label(name)
    body()
    a.step(V4, -1)
    a.go_if_not_zero_now(V4, name)
    a.label(f"no {name}")


def _aligned(a: Scalar, f: Frame, spare: int, move: Callable[[int], None]) -> None:
    """move: moves so many words, and the pointers on."""
    a.get(V4, f["n8"])
    a.number(spare, 1)
    a.bitwise_and(spare, V4)
    a.go_if_zero("eq", spare, "even")
    move(2)
    a.label("even")
    a.right_by(V4, V4, 1)
    a.go_if_zero_now(V4, "no n8")
    a.label("n8")
    move(4)
    a.step(V4, -1)
    a.go_if_not_zero_now(V4, "n8")
    a.label("no n8")


def _next_row(a: Scalar, f: Frame) -> None:
    """V5 counts the rows, V0 moves in the input, V1 in the output."""
    for name, pointer in (("xgap", V0), ("ygap", V1)):
        if name in f.fields:
            a.get(V4, f[name])
            a.plus(pointer, V4)
    a.step(V5, -1)
    a.go_if_not_zero_now(V5, "row")
    a.leave(f)


def copy(a: Scalar, how: str) -> Scalar:
    """Copy bytes; neighboring rows may be one."""
    f = COPY
    a.enter(f, {"x": "A", "y": "A"})
    a.get(V0, f["x"])
    a.get(V1, f["y"])
    a.get(V5, f["rows"])
    a.label("row")

    def some(count: int, by_words: bool) -> None:
        for k in range(0, count, 4 if by_words else 1):
            (a.word if by_words else a.byte)(V3, V0, k)
            (a.store_word if by_words else a.store_byte)(V3, V1, k)
        for pointer in (V0, V1):
            a.step(pointer, count)

    if how == "aligned":
        _aligned(a, f, V2, lambda words: a.move_words(V0, V1, WORDS[:words]))
    else:
        _loop(a, f, "n8", lambda: some(EIGHT, how == "words"))
    _loop(a, f, "rest", lambda: some(1, False))
    _next_row(a, f)
    return a


def fill(a: Scalar, how: str) -> Scalar:
    """Fill rows with a byte."""
    f = FILL
    a.enter(f, {"y": "A"})
    a.get(V1, f["y"])
    a.get(V2, f["value"])
    if how != "bytes":
        for bits in (8, 16):
            a.copy(V3, V2)
            a.left(V3, bits)
            a.plus(V2, V3)
    if how == "aligned":
        for other in WORDS[1:]:
            a.copy(other, V2)
    a.get(V5, f["rows"])
    a.label("row")

    def some(count: int, by_words: bool) -> None:
        for k in range(0, count, 4 if by_words else 1):
            (a.store_word if by_words else a.store_byte)(V2, V1, k)
        a.step(V1, count)

    if how == "aligned":
        _aligned(a, f, V0, lambda words: a.put_words(V1, WORDS[:words]))
    else:
        _loop(a, f, "n8", lambda: some(EIGHT, how == "words"))
    _loop(a, f, "rest", lambda: some(1, False))
    _next_row(a, f)
    return a
