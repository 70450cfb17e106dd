"""Functions of one number on words, and changes of their grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...quantization.reference import Bytes, Ints
from ...quantization.sixteen import MOST, DifferenceRequant, to_bytes, to_words
from ..layer import Array, Layer, View
from ..nest import Axis, nest
from ..words import element_at, store_element, word_at
from ..writer import TABLE, Writer, X, Y
from .arithmetic import finish


@dataclass(frozen=True)
class Rescale16(Layer):
    """A tensor moved to another grid and clamped. shape: in elements; wide: whether input and output have 16 bits."""

    shape: tuple[int, ...]
    wide: tuple[bool, bool]
    how: DifferenceRequant

    takes_borders = True

    @property
    def in_place(self) -> bool:
        return self.wide == (True, True)

    def reference(self, *inputs: Bytes) -> Bytes:
        y = self.how.apply([to_words(inputs[0]) if self.wide[0] else inputs[0].astype(np.int64)])
        return to_bytes(y) if self.wide[1] else y.astype(np.uint8)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", Y), self.places())

        def element(source: str) -> None:
            finish(w, self.how.lines([source]), self.how)

        _each(w, inputs[0], output, self.wide, element)
        return w


def _each(w: Writer, x: View, y: View, wide: tuple[bool, bool], element: Callable[[str], None]) -> None:
    """Write a loop over the input. element: writes code that sets `s` from an element, given as an expression; `s` is
    then stored."""
    w.go_all((X, w.place("i0", x.origin)), (Y, w.place("o", y.origin)))
    own, to = (2 if one else 1 for one in wide)

    def body(at: tuple[int, ...]) -> None:
        element(element_at(w, X, at[0], own))
        store_element(w, Y, at[1], to)

    axes = [Axis(x.shape[0], (x.pitch, y.pitch)), Axis(x.row // own, (own, to))]
    nest(w, axes, (X, Y), body, 2)


@dataclass(frozen=True)
class PiecewiseLinear16(Layer):
    """A function of one number by linear interpolation between knots. shape: in elements; knots: (count, 2) words, the
    arguments and the function's values; the first argument is 0, the last one 65535."""

    shape: tuple[int, ...]
    knots: Ints

    takes_borders = True
    in_place = True

    @cached_property
    def values(self) -> Ints:
        """The function of every word."""
        x = np.arange(MOST + 1)
        k = np.maximum(np.searchsorted(self.knots[:, 0], x) - 1, 0)
        return on_line(self.knots[k], self.knots[k + 1], x)

    def reference(self, *inputs: Bytes) -> Bytes:
        return to_bytes(self.values[to_words(inputs[0])])

    @property
    def half(self) -> int:
        """The first step of the search for a knot."""
        return 1 << (len(self.knots) - 1).bit_length() >> 1

    def constants(self) -> tuple[Array, list[int]]:
        # The last knot is repeated, so that the search stays in the table.
        more = np.repeat(self.knots[-1:], 2 * self.half + 1 - len(self.knots), 0)
        return to_bytes(np.concatenate([self.knots, more]).reshape(-1)), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, TABLE, Y), self.places())

        def element(source: str) -> None:
            w.line(f"u = {source}")
            w.go(TABLE, w.place("wo"))
            w.line(f"k = {4 * self.half}")
            with w.block("while k > 2"):
                with w.block(f"if u > ({w.load(TABLE, 'k')} | {w.load(TABLE, 'k + 1')} << 8)"):
                    w.move(TABLE, "k")
                w.line("k = k >> 1")
            w.line(f"u = u - ({word_at(w, TABLE)})")
            w.line(f"d = ({word_at(w, TABLE, 4)}) - ({word_at(w, TABLE)})")
            w.line(f"s = {word_at(w, TABLE, 2)}")
            w.line(f"s = s + ((({word_at(w, TABLE, 6)}) - s) * u + (d >> 1)) // d")

        _each(w, inputs[0], output, (True, True), element)
        return w


WIDEST = 1 << 13
"""The most words between two knots, so that the product of both differences stays below 2**30."""


def on_line(first: Ints, second: Ints, x: Ints) -> Ints:
    """The values at x of the lines between two knots, or between the two knots of each row."""
    wide = second[..., 0] - first[..., 0]
    rise = second[..., 1] - first[..., 1]
    return np.asarray(first[..., 1] + (rise * (x - first[..., 0]) + (wide >> 1)) // wide, np.int64)


def knots_of(values: Ints, within: int = 1) -> Ints:
    """Few knots whose lines differ from a function's values by at most `within` at every word."""
    found, x = [(0, int(values[0]))], 0
    while x < MOST:
        step, first = 1, np.array(found[-1])
        # The farthest knot, found with steps that double and then halve.
        reach = min(WIDEST, MOST - x)
        good = 1
        while step <= reach and _fits(values, first, x + step, within):
            good, step = step, 2 * step
        low, high = good, min(step, reach + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _fits(values, first, x + middle, within) else (low, middle)
        x += low
        found.append((x, int(values[x])))
    return np.array(found, np.int64)


def _fits(values: Ints, first: Ints, x: int, within: int) -> bool:
    places = np.arange(int(first[0]), x + 1)
    line = on_line(first, np.array([x, values[x]]), places)
    return bool(np.abs(line - values[first[0] : x + 1]).max() <= within)
