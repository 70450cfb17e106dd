"""Softmax and log-softmax on words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from emberlet.errors import UnsupportedError

from ...quantization.reference import LIMIT, Bytes, Ints
from ...quantization.sixteen import MOST, DifferenceRequant, to_bytes, to_words
from ..layer import Array, Layer, View, emit_clamp
from ..words import store_word, word_at
from ..writer import Writer, X, Y, Z
from .arithmetic import finish


@dataclass(frozen=True)
class _Softmax16(Layer):
    """Rows of `length` words. scale: of the input; how: rescales the computed numbers to the output's grid.

    The exponential of a distance from the largest input is the product of two table entries, for its upper and its
    lower byte.
    """

    rows: int
    length: int
    scale: float
    how: DifferenceRequant

    @property
    def bits(self) -> int:
        """Fractional bits of exponentials: as many as the sum of a row leaves room for."""
        return 28 - (self.length - 1).bit_length()

    def check(self) -> None:
        """Raises UnsupportedError if a row is too long for 32-bit words."""
        if self.bits < 18:
            raise UnsupportedError(
                f"{self.name}: softmax over {self.length} values of 16 bits; at most 1,024 are supported; build the "
                "model with --float"
            )

    @cached_property
    def tables(self) -> tuple[Ints, Ints]:
        """exp(-256 * k * scale) in units of 2**-bits, and exp(-k * scale) in units of 2**-28, less than one."""
        k = np.arange(256)
        upper = np.rint(np.exp(-256.0 * self.scale * k) * 2.0**self.bits)
        lower = np.rint(np.exp(-self.scale * k) * (1 << 28))
        return upper.astype(np.int64), np.minimum(lower, (1 << 28) - 1).astype(np.int64)

    def constants(self) -> tuple[Array, list[int]]:
        upper, lower = self.tables
        return np.empty(0, np.uint8), [*map(int, upper), *map(int, lower)]

    def exponentials(self, x: Ints) -> tuple[Ints, Ints]:
        """The distances of rows from their largest elements, and their exponentials in units of 2**-bits."""
        d = x.max(1, keepdims=True) - x
        upper, lower = (table[part] for table, part in zip(self.tables, (d >> 8, d & 255), strict=True))
        return d, _times(upper, lower)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w, n = Writer(dialect, (X, "s", Y), self.places()), self.length
        w.line(f"a = {w.place('i0')}")
        w.go(Y, w.place("o"))
        w.table("q", "to")
        with w.times("i", self.rows):
            w.go(X, "a")
            w.line("t = 0")
            with w.times("k", n):
                w.line(f"s = {word_at(w, X)}")
                with w.block("if s > t"):
                    w.line("t = s")
                w.move(X, 2)
            self.begin(w)
            w.line("c = 0")
            with w.times("k", n):
                w.line(f"s = t - ({word_at(w, X)})")
                w.line("u = s >> 8")
                w.line("v = (s & 255) + 256")
                w.line(f"u = {w.word('q', 'u')}")
                w.line(f"v = {w.word('q', 'v')}")
                for line in TIMES:
                    w.line(line)
                self.keep(w)
                w.line("c = c + s")
                w.move(X, 2)
                self.moved(w)
            self.row(w)
            w.line(f"a += {2 * n}")
        return w

    def begin(self, w: Writer) -> None:
        """Write code that returns to the row's start."""
        w.go(X, "a")

    def keep(self, w: Writer) -> None:
        """Write the code for `s`, an exponential."""

    def moved(self, w: Writer) -> None:
        """The pointers that advance along with the row."""

    def row(self, w: Writer) -> None:
        """Write code for a row of the output; `t` is the largest element, `c` the sum of the exponentials."""
        raise NotImplementedError


