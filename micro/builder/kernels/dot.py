"""Dense and convolution layers: a dot product for each output channel at each position of a window.

A dense layer is a window of one position. Channels are the innermost axis, so a window's rows are contiguous runs. The
weights are stored in the same order, and nothing is copied beforehand.

A weight byte w stands for w - 128 (for w - weight_zero if asymmetric). The kernel sums products of unsigned bytes and
subtracts 128 times the window's sum, computed once for all channels. The input's zero point is folded into the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar

import numpy as np

from ..quantization.reference import ZERO, Bytes, Ints, Requant, check_word, folded_bias, requantize, start_bounds
from .layer import Array, View, dense_view, emit_clamp_float, emit_requantize
from .window import UNROLL, Loops, WindowLayer, each_position, walk, window_loops
from .writer import WEIGHTS, Pointer, Writer, X, Y


@dataclass(frozen=True)
class _Dot(WindowLayer):
    """weights: (channels out, kh, kw, channels in / groups); bias: (channels out,)."""

    groups: int
    weights: Array
    bias: Array

    source: ClassVar[Pointer] = X

    @property
    def kind(self) -> str:
        return "dense" if self.window.kernel == (1, 1) and self.positions == 1 else "conv"

    @property
    def macs(self) -> int:
        return self.positions * self.weights.size

    def sums(self, x: Array, fill: int | float, weights: Array) -> Array:
        """The dot products, without bias: (rows, columns, channels out), exact in float64 for integers."""
        patches = self.window.patches(x.reshape(*self.image[:2], -1).astype(np.float64), fill)
        oh, ow, kh, kw, c = patches.shape
        each, n = c // self.groups, len(weights) // self.groups
        out = np.empty((oh, ow, len(weights)))
        for g in range(self.groups):
            part = patches[..., g * each : (g + 1) * each].reshape(oh, ow, kh * kw * each)
            kernel = weights[g * n : (g + 1) * n].reshape(n, -1).astype(np.float64)
            out[..., g * n : (g + 1) * n] = part @ kernel.T
        return out

    def loops(self, x: View) -> tuple[Loops, int]:
        width = self.source.width
        return window_loops(self.window, x.pitch // width, self.image[2] // width, self.weights.shape[3])

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x = inputs[0]
        w = Writer(dialect, (self.source, "s", WEIGHTS), self.places())
        self.begin(w)
        with each_position(w, self.window, self.image, x, output, Y):
            w.line("c = b")
            w.go(WEIGHTS, w.place("wo"))
            self.begin_position(w)
            with w.times("g", self.groups):
                self.begin_window(w, "c", *self.loops(x))
                with w.times("n", len(self.weights) // self.groups):
                    w.go(self.source, "c")
                    self.begin_sum(w)
                    self.walk(w, *self.loops(x))
                    self.finish(w)
                    self.put(w)
                if self.groups > 1:
                    w.line(f"c += {self.source.width * self.weights.shape[3]}")
        return w

    def walk(self, w: Writer, loops: Loops, run: int) -> None:
        """Write code that adds the products of a window to `s`."""
        walk(w, loops, run, X, WEIGHTS, lambda i, k: w.line(_mac(w, i, k)))

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def begin_position(self, w: Writer) -> None:
        """Write the code that runs at each position."""

    def begin_window(self, w: Writer, start: str, loops: Loops, run: int) -> None:
        """Write the code that runs for each group at each position, before its channels."""

    def begin_sum(self, w: Writer) -> None:
        """Write code that sets `s` for one channel."""
        raise NotImplementedError

    def finish(self, w: Writer) -> None:
        """Turn `s` into the output's element."""
        raise NotImplementedError

    def put(self, w: Writer) -> None:
        """Store `s`, and move on."""
        w.store(Y, "s")
        w.move(Y, 1)


class ByteWeights(WindowLayer):
    """weights: uint8 around weight_zero; bias: in steps of the accumulator; zero: the input's zero point."""

    weights: Bytes
    bias: Ints
    zero: int
    weight_zero: int

    @cached_property
    def folded(self) -> Ints:
        """The bias, including the terms of the zero points."""
        return folded_bias(self.weights, self.bias, self.zero, self.weight_zero)

    def total(self, x: Ints) -> Ints:
        """The exact sums with bias: (rows, columns, channels out). x: the input's numbers."""
        sums = self.sums(x - self.zero, 0, self.weights.astype(np.int64) - self.weight_zero)
        return np.asarray(np.rint(sums).astype(np.int64) + self.bias)

    def sums(self, x: Array, fill: int | float, weights: Array) -> Array:
        raise NotImplementedError


class ByteSums(ByteWeights):
    """In int8."""

    requant: Requant

    @cached_property
    def lift(self) -> int:
        """The number added to the folded bias so that no word of T is negative."""
        return max(0, -int(self.folded.min()))

    def reference(self, *inputs: Bytes) -> Bytes:
        return requantize(self.total(inputs[0].astype(np.int64)), self.requant)

    def words(self, *bounds: int) -> list[int]:
        """The words of T. bounds: of the sums."""
        lifted = self.folded + self.lift
        check_word(self.name, *bounds, int(lifted.max()), self.lift)
        words = [self.lift, self.requant.offset]
        for channel, bias in enumerate(lifted):
            words += [int(bias), *self.requant.packed(channel)]
        return words


