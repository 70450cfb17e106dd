"""Normalization of rows: layer, instance, group, root-mean-square and L2 normalization.

In int8 the arithmetic is that of the input's steps: its scale cancels out, but for epsilon. A row's mean is taken to an
eighth of a step; its deviation's square root is an integer of 15 bits, found bit by bit, once a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2

import numpy as np

from ..quantization.reference import Bytes, Ints
from .layer import Array, Layer, View, emit_clamp
from .writer import Pointer, Writer

X = Pointer("x", "A")
Y = Pointer("y", "A")
FACTOR = Pointer("z", "W")

EIGHTH = 3

ROOT = 29
"""Bits of what is divided by the root."""

MOST = 1 << 14
"""Elements of a row: their squares have to fit a word."""


@dataclass(frozen=True)
class _Normalize(Layer):
    """rows of `length` elements; factors, shifts: as many as a row's elements, the same for every row, or, where `each`
    is not 0, so many for each row, one after the other: every one for as long a stretch of the row.

    centered: whether the mean is taken off; epsilon: added to the mean square.
    """

    rows: int
    length: int
    factors: Array
    shifts: Array
    each: int
    centered: bool
    epsilon: float

    @property
    def stretch(self) -> int:
        """Elements with the same factor."""
        return self.length // self.each if self.each else 1

    def spread(self, values: Array) -> Array:
        """Factors or shifts for every element, by rows."""
        return values.reshape(self.rows, self.each).repeat(self.stretch, 1) if self.each else values.reshape(1, -1)


@dataclass(frozen=True)
class Normalize(_Normalize):
    """In int8. scale, zero: of the input; scale_out, zero_out: of the output."""

    scale: float
    zero: int
    scale_out: float
    zero_out: int

    @cached_property
    def drop(self) -> int:
        """Bits that a square loses, so that their sum fits."""
        return max(0, self.length.bit_length() + 22 - 29)

    @property
    def half_drop(self) -> int:
        return (self.drop + 1) // 2 + 1

    @cached_property
    def least(self) -> int:
        """Epsilon in the unit of the squares' sum; at least 1, which no row's root is zero with."""
        unit = 64 * self.length / (self.scale**2 * (1 << self.drop))
        return max(1, min(round(self.epsilon * unit), 1 << 28))

    @cached_property
    def steps(self) -> tuple[int, Ints, Ints]:
        """(shift, factors, shifts) from a row's numbers of 14 bits to the output's steps."""
        unit = (self.length / (1 << self.drop)) ** 0.5 * 2.0 ** (self.half_drop - 14) / self.scale_out
        g = self.factors.astype(np.float64).reshape(-1) * unit
        most = max(float(np.abs(g).max(initial=0)), 2.0**-16)
        shift = max(1, min(20, 13 - int(np.ceil(log2(most)))))
        b = self.shifts.astype(np.float64).reshape(-1) / self.scale_out + self.zero_out
        start = np.clip(np.rint((b + 0.5) * (1 << shift)), -(1 << 28), 1 << 28)
        return shift, np.clip(np.rint(g * (1 << shift)), -(1 << 14), 1 << 14).astype(np.int64), start.astype(np.int64)

    def mean(self, total: Ints) -> Ints:
        """In eighths of a step."""
        return ((total << EIGHTH) + (self.length >> 1)) // self.length

    def reference(self, *inputs: Bytes) -> Bytes:
        x = inputs[0].reshape(self.rows, self.length).astype(np.int64)
        middle = self.mean(x.sum(1, keepdims=True)) if self.centered else np.full((self.rows, 1), self.zero << EIGHTH)
        d = (x << EIGHTH) - middle
        total = (d * d >> self.drop).sum(1) + self.least
        shift, factors, starts = self.steps
        factors, starts = self.spread(factors), self.spread(starts)
        e = np.zeros(self.rows, np.int64)
        while np.any(total < 1 << 28):
            small = total < 1 << 28
            total, e = np.where(small, total << 2, total), np.where(small, e + 1, e)
        root = np.array([root_of(int(t)) for t in total])
        k = (1 << ROOT) // root
        u = ((d << e[:, None]) >> self.half_drop) * k[:, None] >> 15
        y = np.clip((u * factors + starts) >> shift, 0, 255)
        return np.asarray(y.astype(np.uint8)).reshape(inputs[0].shape)

    def constants(self) -> tuple[Array, list[int]]:
        _, factors, starts = self.steps
        words = [v for pair in zip(factors + (1 << 14), starts + (1 << 28), strict=True) for v in map(int, pair)]
        return np.empty(0, np.uint8), words

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", Y), self.places())
        shift = self.steps[0]
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.go(Y, w.place("o", output.origin))
        w.table("q", "to")
        with w.times("i", self.rows):
            if self.centered:
                w.go(X, "a")
                w.line("s = 0")
                with w.times("k", self.length):
                    w.line(f"s = {w.load(X)} + s")
                    w.move(X, 1)
                w.line(f"m = ((s << {EIGHTH}) + {self.length >> 1}) // {self.length}")
            else:
                w.line(f"m = {self.zero << EIGHTH}")
            w.go(X, "a")
            w.line(f"s = {self.least}")
            with w.times("k", self.length):
                w.line(f"d = ({w.load(X)} << {EIGHTH}) - m")
                w.line(f"s = (d * d >> {self.drop}) + s")
                w.move(X, 1)
            w.line("e = 0")
            with w.block(f"while s < {1 << 28}"):
                w.line("s = s << 2")
                w.line("e += 1")
            emit_root(w)
            w.line(f"r = {1 << ROOT} // r")
            w.go(X, "a")
            if not self.each:
                w.table("q", "to")
            with w.times("n", self.each or self.length):
                with w.times("k", self.stretch):
                    w.line(f"d = ({w.load(X)} << {EIGHTH}) - m << e")
                    w.line(f"d = (d >> {self.half_drop}) * r >> 15")
                    w.line(f"s = d * ({w.word('q')} - {1 << 14}) + ({w.word('q', 1)} - {1 << 28}) >> {shift}")
                    emit_clamp(w, 0, 255)
                    w.store(Y, "s")
                    w.move(X, 1)
                    w.move(Y, 1)
                w.move_table("q", 2)
            w.line(f"a += {self.length}")
        return w


def emit_root(w: Writer) -> None:
    """Set `r` to the root of `s`, as `root_of` gives it."""
    w.line("r = 0")
    w.line(f"d = {1 << 14}")
    with w.block("while d"):
        w.line("v = r + d")
        with w.block("if v * v <= s"):
            w.line("r = v")
        w.line("d = d >> 1")


def root_of(t: int) -> int:
    """The greatest integer whose square is at most t, below 2**15."""
    r, bit = 0, 1 << 14
    while bit:
        if (r + bit) ** 2 <= t:
            r += bit
        bit >>= 1
    return r


@dataclass(frozen=True)
class NormalizeFloat(_Normalize):
    """In float32."""

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.rows, self.length).astype(np.float64)
        d = x - x.mean(1, keepdims=True) if self.centered else x
        g, b = (self.spread(v.astype(np.float64)) for v in (self.factors, self.shifts))
        y = d / np.sqrt((d * d).mean(1, keepdims=True) + self.epsilon) * g + b
        return y.astype(np.float32).reshape(inputs[0].shape)

    def constants(self) -> tuple[Array, list[int]]:
        return np.stack([self.factors.reshape(-1), self.shifts.reshape(-1)], 1).astype(np.float32).reshape(-1), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y, FACTOR), self.places())
        w.go(X, w.place("i0", inputs[0].origin))
        w.go(Y, w.place("o", output.origin))
        w.go(FACTOR, w.place("wo"))
        with w.times("i", self.rows):
            w.line("m = 0.0")
            if self.centered:
                with w.block(f"for k in range(x, x + {self.length})"):
                    w.line("m += A[k]")
                w.line(f"m /= {self.length}")
            w.line("s = 0.0")
            with w.block(f"for k in range(x, x + {self.length})"):
                w.line("s += (A[k] - m) ** 2")
            w.line(f"r = 1 / sqrt(s / {self.length} + {self.epsilon!r})")
            if not self.each:
                w.go(FACTOR, w.place("wo"))
            with w.times("n", self.each or self.length):
                w.line(f"g = {w.load(FACTOR)} * r")
                w.line(f"b = {w.load(FACTOR, 1)}")
                w.move(FACTOR, 2)
                with w.times("k", self.stretch):
                    w.line(f"{w.load(Y)} = ({w.load(X)} - m) * g + b")
                    w.move(X, 1)
                    w.move(Y, 1)
        return w
