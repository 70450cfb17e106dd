"""Normalization of rows of words.

The root of the squares' sum has 27 bits, found bit by bit and by one division, and its reciprocal 18 bits. An element's
distance from the mean is taken in as many bits as 23 hold, times that; the product, below 2**30, goes to the output's
grid with a multiplier and a shift of its own for each channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from emberlet.errors import UnsupportedError

from ...quantization.reference import Ints
from ...quantization.sixteen import ADVICE, MOST, SumRequant, sum_requant
from ..layer import Array
from ..normalize import GREATEST, SPARE_BITS, NormalizeRows, emit_root, root_of
from ..words import word_at
from ..writer import Writer, X
from .arithmetic import finish
from .long import long_sum

PIECE = 12
"""Bits of the pieces in which a distance is multiplied."""

RECIPROCAL = 43
"""Bits of the dividend whose divisor is a root, in steps of 2**-11."""

LENGTH = 1 << 13
"""The most elements of a row."""

LIFT = 1 << 28
"""What is added to a word of T that may be negative."""


@dataclass(frozen=True)
class Normalize16(NormalizeRows):
    """On words."""

    width: ClassVar[int] = 2
    words: ClassVar[int] = 3

    def check(self) -> None:
        """Raises UnsupportedError if a row is too long, or epsilon or a factor does not fit."""
        if self.length > LENGTH:
            raise UnsupportedError(
                f"{self.name}: a normalization of {self.length} values of 16 bits; at most {LENGTH} are supported; "
                "build the model with --float"
            )
        if self.epsilon * self.length / self.scale**2 > GREATEST:
            raise UnsupportedError(
                f"{self.name}: epsilon is far above the squares of such small numbers (in steps of {self.scale:.3g}); "
                f"{ADVICE}"
            )
        self.requant  # noqa: B018

    @cached_property
    def requant(self) -> SumRequant:
        """Rescales products of distances and reciprocals to steps of the output, by the factors' magnitudes."""
        unit = self.length**0.5 * 2.0 ** -(RECIPROCAL - 11 - PIECE + SPARE_BITS)
        ratio = np.abs(self.factors.astype(np.float64).reshape(-1)) * unit / self.scale_out
        return sum_requant(ratio, 2.0**29, 0, what=self.name)

    @cached_property
    def ends(self) -> tuple[Ints, Ints, Ints]:
        """Signed multipliers; what is added before the last shift; what is added after it."""
        sign = np.where(self.factors.reshape(-1) < 0, -1, 1)
        shifts = self.shifts.astype(np.float64).reshape(-1) / self.scale_out + self.zero_out + 0.5
        whole = np.floor(np.clip(shifts, -(1 << 20), 1 << 20))
        half = np.floor((np.clip(shifts, -(1 << 20), 1 << 20) - whole) * 2.0**self.rest)
        return sign * np.array(self.requant.multipliers), half.astype(np.int64), whole.astype(np.int64)

    @property
    def rest(self) -> int:
        return self.requant.last

    def reciprocal(self, squares: int) -> int:
        root = root_of(squares)
        return (1 << RECIPROCAL) // ((root << 11) + ((squares - root * root) << 10) // root)

    def output_row(self, far: Ints, r: int, row: int) -> Ints:
        factors, halves, wholes = (self.spread(v)[row] for v in self.ends)
        z = (far * r >> PIECE) << self.requant.left
        y = ((z * factors >> self.requant.shift - self.rest) + halves >> self.rest) + wholes
        return np.clip(y, 0, MOST)

    def constants(self) -> tuple[Array, list[int]]:
        factors, halves, wholes = self.ends
        rows = np.stack([factors + LIFT, halves, wholes + LIFT], 1)
        return np.empty(0, np.uint8), [int(v) for v in rows.reshape(-1)]

    def emit_squares(self, w: Writer) -> None:
        def add() -> None:
            w.line(f"d = ({word_at(w, X)}) - m")
            w.line("s = (d & 255) * d + s")
            w.line("h = (d >> 8) * d + h")
            w.move(X, 2)

        long_sum(w, self.length, add, most=1)
        w.line("s = h << 8 | s")

    def emit_reciprocal(self, w: Writer) -> None:
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

    def emit_element(self, w: Writer) -> None:
        w.line(f"s = (d >> {PIECE}) * r + ((d & {(1 << PIECE) - 1}) * r >> {PIECE})")
        w.line("h = 0")
        factor = f"{w.word('q')} - {LIFT}"
        finish(w, self.requant.lines(factor, half=w.word("q", 1), zero=f"{w.word('q', 2)} - {LIFT}"), self.requant)
