"""Softmax and log-softmax over the last axis.

In int8 a table of 256 15-bit numbers has the exponential of each distance from the largest input. Softmax's output is
in steps of one over an integer, 1/256 unless the model says otherwise. The logarithm of the sum is looked up in a table
of 256 mantissas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from emberlet.errors import UnsupportedError

from ..quantization.reference import LIMIT, Bytes
from .layer import Array, Layer, View, emit_clamp, emit_extreme
from .window import walk
from .writer import TABLE, Writer, X, Y

ONE = (1 << 15) - 1
"""exp(0) in the table."""

LOG_SHIFT = 12
"""Log-softmax is computed in units of 2**-12 steps of its output."""


def takes_scale(scale: float) -> bool:
    """Whether softmax's output can be in steps of `scale`."""
    steps = round(1 / scale)
    return abs(1 / scale - steps) <= 0.004 / scale and steps * ONE * 2 < LIMIT


@dataclass(frozen=True)
class Softmax(Layer):
    """Rows of `length` bytes. scale: of the input; scale_out, zero_out: of the output."""

    rows: int
    length: int
    scale: float
    log: bool = False
    scale_out: float = 1 / 256
    zero_out: int = 0

    @cached_property
    def exponentials(self) -> Array:
        """exp(-d * scale) for d = 0…255."""
        return np.rint(np.exp(-self.scale * np.arange(256)) * ONE).astype(np.int64)

    @cached_property
    def logarithms(self) -> Array:
        """log((256 + k) / ONE) in steps, made positive, for k = 0…255."""
        steps = (1 << LOG_SHIFT) / self.scale_out
        return np.rint(np.log((256 + np.arange(256)) / 256) * steps).astype(np.int64)

    @property
    def steps(self) -> int:
        """The steps of softmax's output that make one."""
        return round(1 / self.scale_out)

    @property
    def log_two(self) -> int:
        return round(np.log(2) / self.scale_out * (1 << LOG_SHIFT))

    @property
    def slope(self) -> int:
        """Steps of the output per step of the input, in units of 2**-12."""
        return round(self.scale / self.scale_out * (1 << LOG_SHIFT))

    @property
    def start(self) -> int:
        """log(256 / ONE), the zero point and the rounding."""
        offset = round(np.log(256 / ONE) / self.scale_out * (1 << LOG_SHIFT))
        return (self.zero_out << LOG_SHIFT) + (1 << LOG_SHIFT >> 1) - offset

    def check(self) -> None:
        """Raises UnsupportedError if a row is too long for 32-bit words, or a logarithm's step too fine."""
        if self.length * ONE * 2 >= LIMIT:
            raise UnsupportedError(
                f"{self.name}: softmax over {self.length} values; at most {LIMIT // ONE // 2} are supported"
            )
        if not self.log and not takes_scale(self.scale_out):
            raise UnsupportedError(
                f"{self.name}: a softmax whose output has a scale of {self.scale_out:.6g} is not supported; "
                "use a scale of about 1/256"
            )
        reach = 255 * self.slope + 20 * self.log_two + int(self.logarithms.max()) + abs(self.start)
        if self.log and reach >= LIMIT:
            raise UnsupportedError(
                f"{self.name}: a log-softmax in steps of {self.scale_out:.3g} does not fit 32-bit words"
            )

    def reference(self, *inputs: Bytes) -> Bytes:
        x = inputs[0].reshape(self.rows, self.length).astype(np.int64)
        distance = x.max(1, keepdims=True) - x
        e = self.exponentials[distance]
        total = e.sum(1, keepdims=True)
        if not self.log:
            y = (e * self.steps + (total >> 1)) // total + self.zero_out
            return np.minimum(y, 255).astype(np.uint8).reshape(inputs[0].shape)
        doublings = np.zeros_like(total)
        mantissa = total.copy()
        while np.any(mantissa >= 512):
            big = mantissa >= 512
            doublings[big] += 1
            mantissa[big] >>= 1
        y = self.start - distance * self.slope - doublings * self.log_two - self.logarithms[mantissa - 256]
        return np.clip(y >> LOG_SHIFT, 0, 255).astype(np.uint8).reshape(inputs[0].shape)

    def constants(self) -> tuple[Array, list[int]]:
        """The high bytes of the table, then its low bytes; logarithms are words."""
        self.check()
        high, low = self.exponentials >> 8, self.exponentials & 255
        words = [int(v) for v in self.logarithms] if self.log else []
        return np.concatenate([high, low]).astype(np.uint8), words

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", TABLE), self.places())
        w.go(TABLE, w.place("wo"))
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.go(Y, w.place("o", output.origin))
        with w.times("i", self.rows):
            self._greatest(w)
            self._total(w)
            if self.log:
                self._logarithm(w)
            w.go(X, "a")
            with w.times("j", self.length):
                w.line(f"d = h - {w.load(X)}")
                if self.log:
                    w.line(f"s = t - d * {self.slope} >> {LOG_SHIFT}")
                    emit_clamp(w, 0, 255)
                else:
                    w.line(f"v = {_exponential(w)}")
                    w.line(f"s = (v * {self.steps} + (t >> 1)) // t + {self.zero_out}")
                    with w.block("if s > 255"):
                        w.line("s = 255")
                w.store(Y, "s")
                w.move_all((X, 1), (Y, 1))
            if self.rows > 1:
                w.line(f"a += {self.length}")
        return w

    def _greatest(self, w: Writer) -> None:
        w.go(X, "a")
        w.line("h = 0")

        def take(i: int, k: int) -> None:
            w.line(f"v = {w.load(X, i)}")
            emit_extreme(w, "max", "h")

        walk(w, (), self.length, X, None, take, unroll=8)

    def _total(self, w: Writer) -> None:
        w.go(X, "a")
        w.line("t = 0")

        def take(i: int, k: int) -> None:
            w.line(f"d = h - {w.load(X, i)}")
            w.line(f"t = {_exponential(w)} + t")

        walk(w, (), self.length, X, None, take, unroll=8)

    def _logarithm(self, w: Writer) -> None:
        """Write code that turns the sum `t` into the initial value of the row's outputs."""
        w.line(f"v = {self.start}")
        with w.block("while t >= 512"):
            w.line("t = t >> 1")
            w.line(f"v -= {self.log_two}")
        w.table("q", "to")
        w.line(f"t = v - {w.word('q', 't - 256')}")


