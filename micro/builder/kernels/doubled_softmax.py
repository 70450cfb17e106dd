"""Softmax in TensorFlow Lite's arithmetic, byte for byte: exponentials and a reciprocal in 31-bit fixed point.

Sources: tensorflow/lite/kernels/internal/reference/softmax.h and gemmlowp/fixedpoint/fixedpoint.h. A table has the
exponentials of the 256 distances; three steps of Newton's method for each row compute the reciprocal of their sum. A
31-bit number is kept as a pair, its lowest 14 bits and the rest, so that no product reaches 2**30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
from emberlet.errors import UnsupportedError

from ..quantization.doubled import high_product, quantize_multiplier, shifted
from ..quantization.reference import LIMIT, Bytes, Ints
from .layer import Array, Layer, NameOf, Places, View
from .window import walk
from .writer import Writer, X, Y

BITS = 14
LOW = (1 << BITS) - 1
WORD = (1 << 31) - 1

SUM_BITS = 19
"""The bits of one in the sum of exponentials."""

FRACTION_BITS = 26
"""Fractional bits of a scaled distance."""

FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), exp(-1), … exp(-16), where one is 2**31."""

FIRST, SLOPE = 1515870810, -1010580540
"""48/17 and -32/17, where one is 2**29: the initial guess of Newton's method."""


def exponential(x: Ints) -> Ints:
    """exp of non-positive numbers in units of 2**-26; the result is in units of 2**-31 and less than one."""
    quarter = 1 << FRACTION_BITS - 2
    inside = (x & quarter - 1) - quarter
    # A Taylor series around -1/8.
    v = (inside << 5) + (1 << 28)
    square = high_product(v, v)
    cube, fourth = high_product(square, v), high_product(square, square)
    rest = shifted(high_product(shifted(fourth, 2) + cube, 715827883) + square, 1)
    y = 1895147668 + high_product(1895147668, v + rest)
    left = inside - x
    for k, factor in enumerate(FACTORS):
        y = np.where(left >> FRACTION_BITS - 2 + k & 1, high_product(y, factor), y)
    return np.asarray(np.where(x == 0, WORD, y))


def reciprocal(total: Ints) -> tuple[Ints, Ints]:
    """(a 31-bit reciprocal of total, the number of bits of total)."""
    bits = np.floor(np.log2(total)).astype(np.int64) + 1
    half = total << 31 - bits
    x = FIRST + high_product(half, SLOPE)
    for _ in range(3):
        x = x + (high_product(x, (1 << 29) - high_product(half, x)) << 2)
    return np.minimum(x << 1, WORD), bits