@dataclass(frozen=True)
class Softmax16(_Softmax16):
    """how: rescales from units of 2**-16 to the output's grid. The quotient is computed bit by bit."""

    def reference(self, *inputs: Bytes) -> Bytes:
        _, e = self.exponentials(to_words(inputs[0]).reshape(self.rows, self.length))
        y = np.minimum((e << 16) // e.sum(1, keepdims=True), MOST)
        return to_bytes(self.how.apply([y])).reshape(inputs[0].shape)

    @property
    def scratch(self) -> int:
        return 4 * self.length

    def begin(self, w: Writer) -> None:
        w.go_all((X, "a"), (Z, w.place("zo")))

    def keep(self, w: Writer) -> None:
        for byte in range(4):
            w.store(Z, f"s >> {8 * byte} & 255" if byte else "s & 255", byte)

    def moved(self, w: Writer) -> None:
        w.move(Z, 4)

    def row(self, w: Writer) -> None:
        w.go(Z, w.place("zo"))
        with w.times("k", self.length):
            w.line(f"u = {word_at(w, Z)} | {w.load(Z, 2)} << 16 | {w.load(Z, 3)} << 24")
            w.line("s = 0")
            # A single element is the whole sum.
            with w.block("if u >= c"):
                w.line("s = 1")
                w.line("u = u - c")
            w.line("l = 16")
            with w.block("while l"):
                w.line("u = u << 1")
                w.line("s = s << 1")
                with w.block("if u >= c"):
                    w.line("u = u - c")
                    w.line("s = s + 1")
                w.line("l -= 1")
            with w.block(f"if s > {MOST}"):
                w.line(f"s = {MOST}")
            finish(w, self.how.lines(["s"]), self.how)
            store_word(w, Y)
            w.move_all((Z, 4), (Y, 2))


LOG_BITS = 4
"""Fractional bits of a logarithm in steps of the output."""

ONE_BITS = 23
"""Bits of a mantissa: the sum of a row is shifted to 2**23…2**24, whose logarithm is interpolated in a table of 257
entries."""


@dataclass(frozen=True)
class LogSoftmax16(_Softmax16):
    """how: rescales the distance from the largest input to the output's grid; scale_out: of the output."""

    scale_out: float

    @property
    def steps(self) -> float:
        """The number that stands for one in a logarithm."""
        return (1 << LOG_BITS) / self.scale_out

    @property
    def log_two(self) -> int:
        return round(float(np.log(2)) * self.steps)

    @cached_property
    def logarithms(self) -> Ints:
        """log(1 + k / 256), k = 0…256."""
        return np.rint(np.log1p(np.arange(257) / 256) * self.steps).astype(np.int64)

    def check(self) -> None:
        """Raises UnsupportedError if a row is too long or a logarithm's step too fine."""
        super().check()
        # Two words of T, and 18 bits of an interpolation between two of them.
        if 16 * self.log_two >= LIMIT or int(np.diff(self.logarithms).max()) >= 1 << 14:
            raise UnsupportedError(
                f"{self.name}: a log-softmax in steps of {self.scale_out:.3g} does not fit 32-bit words; build the "
                "model with --float"
            )

    def constants(self) -> tuple[Array, list[int]]:
        empty, words = super().constants()
        return empty, [*words, *map(int, self.logarithms)]

    def reference(self, *inputs: Bytes) -> Bytes:
        d, e = self.exponentials(to_words(inputs[0]).reshape(self.rows, self.length))
        total = e.sum(1)
        logs = np.array([self._log(int(c)) for c in total])[:, None]
        own = self.how
        steps = (-d * own.factors[0] + (1 << own.shift - 1) >> own.shift) + own.zero
        return to_bytes(np.clip(steps - logs, own.low, own.high)).reshape(inputs[0].shape)

    def _log(self, c: int) -> int:
        """The logarithm of a row's sum, in steps of the output."""
        doublings = c.bit_length() - 1 - self.bits
        shift = c.bit_length() - 1 - ONE_BITS
        c = c >> shift if shift > 0 else c << -shift
        k, rest = (c >> ONE_BITS - 8) - 256, c & (1 << ONE_BITS - 8) - 1
        first, second = int(self.logarithms[k]), int(self.logarithms[k + 1])
        between = first + ((second - first) * rest >> ONE_BITS - 8)
        return between + doublings * self.log_two + (1 << LOG_BITS - 1) >> LOG_BITS

    def row(self, w: Writer) -> None:
        w.line(f"l = {(ONE_BITS - self.bits) * self.log_two + (1 << LOG_BITS - 1)}")
        with w.block(f"while c >= {1 << ONE_BITS + 1}"):
            w.line("c = c >> 1")
            w.line(f"l = l + {self.log_two}")
        with w.block(f"while c < {1 << ONE_BITS}"):
            w.line("c = c << 1")
            w.line(f"l = l - {self.log_two}")
        w.line(f"k = (c >> {ONE_BITS - 8}) + 256")
        w.line(f"c = c & {(1 << ONE_BITS - 8) - 1}")
        w.line(f"d = {w.word('q', 'k')}")
        w.line("k = k + 1")
        w.line(f"e = {w.word('q', 'k')} - d")
        w.line(f"l = (e * c >> {ONE_BITS - 8}) + d + l >> {LOG_BITS}")
        w.go(X, "a")
        with w.times("k", self.length):
            for line in self.how.lines([f"{word_at(w, X)}) - (t"]):
                w.line(line)
            w.line("s = s - l")
            emit_clamp(w, self.how.low, self.how.high)
            store_word(w, Y)
            w.move_all((X, 2), (Y, 2))


def _times(a: Ints, b: Ints) -> Ints:
    """a * b >> 28 in pieces of 14 bits, as TIMES computes it."""
    mask = (1 << 14) - 1
    a1, a0, b1, b0 = a >> 14, a & mask, b >> 14, b & mask
    return np.asarray(a1 * b1 + ((a0 * b0 >> 14) + a1 * b0 + a0 * b1 >> 14), np.int64)


TIMES = (
    "d = u >> 14",
    "e = v >> 14",
    f"u = u & {(1 << 14) - 1}",
    f"v = v & {(1 << 14) - 1}",
    "s = d * e + ((u * v >> 14) + d * v + u * e >> 14)",
)
