"""Normalization of rows: layer, instance, group, root-mean-square and L2 normalization.

In integers, computations are in steps of the input: its scale cancels out, except in epsilon. The sum of the squares
around the mean is kept to 2**-24 of a square step, since that fraction matters if a row's numbers lie within a few
steps of each other. Its root is an integer of 15 bits, found bit by bit, once a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import ClassVar

import numpy as np

from ..quantization.reference import Bytes, Ints
from ..quantization.sixteen import to_bytes, to_words
from .layer import Array, Layer, NameOf, Places, View, emit_clamp
from .nest import start_at
from .words import element_at, number24, store24, store_element, store_word, word_at
from .writer import Pointer, Writer, X, Y, Z

FACTOR = Pointer("z", "W")

FINE = 24
"""Bits of a mean below a step, and of a sum of squares below a square step."""

MASK = (1 << 24) - 1

SMALLEST = 1 << 8
"""Of a sum of squares: a row of equal numbers has nothing but epsilon in it, and a root above zero. One of different
numbers has at least half a square step."""

GREATEST = 1 << 45
"""Of epsilon, in square steps."""

SPARE_BITS = 8
"""Bits by which a distance from the mean is shifted further than the root of the squares' sum, which has 15."""

MIDDLE = 1 << 23
"""What a mean is stored above."""

ROOT = 29
"""Bits of what is divided by the root in int8."""

MOST = 1 << 14
"""Elements of a row in int8: their squares have to fit a word."""