@dataclass(frozen=True)
class DoubledSoftmax(Layer):
    """rows of `length` bytes; scale: of the input. The output is in steps of 1/256 from 0."""

    rows: int
    length: int
    scale: float

    @cached_property
    def exponentials(self) -> Ints:
        """exp(-d * scale) for d = 0…255, where one is 2**31."""
        multiplier, shift = quantize_multiplier(min(self.scale * (1 << FRACTION_BITS), WORD))
        if shift < 0:
            raise UnsupportedError(f"{self.name}: a softmax whose input has a scale of {self.scale:g} is not supported")
        least = floor(31.0 * (1 << FRACTION_BITS) / (1 << shift))
        d = np.minimum(np.arange(256), least)
        e = exponential(high_product(-d << shift, multiplier))
        return np.where(np.arange(256) <= least, e, 0)

    def check(self) -> None:
        """Raises UnsupportedError if a row is too long for 32-bit words."""
        if self.length << SUM_BITS >= LIMIT:
            raise UnsupportedError(
                f"{self.name}: softmax over {self.length} values; at most {(LIMIT >> SUM_BITS) - 1} are supported"
            )

    def reference(self, *inputs: Bytes) -> Bytes:
        x = inputs[0].reshape(self.rows, self.length).astype(np.int64)
        e = self.exponentials[x.max(1, keepdims=True) - x]
        inverse, bits = reciprocal(shifted(e, 12).sum(1, keepdims=True))
        y = shifted(high_product(inverse, e), bits + 3)
        return np.minimum(y, 255).astype(np.uint8).reshape(inputs[0].shape)

    def constants(self) -> tuple[Array, list[int]]:
        """The exponentials without their lowest 14 bits, then those bits."""
        self.check()
        e = self.exponentials
        return np.empty(0, np.uint8), [int(v) for v in (*(e >> BITS), *(e & LOW))]

    @property
    def scratch(self) -> int:
        """Scratch that one kernel leaves for the next: a row's largest byte, the bits of its sum, the reciprocal, the
        sum."""
        return 11

    def calls(self, name: NameOf, dialect: str, inputs: Sequence[View], output: View, places: Places) -> list[str]:
        """A loop over the rows that calls three kernels, because machine code jumps no farther than 2 KB."""
        lines = [
            f"i = {places['i0'] + inputs[0].origin}",
            f"o = {places['o'] + output.origin}",
            f"for _ in range({self.rows}):",
        ]
        for kernel in (self._total(dialect), self._reciprocal(dialect), self._shares(dialect)):
            given: dict[str, int | str] = {"i0": "i", "o": "o", "zo": places["zo"], "to": places["to"]}
            lines.append("    " + kernel.call(name(kernel), given))
        return [*lines, f"    i += {self.length}", f"    o += {self.length}"]

    def _total(self, dialect: str) -> Writer:
        """A kernel that stores the largest byte of a row, the sum of the exponentials, and an initial reciprocal."""
        w = Writer(dialect, (X, "s", Y), ("i0", "zo", "to"))
        w.table("q", "to")
        w.go(X, w.place("i0"))
        w.line("h = 0")

        def greatest(i: int, k: int) -> None:
            w.line(f"d = {w.load(X, i)}")
            with w.block("if d > h"):
                w.line("h = d")

        walk(w, (), self.length, X, None, greatest, unroll=4)
        w.go(X, w.place("i0"))
        w.line("t = 0")

        def add(i: int, k: int) -> None:
            w.line(f"d = h - {w.load(X, i)}")
            w.line(f"t = ({w.word('q', 'd')} << 2) + ({w.word('q', 'd + 256')} + 2048 >> 12) + t")

        walk(w, (), self.length, X, None, add, unroll=4)
        w.go(Y, w.place("zo"))
        w.store(Y, "h")
        w.line(f"k = {SUM_BITS + 1}")
        with w.block("while t >> k"):
            w.line("k += 1")
        _half(w)
        w.line(f"b = {SLOPE >> BITS}")
        w.line(f"c = {SLOPE & LOW}")
        _product(w, "fq", "fl", "b", "c", "eq", "el")
        _normal(w, f"eq + {FIRST >> BITS}", f"el + {FIRST & LOW}")
        w.store(Y, "k", 1)
        _leave(w, "eq", 2, 3)
        _leave(w, "el", 5, 2)
        _leave(w, "t", 7, 4)
        return w

    def _reciprocal(self, dialect: str) -> Writer:
        """A kernel that refines the initial reciprocal of the sum, and stores it."""
        w = Writer(dialect, (X, "s", Y), ("zo",))
        w.go(Y, w.place("zo"))
        w.line(f"k = {w.load(Y, 1)}")
        _take(w, "eq", 2, 3)
        _take(w, "el", 5, 2)
        _take(w, "t", 7, 4)
        _half(w)
        with w.times("n", 3):
            _product(w, "fq", "fl", "eq", "el", "b", "c")
            w.line("c = 0 - c")
            w.line(f"b = {1 << 29 - BITS} - b + (c >> {BITS})")
            w.line(f"c = c & {LOW}")
            _product(w, "eq", "el", "b", "c", "b", "c")
            _normal(w, "eq + (b << 2)", "el + (c << 2)")
        _normal(w, "eq << 1", "el << 1")
        with w.block(f"if eq > {WORD >> BITS}"):
            w.line(f"eq = {WORD >> BITS}")
            w.line(f"el = {LOW}")
        _leave(w, "eq", 2, 3)
        _leave(w, "el", 5, 2)
        return w

    def _shares(self, dialect: str) -> Writer:
        """A kernel that writes a row, each exponential times the reciprocal."""
        w = Writer(dialect, (X, "s", Y), ("i0", "o", "zo", "to"))
        w.table("q", "to")
        w.go(Y, w.place("zo"))
        w.line(f"h = {w.load(Y)}")
        w.line(f"k = {w.load(Y, 1)}")
        _take(w, "eq", 2, 3)
        _take(w, "el", 5, 2)
        w.go_all((X, w.place("i0")), (Y, w.place("o")))
        with w.times("j", self.length):
            w.line(f"d = h - {w.load(X)}")
            w.line(f"b = {w.word('q', 'd')}")
            w.line(f"c = {w.word('q', 'd + 256')}")
            _product(w, "eq", "el", "b", "c", "b", "c")
            w.line("s = b + (1 << k - 12) >> k - 11")
            with w.block("if s > 255"):
                w.line("s = 255")
            w.store(Y, "s")
            w.move_all((X, 1), (Y, 1))
        return w


def _half(w: Writer) -> None:
    """Set `fq`, `fl` to the sum `t`, which has `k` bits, moved up to 31 bits."""
    w.line("fq = t >> k - 17")
    w.line("fl = (t & (1 << k - 17) - 1) << 31 - k")


def _leave(w: Writer, name: str, k: int, count: int) -> None:
    """Store a number in bytes from `k` on, its lowest first."""
    for n in range(count):
        w.store(Y, f"{name} >> {8 * n} & 255", k + n)


def _take(w: Writer, name: str, k: int, count: int) -> None:
    """Load the number that `_leave` stored."""
    w.line(f"{name} = " + " + ".join(f"({w.load(Y, k + n)} << {8 * n})" for n in range(count)))


def _normal(w: Writer, high: str, low: str) -> None:
    """Set the pair `eq`, `el` to a sum."""
    w.line(f"el = {low}")
    w.line(f"eq = ({high}) + (el >> {BITS})")
    w.line(f"el = el & {LOW}")


def _product(w: Writer, aq: str, al: str, bq: str, bl: str, q: str, low: str) -> None:
    """Set a pair to (a * b + 2**30) >> 31 of two others. Locals: g, m, o, p, u, v."""
    w.line(f"g = {aq} & {LOW}")
    w.line(f"o = {aq} >> {BITS}")
    w.line(f"m = {bq} & {LOW}")
    w.line(f"p = {bq} >> {BITS}")
    w.line(f"v = g * {bl} + {al} * m + ({al} * {bl} >> {BITS}) >> {BITS}")
    w.line(f"v = o * {bl} + g * m + {al} * p + v")
    w.line(f"u = o * m + g * p + (o * p << {BITS})")
    w.line("v = (v + 4 >> 3) + ((u & 7) << 11)")
    w.line(f"{q} = (u >> 3) + (v >> {BITS})")
    w.line(f"{low} = v & {LOW}")
