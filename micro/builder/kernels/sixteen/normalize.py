"""Normalization of rows of words: layer, instance, group, root-mean-square and L2 normalization.

The sum of the squares is exact. Its root has 27 bits, found bit by bit and by one division, and its reciprocal 18 bits.
An element's distance from the mean is taken in as many bits as 23 hold, times that; the product, below 2**30, goes to
the output's grid with a multiplier and a shift of its own for each channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from emberlet.errors import UnsupportedError

from ...quantization.reference import Bytes, Ints
from ...quantization.sixteen import MOST, WAYS, Deep, deep, joined, parted
from ..layer import Array, View
from ..normalize import _Normalize, emit_root, root_of
from ..words import store_word, word_at
from ..writer import Writer
from .arithmetic import X, Y, finish
from .long import long_sum

MEAN = 17
"""Bits of the mean below a word's step: what a row of LENGTH elements leaves of 30."""

ROOM = 8
"""Bits by which a distance from the mean is shifted further than the root of the squares' sum, which has 15."""

PIECE = 12
"""Bits of the pieces of a distance that are multiplied apart."""

RECIPROCAL = 43
"""Bits of what is divided by a root, in steps of 2**-11."""

LENGTH = 1 << 13
"""Elements of a row, at most."""

LIFT = 1 << 28
"""What is added to a word of T that may be negative."""


@dataclass(frozen=True)
class Normalize16(_Normalize):
    """scale, zero: of the input; scale_out, zero_out: of the output."""

    scale: float
    zero: int
    scale_out: float
    zero_out: int

    def check(self) -> None:
        """Raises UnsupportedError where a row is too long, or epsilon or a factor do not fit."""
        if self.length > LENGTH:
            raise UnsupportedError(
                f"{self.name}: a normalization of {self.length} values of 16 bits; at most {LENGTH} are supported; "
                "build the model with --float"
            )
        if self.epsilon * self.length / self.scale**2 > 2.0**45:
            raise UnsupportedError(
                f"{self.name}: epsilon is far above the squares of such small numbers (in steps of {self.scale:.3g}); "
                f"{WAYS}"
            )
        self.requant  # noqa: B018

    @cached_property
    def least(self) -> int:
        """Epsilon in the unit of the squares' sum; at least 1, which no row's root is zero with."""
        return max(1, round(self.epsilon * self.length / self.scale**2))

    @cached_property
    def requant(self) -> Deep:
        """From the products of distances and reciprocals to the output's steps, by the factors' magnitudes."""
        unit = self.length**0.5 * 2.0 ** -(RECIPROCAL - 11 - PIECE + ROOM)
        ratio = np.abs(self.factors.astype(np.float64).reshape(-1)) * unit / self.scale_out
        return deep(ratio, 2.0**29, 0, what=self.name)

    @cached_property
    def ends(self) -> tuple[Ints, Ints, Ints]:
        """Multipliers with their signs; what is added before the last shift; what is added behind it."""
        sign = np.where(self.factors.reshape(-1) < 0, -1, 1)
        shifts = self.shifts.astype(np.float64).reshape(-1) / self.scale_out + self.zero_out + 0.5
        whole = np.floor(np.clip(shifts, -(1 << 20), 1 << 20))
        half = np.floor((np.clip(shifts, -(1 << 20), 1 << 20) - whole) * 2.0**self.rest)
        return sign * np.array(self.requant.multipliers), half.astype(np.int64), whole.astype(np.int64)

    @property
    def rest(self) -> int:
        return self.requant.last

    def reference(self, *inputs: Bytes) -> Bytes:
        x = joined(inputs[0].reshape(-1)).reshape(self.rows, self.length)
        total = x.sum(1, keepdims=True)
        middle = (total + (self.length >> 1)) // self.length if self.centered else np.full((self.rows, 1), self.zero)
        d = x - middle
        squares, rest = (d * d).sum(1), np.zeros((self.rows, 1), np.int64)
        if self.centered:
            rest = total - middle * self.length
            squares = squares - rest[:, 0] * rest[:, 0] // self.length
            rest = (rest << MEAN) // self.length
        factors, halves, wholes = (self.spread(v) for v in self.ends)
        y = np.empty_like(x)
        for row in range(self.rows):
            r, up = _reciprocal(int(squares[row]) + self.least)
            half = up >> 1  # in two steps, which 32 bits hold
            far = (d[row] << up) - ((rest[row] << half >> 9) << up - half >> MEAN - 9)
            z = (far * r >> PIECE) << self.requant.left
            f, h, b = (v[row if len(v) > 1 else 0] for v in (factors, halves, wholes))
            y[row] = np.clip(((z * f >> self.requant.shift - self.rest) + h >> self.rest) + b, 0, MOST)
        return parted(y).reshape(inputs[0].shape)

    def constants(self) -> tuple[Array, list[int]]:
        factors, halves, wholes = self.ends
        rows = np.stack([factors + LIFT, halves, wholes + LIFT], 1)
        return np.empty(0, np.uint8), [int(v) for v in rows.reshape(-1)]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w, n = Writer(dialect, (X, "s", Y), self.places()), self.length
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.go(Y, w.place("o", output.origin))
        w.table("q", "to")
        with w.times("i", self.rows):
            w.line(f"m = {self.zero}")
            w.line("b = 0")
            if self.centered:
                w.go(X, "a")
                w.line("s = 0")
                with w.times("k", n):
                    w.line(f"s = ({word_at(w, X)}) + s")
                    w.move(X, 2)
                w.line(f"m = (s + {n >> 1}) // {n}")
                w.line(f"b = s - m * {n}")
            w.go(X, "a")

            def add() -> None:
                w.line(f"d = ({word_at(w, X)}) - m")
                w.line("s = (d & 255) * d + s")
                w.line("h = (d >> 8) * d + h")
                w.move(X, 2)

            long_sum(w, n, add, most=1)
            w.line("s = h << 8 | s")
            if self.centered:
                w.line(f"s = s - b * b // {n}")
                w.line(f"b = (b << {MEAN}) // {n}")
            w.line(f"s = s + {self.least & (1 << 24) - 1}")
            w.line(f"t = t + (s >> 24) + {self.least >> 24}")
            w.line(f"s = s & {(1 << 24) - 1}")
            _emit_reciprocal(w)
            w.line("k = c >> 1")
            w.line(f"b = (b << k >> 9) << c - k >> {MEAN - 9}")
            w.go(X, "a")
            if not self.each:
                w.table("q", "to")
            with w.times("n", self.each or n):
                with w.times("k", self.stretch):
                    self._element(w)
                w.move_table("q", 3)
            w.line(f"a += {2 * n}")
        return w

    def _element(self, w: Writer) -> None:
        w.line(f"d = ({word_at(w, X)}) - m")
        w.line("d = (d << c) - b")
        w.line(f"s = (d >> {PIECE}) * r + ((d & {(1 << PIECE) - 1}) * r >> {PIECE})")
        w.line("h = 0")
        factor = f"{w.word('q')} - {LIFT}"
        finish(w, self.requant.lines(factor, half=w.word("q", 1), zero=f"{w.word('q', 2)} - {LIFT}"), self.requant)
        store_word(w, Y)
        w.move(X, 2)
        w.move(Y, 2)