def _exponential(w: Writer) -> str:
    return f"({w.load(TABLE, 'd')} << 8) + {w.load(TABLE, 'd + 256')}"


@dataclass(frozen=True)
class SoftmaxFloat(Layer):
    """Rows of `length` floats."""

    rows: int
    length: int
    log: bool = False

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.rows, self.length).astype(np.float64)
        x = x - x.max(1, keepdims=True)
        total = np.exp(x).sum(1, keepdims=True)
        y = x - np.log(total) if self.log else np.exp(x) / total
        return y.astype(np.float32).reshape(inputs[0].shape)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        w.go_all((X, w.place("i0")), (Y, w.place("o")))
        with w.times("i", self.rows):
            w.line(f"h = {w.load(X)}")
            with w.block(f"for k in range(x, x + {self.length})"):
                with w.block("if A[k] > h"):
                    w.line("h = A[k]")
            w.line("t = 0.0")
            with w.block(f"for k in range({self.length})"):
                w.line("v = A[x + k] - h")
                if self.log:
                    w.line("t += exp(v)")
                else:
                    w.line("v = exp(v)")
                    w.line("t += v")
                w.line("A[y + k] = v")
            w.line("t = log(t)" if self.log else "t = 1 / t")
            with w.block(f"for k in range(y, y + {self.length})"):
                w.line(f"A[k] {'-' if self.log else '*'}= t")
            w.move_all((X, self.length), (Y, self.length))
        return w
