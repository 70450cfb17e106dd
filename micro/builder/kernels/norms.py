"""Reductions of a function of the elements: norms, sums of squares, logarithms of sums, products.

In int8 squares and magnitudes are summed exactly, in steps of the input. A root is an integer of 15 bits, found bit by
bit; a logarithm is taken from a table of 256 mantissas, an exponential from one of 256 distances, as in softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, log2

import numpy as np
from emberlet.errors import UnsupportedError

from ..quantization.reference import LIMIT, Bytes, Ints, Requant, requantize
from .layer import Array, Layer, View, emit_clamp, emit_extreme, emit_requantize
from .nest import each_lane
from .normalize import emit_root, root_of
from .pool import load_words, packed, words_of
from .softmax import LOG_SHIFT, ONE
from .writer import TABLE, Writer, X, Y

OPERATIONS = ("l1", "square", "l2", "logsum", "logsumexp", "prod")


@dataclass(frozen=True)
class _Norm(Layer):
    """Over the middle axis of (outer, length, inner); operation: of OPERATIONS."""

    shape: tuple[int, int, int]
    operation: str

    @property
    def turns(self) -> int:
        outer, length, inner = self.shape
        return outer * length * inner

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", TABLE if self.operation == "logsumexp" else Y), self.places())
        self.begin(w)
        with each_lane(w, self.shape, inputs[0], output):
            self.lane(w, *self.shape[1:])
            w.store(Y, "s")
        return w

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def lane(self, w: Writer, length: int, inner: int) -> None:
        """Set `s` from the elements at `a`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Norm(_Norm):
    """In int8. scale, zero: of the input; scale_out, zero_out: of the output; requant: of "l1" and "square"."""

    scale: float
    zero: int
    scale_out: float
    zero_out: int
    requant: Requant | None = None

    @property
    def most(self) -> int:
        """No sum is greater."""
        reach = max(self.zero, 255 - self.zero)
        return self.shape[1] * {"l1": reach, "logsum": reach, "logsumexp": ONE}.get(self.operation, reach**2)

    def check(self) -> None:
        """Raises UnsupportedError if a sum does not fit a word, or nothing computes the operation."""
        if self.operation == "prod":
            raise UnsupportedError(
                f"{self.name}: a product of all elements has no int8 form; build the model with --float"
            )
        if 2 * self.most >= LIMIT:
            raise UnsupportedError(
                f"{self.name}: a sum of {self.shape[1]} elements may reach {self.most}, and kernels keep below "
                f"{LIMIT // 2}; reduce the tensor in two steps, or build the model with --float"
            )
        if self.operation.startswith("log") and self._reach >= LIMIT:
            raise UnsupportedError(
                f"{self.name}: a logarithm in steps of {self.scale_out:.3g} does not fit 32-bit words; "
                "calibrate with samples that reach the output's true range, or build the model with --float"
            )

    # -- the root -----------------------------------------------------------------------------------------------------

    @cached_property
    def root_factor(self) -> tuple[int, int]:
        """(factor, shift) from the root of a sum of squares to the output's steps."""
        ratio = self.scale / self.scale_out
        shift = max(1, min(20, 13 - int(np.ceil(log2(ratio)))))
        return max(1, round(ratio * (1 << shift))), shift

    # -- the logarithm ------------------------------------------------------------------------------------------------

    @cached_property
    def logarithms(self) -> Ints:
        """log((256 + k) / 256) in 2**-LOG_SHIFT steps of the output: k = 0…255."""
        return np.rint(np.log(1 + np.arange(256) / 256) * self._unit).astype(np.int64)

    @property
    def _unit(self) -> float:
        return (1 << LOG_SHIFT) / self.scale_out

    @property
    def log_two(self) -> int:
        return round(log(2) * self._unit)

    @property
    def start(self) -> int:
        """Zero point, rounding, and the logarithm of the number that 256 represents."""
        number = log(256 / ONE if self.operation == "logsumexp" else 256 * self.scale)
        return (self.zero_out << LOG_SHIFT) + (1 << LOG_SHIFT >> 1) + round(number * self._unit)

    @property
    def slope(self) -> int:
        """Steps of the output for one of the input, in 2**-LOG_SHIFT."""
        return round(self.scale * self._unit)

    @property
    def _reach(self) -> int:
        return 255 * self.slope + 32 * self.log_two + abs(self.start)

    @cached_property
    def exponentials(self) -> Array:
        """exp(-d * scale) for d = 0…255."""
        return np.rint(np.exp(-self.scale * np.arange(256)) * ONE).astype(np.int64)

    # -- NumPy --------------------------------------------------------------------------------------------------------

    def reference(self, *inputs: Bytes) -> Bytes:
        x = inputs[0].reshape(self.shape).astype(np.int64)
        if self.operation == "logsumexp":
            greatest = x.max(1)
            total = self.exponentials[greatest[:, None] - x].sum(1)
            return self._logarithm(total, (greatest - self.zero) * self.slope)
        d = x - self.zero
        if self.operation == "logsum":
            return self._logarithm(np.maximum(d.sum(1), 1), np.zeros(d.sum(1).shape, np.int64))
        total = np.abs(d).sum(1) if self.operation == "l1" else (d * d).sum(1)
        if self.operation == "l2":
            return self._root(total)
        assert self.requant
        return requantize(total, self.requant)

    def _root(self, total: Ints) -> Bytes:
        factor, shift = self.root_factor
        e, t = np.zeros_like(total), np.maximum(total, 1)
        while np.any(t < LIMIT >> 2):
            small = t < LIMIT >> 2
            t, e = np.where(small, t << 2, t), np.where(small, e + 1, e)
        root = np.where(total > 0, np.array([root_of(int(v)) for v in t.flat]).reshape(t.shape), 0)
        y = ((root * factor >> e) + (1 << shift >> 1) >> shift) + self.zero_out
        return np.asarray(np.clip(y, 0, 255).astype(np.uint8))

    def _logarithm(self, total: Ints, more: Ints) -> Bytes:
        t, v = total.copy(), more + self.start
        while np.any(t >= 512):
            big = t >= 512
            t, v = np.where(big, t >> 1, t), np.where(big, v + self.log_two, v)
        while np.any(t < 256):
            small = t < 256
            t, v = np.where(small, t << 1, t), np.where(small, v - self.log_two, v)
        return np.asarray(np.clip(v + self.logarithms[t - 256] >> LOG_SHIFT, 0, 255).astype(np.uint8))

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def constants(self) -> tuple[Array, list[int]]:
        """The exponentials' high bytes, then their low ones; the logarithms or a multiplier are words."""
        self.check()
        none = np.empty(0, np.uint8)
        if self.requant:
            return none, packed(self.requant)
        words = self.logarithms.tolist() if self.operation.startswith("log") else []
        if self.operation != "logsumexp":
            return none, words
        return np.concatenate([self.exponentials >> 8, self.exponentials & 255]).astype(np.uint8), words

    def begin(self, w: Writer) -> None:
        if self.requant or self.operation.startswith("log"):
            w.table("q", "to")
        if self.requant:
            load_words(w, self.requant)
        if self.operation == "logsumexp":
            w.go(TABLE, w.place("wo"))

    def lane(self, w: Writer, length: int, inner: int) -> None:
        w.go(X, "a")
        if self.operation == "logsumexp":
            self._exponentials(w, length, inner)
            self._emit_logarithm(w)
            return
        w.line(f"s = {-self.zero * length if self.operation == 'logsum' else 0}")
        with w.times("k", length):
            if self.operation == "logsum":
                w.line(f"s = {w.load(X)} + s")
            else:
                w.line(f"d = {w.load(X)} - {self.zero}")
                if self.operation == "l1":
                    with w.block("if d < 0"):
                        w.line("d = 0 - d")
                    w.line("s = d + s")
                else:
                    w.line("s = d * d + s")
            w.move(X, inner)
        if self.requant:
            emit_requantize(w, self.requant, words_of(self.requant))
        elif self.operation == "l2":
            self._emit_root(w)
        else:
            with w.block("if s < 1"):
                w.line("s = 1")
            w.line(f"v = {self.start}")
            self._emit_logarithm(w)

    def _exponentials(self, w: Writer, length: int, inner: int) -> None:
        """Set `s` to the sum of exponentials of the distances from the largest element, and `v` to that element in
        steps of the output, plus `start`."""
        w.line("h = 0")
        with w.times("k", length):
            w.line(f"v = {w.load(X)}")
            emit_extreme(w, "max", "h")
            w.move(X, inner)
        w.go(X, "a")
        w.line("s = 0")
        with w.times("k", length):
            w.line(f"d = h - {w.load(X)}")
            w.line(f"s = ({w.load(TABLE, 'd')} << 8) + {w.load(TABLE, 'd + 256')} + s")
            w.move(X, inner)
        w.line(f"v = (h - {self.zero}) * {self.slope} {'+' if self.start >= 0 else '-'} {abs(self.start)}")

    def _emit_logarithm(self, w: Writer) -> None:
        with w.block("while s >= 512"):
            w.line("s = s >> 1")
            w.line(f"v += {self.log_two}")
        with w.block("while s < 256"):
            w.line("s = s << 1")
            w.line(f"v -= {self.log_two}")
        w.line("s -= 256")
        w.line(f"s = {w.word('q', 's')} + v >> {LOG_SHIFT}")
        emit_clamp(w, 0, 255)

    def _emit_root(self, w: Writer) -> None:
        factor, shift = self.root_factor
        w.line("e = 0")
        with w.block("if s"), w.block(f"while s < {LIMIT >> 2}"):
            w.line("s = s << 2")
            w.line("e += 1")
        emit_root(w)
        w.line(f"s = ((r * {factor} >> e) + {1 << shift >> 1} >> {shift}) + {self.zero_out}")
        emit_clamp(w, 0, 255)