def _reciprocal(total: int) -> tuple[int, int]:
    """2**RECIPROCAL divided by the root of a sum of squares in steps of 2**-11, after the sum was shifted to 29 or 30
    bits; and by how many bits a distance is shifted to suit that."""
    up = 0
    while total >= 1 << 30:
        total, up = total >> 2, up - 1
    while total < 1 << 28:
        total, up = total << 2, up + 1
    root = root_of(total)
    fine = (root << 11) + ((total - root * root) << 10) // root
    return (1 << RECIPROCAL) // fine, up + ROOM


def _emit_reciprocal(w: Writer) -> None:
    """From t * 2**24 + s: r, the reciprocal, and c, the bits."""
    w.line(f"c = {ROOM}")
    with w.block("while t >= 64"):
        w.line("s = s >> 2 | (t & 3) << 22")
        w.line("t = t >> 2")
        w.line("c -= 1")
    w.line("s = t << 24 | s")
    with w.block(f"while s < {1 << 28}"):
        w.line("s = s << 2")
        w.line("c += 1")
    emit_root(w)
    w.line("d = (r << 11) + (s - r * r << 10) // r")
    # Bit by bit: a quotient of 44 bits by 27.
    w.line("r = 0")
    w.line("s = 1 << 24")
    w.line(f"k = {RECIPROCAL - 24}")
    with w.block("while k"):
        w.line("s = s << 1")
        w.line("r = r << 1")
        with w.block("if s >= d"):
            w.line("s = s - d")
            w.line("r = r + 1")
        w.line("k -= 1")