@dataclass(frozen=True)
class _Normalize(Layer):
    """Rows of `length` elements. factors, shifts: one per element, the same for every row; if `each` is not 0, `each`
    of them per row, row after row, and each applies to an equally long part of its row.

    centered: whether the mean is subtracted; epsilon: added to the mean square.
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
class NormalizeRows(_Normalize):
    """In integers. scale, zero: of the input; scale_out, zero_out: of the output.

    Two kernels do one row after the other. The first computes the mean, the sum of squares, its root and the quotient
    by that root; the second one brings the elements to the output's grid.
    """

    scale: float
    zero: int
    scale_out: float
    zero_out: int

    width: ClassVar[int] = 1
    """Bytes of an element."""

    words: ClassVar[int] = 2
    """Of T, for a factor."""

    @property
    def scratch(self) -> int:
        """Results of the first kernel: the mean (two bytes), the bits by which distances are shifted, the quotient by
        the root (three), and the mean's fraction, shifted alike (three)."""
        return 9

    @cached_property
    def least(self) -> int:
        """Epsilon in the unit of the squares' sum."""
        steps = min(self.epsilon * self.length / self.scale**2, GREATEST)
        return max(SMALLEST, round(steps * 2.0**FINE))

    def reference(self, *inputs: Bytes) -> Bytes:
        x = (to_words(inputs[0]) if self.width == 2 else inputs[0].astype(np.int64)).reshape(self.rows, self.length)
        total, y = x.sum(1), np.empty_like(x)
        for row in range(self.rows):
            middle = (int(total[row]) + (self.length >> 1)) // self.length if self.centered else self.zero
            rest = int(total[row]) - middle * self.length if self.centered else 0
            d = x[row] - middle
            squares = (int((d * d).sum()) << FINE) - (rest * rest << FINE) // self.length + self.least
            squares, up = shifted(squares)
            far = (d << up) - ((rest << FINE) // self.length << up >> FINE)
            y[row] = self.output_row(far, self.reciprocal(squares), row if self.each else 0)
        return (to_bytes(y) if self.width == 2 else y.astype(np.uint8)).reshape(inputs[0].shape)

    def reciprocal(self, squares: int) -> int:
        """A number divided by the root of the shifted sum."""
        raise NotImplementedError

    def output_row(self, far: Ints, r: int, row: int) -> Ints:
        """A row of the output. far: the shifted distances from the mean; r: the reciprocal; row: of the factors."""
        raise NotImplementedError

    # -- the kernels --------------------------------------------------------------------------------------------------

    def calls(self, name: NameOf, dialect: str, inputs: Sequence[View], output: View, places: Places) -> list[str]:
        own: dict[str, int | str] = {"zo": places["zo"], "to": places["to"]}
        lines = []
        if self.rows > 1:
            own |= {"i0": "i", "o": "o"} | ({"to": "q"} if self.each else {})
            lines = [f"i = {places['i0']}", f"o = {places['o']}"]
            lines += [f"q = {places['to']}"] if self.each else []
            lines.append(f"for _ in range({self.rows}):")
        else:
            own |= {"i0": places["i0"], "o": places["o"]}
        step = [kernel.call(name(kernel), own) for kernel in (self._first(dialect), self._second(dialect))]
        if self.rows == 1:
            return step
        step += [f"{at} += {self.width * self.length}" for at in "io"]
        step += [f"q += {self.words * self.each}"] if self.each else []
        return [*lines, *("    " + line for line in step)]

    def _first(self, dialect: str) -> Writer:
        w, n = Writer(dialect, (X, "s", Z), ("i0", "zo")), self.length
        w.line(f"m = {self.zero}")
        if self.centered:
            w.go(X, w.place("i0"))
            w.line("s = 0")
            with w.times("k", n):
                w.line(f"s = ({element_at(w, X, 0, self.width)}) + s")
                w.move(X, self.width)
            w.line(f"m = (s + {n >> 1}) // {n}")
            w.line(f"b = s - m * {n}")
        w.go(X, w.place("i0"))
        self.emit_squares(w)
        w.line(f"f = {self.least & MASK}")
        if self.centered:
            w.line(f"h = b * b // {n}")
            w.line("s = s - h")
            _emit_fraction(w, "k", f"b * b - h * {n}", n)
            w.line("f = f - k")
        w.line(f"s = s + (f >> 24) + {self.least >> FINE & MASK}")
        w.line(f"f = f & {MASK}")
        w.line(f"t = t + (s >> 24) + {self.least >> FINE + 24}")
        w.line(f"s = s & {MASK}")
        _emit_shifted(w)
        if self.centered:
            _emit_fraction(w, "b", "b", n)
            with w.block(f"if c > {FINE}"):
                w.line(f"b = b << c - {FINE}")
            with w.block("else"):
                w.line(f"b = b >> {FINE} - c")
        self.emit_reciprocal(w)
        w.go(Z, w.place("zo"))
        w.line("s = m")
        store_word(w, Z)
        w.store(Z, "c", 2)
        w.line("s = r")
        store24(w, Z, 3)
        w.line(f"s = b + {MIDDLE}" if self.centered else f"s = {MIDDLE}")
        store24(w, Z, 6)
        return w

    def _second(self, dialect: str) -> Writer:
        w = Writer(dialect, (X, "s", Y), ("i0", "o", "zo", "to"))
        w.go(X, w.place("zo"))
        w.line(f"m = {word_at(w, X)}")
        w.line(f"c = {w.load(X, 2)}")
        w.line(f"r = {number24(w, X, 3)}")
        w.line(f"b = ({number24(w, X, 6)}) - {MIDDLE}")
        w.go_all((X, w.place("i0")), (Y, w.place("o")))
        w.table("q", "to")
        with w.times("n", self.each or self.length):
            with w.times("k", self.stretch):
                w.line(f"d = (({element_at(w, X, 0, self.width)}) - m << c) - b")
                self.emit_element(w)
                store_element(w, Y, 0, self.width)
                w.move_all((X, self.width), (Y, self.width))
            w.move_table("q", self.words)
        return w

    def emit_squares(self, w: Writer) -> None:
        """Set `t` and `s` to the sum of the elements' square distances from `m`, t * 2**24 + s."""
        raise NotImplementedError

    def emit_reciprocal(self, w: Writer) -> None:
        """Set `r` to the reciprocal of the root of `s`; `b`, `c` and `m` are kept."""
        raise NotImplementedError

    def emit_element(self, w: Writer) -> None:
        """Set `s` to the output's element from `d`, a shifted distance; `q` is at its factor."""
        raise NotImplementedError


def shifted(squares: int) -> tuple[int, int]:
    """A sum of squares, in 2**-FINE, brought to 29 or 30 bits; and the bits by which distances are shifted to suit."""
    up = FINE // 2 + SPARE_BITS
    while squares >= 1 << 30:
        squares, up = squares >> 2, up - 1
    while squares < 1 << 28:
        squares, up = squares << 2, up + 1
    return squares, up


def _emit_shifted(w: Writer) -> None:
    """From t * 2**24 + s and its fraction f: `s` of 29 or 30 bits, and `c`, the bits."""
    w.line(f"c = {SPARE_BITS}")
    with w.block("while t >= 64"):
        w.line("s = s >> 2 | (t & 3) << 22")
        w.line("t = t >> 2")
        w.line("c -= 1")
    w.line("s = t << 24 | s")
    with w.block(f"while s < {1 << 28}"):
        w.line("s = s << 2 | f >> 22")
        w.line(f"f = (f & {MASK >> 2}) << 2")
        w.line("c += 1")


def _emit_fraction(w: Writer, name: str, value: str, n: int) -> None:
    """Set `name` to (value << FINE) // n, of a value between -n and n, in two divisions."""
    w.line(f"h = {value} << {FINE // 2}")
    w.line(f"{name} = h // {n}")
    w.line(f"{name} = ({name} << {FINE // 2}) + (h - {name} * {n} << {FINE // 2}) // {n}")


@dataclass(frozen=True)
class Normalize(NormalizeRows):
    """In int8."""

    @cached_property
    def steps(self) -> tuple[int, Ints, Ints]:
        """(shift, factors, shifts) from a row's numbers of 15 bits to the output's steps."""
        g = self.factors.astype(np.float64).reshape(-1) * self.length**0.5 * 2.0**-15 / self.scale_out
        most = max(float(np.abs(g).max()), 2.0**-16)
        b = self.shifts.astype(np.float64).reshape(-1) / self.scale_out + self.zero_out + 0.5
        # Both have to fit: a factor in 14 bits, the summand in 28.
        fits = min(13 - ceil(log2(most)), 28 - ceil(log2(float(np.abs(b).max(initial=1)))))
        shift = max(1, min(20, fits))
        start = np.clip(np.rint(b * (1 << shift)), -(1 << 28), 1 << 28)
        return shift, np.clip(np.rint(g * (1 << shift)), -(1 << 14), 1 << 14).astype(np.int64), start.astype(np.int64)

    def reciprocal(self, squares: int) -> int:
        return (1 << ROOT) // root_of(squares)

    def output_row(self, far: Ints, r: int, row: int) -> Ints:
        shift, factors, starts = self.steps
        factors, starts = self.spread(factors)[row], self.spread(starts)[row]
        return np.clip(((far >> SPARE_BITS) * r >> 14) * factors + starts >> shift, 0, 255)

    def constants(self) -> tuple[Array, list[int]]:
        _, factors, starts = self.steps
        words = [v for pair in zip(factors + (1 << 14), starts + (1 << 28), strict=True) for v in map(int, pair)]
        return np.empty(0, np.uint8), words

    def emit_squares(self, w: Writer) -> None:
        w.line("s = 0")
        with w.times("k", self.length):
            w.line(f"d = {w.load(X)} - m")
            w.line("s = d * d + s")
            w.move(X, 1)
        w.line("t = s >> 24")
        w.line(f"s = s & {MASK}")

    def emit_reciprocal(self, w: Writer) -> None:
        emit_root(w)
        w.line(f"r = {1 << ROOT} // r")

    def emit_element(self, w: Writer) -> None:
        w.line(f"d = (d >> {SPARE_BITS}) * r >> 14")
        w.line(f"s = d * ({w.word('q')} - {1 << 14}) + ({w.word('q', 1)} - {1 << 28}) >> {self.steps[0]}")
        emit_clamp(w, 0, 255)


def emit_root(w: Writer) -> None:
    """Write code that sets `r` to `root_of` `s`."""
    w.line("r = 0")
    w.line(f"d = {1 << 14}")
    with w.block("while d"):
        w.line("v = r + d")
        with w.block("if v * v <= s"):
            w.line("r = v")
        w.line("d = d >> 1")


def root_of(t: int) -> int:
    """The largest integer below 2**15 whose square is at most t."""
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
        start_at(w, inputs[0], output)
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
                    w.move_all((X, 1), (Y, 1))
        return w