@dataclass(frozen=True)
class NormFloat(_Norm):
    """In float32."""

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.shape).astype(np.float64)
        by = {
            "l1": lambda: np.abs(x).sum(1),
            "square": lambda: (x * x).sum(1),
            "l2": lambda: np.sqrt((x * x).sum(1)),
            "logsum": lambda: np.log(x.sum(1)),
            "logsumexp": lambda: x.max(1) + np.log(np.exp(x - x.max(1, keepdims=True)).sum(1)),
            "prod": lambda: x.prod(1),
        }
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(by[self.operation]().astype(np.float32))

    def lane(self, w: Writer, length: int, inner: int) -> None:
        lane = f"range(a, a + {length * inner}, {inner})" if inner > 1 else f"range(a, a + {length})"
        if self.operation == "logsumexp":
            w.line("h = A[a]")
            with w.block(f"for k in {lane}"):
                with w.block("if A[k] > h"):
                    w.line("h = A[k]")
        w.line(f"s = {'1.0' if self.operation == 'prod' else '0.0'}")
        taken = {
            "l1": "s += abs(A[k])",
            "logsum": "s += A[k]",
            "logsumexp": "s += exp(A[k] - h)",
            "prod": "s *= A[k]",
        }
        with w.block(f"for k in {lane}"):
            w.line(taken.get(self.operation, "s += A[k] * A[k]"))
        last = {"l2": "s = sqrt(s)", "logsum": "s = log(s)", "logsumexp": "s = log(s) + h"}.get(self.operation)
        if last:
            w.line(last)