class FloatSums(WindowLayer):
    """In float32, clamped to low..high."""

    weights: Array
    bias: Array
    low: float
    high: float

    def reference(self, *inputs: Array) -> Array:
        return np.clip(self.sums(inputs[0], 0.0, self.weights) + self.bias, self.low, self.high).astype(np.float32)

    def sums(self, x: Array, fill: int | float, weights: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Dot(_Dot, ByteSums):
    """In int8. packed: the weights are below 16 and stored two in a byte."""

    zero: int
    requant: Requant
    weight_zero: int = ZERO
    packed: bool = False

    def constants(self) -> tuple[Array, list[int]]:
        words = self.words(*start_bounds(self.weights, self.bias, self.zero, self.weight_zero))
        return self._stored() if self.packed else self.weights.reshape(-1), words

    def _stored(self) -> Array:
        """Two weights in a byte, the first one in its lower half; each contiguous run of a window starts a new byte."""
        _, run = self.loops(dense_view(self.image))
        rows = self.weights.reshape(-1, run)
        rows = np.pad(rows, ((0, 0), (0, run % 2)))
        return (rows[:, ::2] | rows[:, 1::2] << 4).astype(np.uint8).reshape(-1)

    def loops(self, x: View) -> tuple[Loops, int]:
        """For packed weights, runs whose length does not depend on the input's layout."""
        if not self.packed:
            return super().loops(x)
        (kh, kw), (down, across), run = self.window.kernel, self.window.dilations, self.weights.shape[3]
        loops = [(kh, x.pitch * down), (kw, self.image[2] * across)]
        if kw > 1 and loops[1][1] == run:
            loops[1], run = (1, 0), run * kw
        return tuple((n, step) for n, step in loops if n > 1), run

    def walk(self, w: Writer, loops: Loops, run: int) -> None:
        if not self.packed:
            super().walk(w, loops, run)
        elif not loops:
            _pairs(w, run)
        else:
            (turns, jump), inner = loops[0], loops[1:]
            moved = inner[0][0] * inner[0][1] if inner else run
            counter = f"k{len(inner)}"
            w.line(f"{counter} = {turns}")
            with w.block(f"while {counter}"):
                self.walk(w, inner, run)
                w.move(X, jump - moved)
                w.line(f"{counter} -= 1")

    def begin(self, w: Writer) -> None:
        w.table("q", "to")
        w.line(f"h = {w.word('q')}")
        w.line(f"m = {w.word('q', 1)}")

    def begin_position(self, w: Writer) -> None:
        w.table("q", "to + 2")

    def begin_window(self, w: Writer, start: str, loops: Loops, run: int) -> None:
        w.go(X, start)
        w.line("s = 0")
        walk(w, loops, run, X, None, lambda i, k: w.line(f"s = {w.load(X, i)} + s"), UNROLL // 2)
        w.line(f"t = 0 - {'(s << 7)' if self.weight_zero == ZERO else f's * {self.weight_zero}'} - h")

    def begin_sum(self, w: Writer) -> None:
        w.line(f"s = {w.word('q')} + t")

    def finish(self, w: Writer) -> None:
        each = self.requant.words
        emit_requantize(w, self.requant, [w.word("q", 1 + k) for k in range(each)], "m")
        w.move_table("q", 1 + each)


@dataclass(frozen=True)
class DotFloat(_Dot, FloatSums):
    """In float32, clamped to low..high."""

    low: float = -inf
    high: float = inf

    def constants(self) -> tuple[Array, list[int]]:
        """The weights of each channel, preceded by its bias."""
        rows = self.weights.reshape(len(self.weights), -1)
        return np.concatenate([self.bias.reshape(-1, 1), rows], 1).astype(np.float32).reshape(-1), []

    def begin_sum(self, w: Writer) -> None:
        w.line(f"s = {w.load(WEIGHTS)}")
        w.move(WEIGHTS, 1)

    def finish(self, w: Writer) -> None:
        emit_clamp_float(w, self.low, self.high)


PAIRS = 8
"""Bytes of packed weights per iteration of a loop."""


def _pairs(w: Writer, run: int) -> None:
    """Write code for the products of a run with weights stored two in a byte; both pointers end after it."""
    whole, rest = divmod(run // 2, PAIRS)

    def some(count: int) -> None:
        for k in range(count):
            w.line(f"v = {w.load(WEIGHTS, k)}")
            w.line(f"s = (v & 15) * {w.load(X, 2 * k)} + s")
            w.line(f"s = (v >> 4) * {w.load(X, 2 * k + 1)} + s")
        w.move_all((X, 2 * count), (WEIGHTS, count))

    if whole:
        with w.times("k", whole):
            some(PAIRS)
    some(rest)
    if run % 2:
        w.line(f"s = {w.load(WEIGHTS)} * {w.load(X)} + s")
        w.move_all((X, 1), (WEIGHTS, 1))


def _mac(w: Writer, i: int, k: int) -> str:
    # Starting with the product saves one register move over `s + w * x`.
    return f"s = {w.load(WEIGHTS, k)} * {w.load(X, i)} + s"
