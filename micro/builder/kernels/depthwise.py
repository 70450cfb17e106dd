"""Depthwise convolution: each channel has its own small kernel.

For each channel, the weights are loaded into locals once. They are signed, so the window's sum is not needed. The
window then slides over the image with constant offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..quantization.reference import ZERO, Requant, dot_bounds
from .dot import ByteSums, FloatSums
from .layer import Array, View, emit_clamp_float, emit_requantize
from .window import WindowLayer
from .writer import WEIGHTS, Writer, X, Y

MOST_TAPS = 32
"""Windows with more weights than this use the general convolution, since each weight is a local of the kernel."""

SPAN = 4095
"""The largest constant offset of a load, on processors that allow more than a few."""

LINES = 66
"""The most lines of the unrolled positions: as machine code they stay below 2 KB (window.py)."""


@dataclass(frozen=True)
class _Depthwise(WindowLayer):
    """weights: (channels out, kh, kw); bias: (channels out,); channels out is a multiple of the input's channels."""

    weights: Array
    bias: Array

    kind = "depthwise"

    @property
    def macs(self) -> int:
        return self.positions * self.weights.size

    def sums(self, x: Array, fill: int | float, weights: Array) -> Array:
        """The dot products, without bias: (rows, columns, channels out), exact in float64 for integers."""
        patches = self.window.patches(x.reshape(self.image).astype(np.float64), fill)
        each = len(weights) // self.image[2]
        return np.einsum("yxijc,cijm->yxcm", patches, _by_channel(weights, each)).reshape(*patches.shape[:2], -1)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x, y = inputs[0], output
        w = Writer(dialect, (X, "s", Y), self.places())
        channels = self.image[2]
        each = len(self.weights) // channels
        oh, ow = self.window.output(*self.image[:2])
        taps = self.window.kernel[0] * self.window.kernel[1]
        self.begin(w)
        w.go(WEIGHTS, w.place("wo"))
        w.line(f"a = {w.place('i0', self.window.corner(x))}")
        w.line(f"b = {w.place('o', y.origin)}")
        with w.times("c", channels):
            with w.times("g", each):
                self.begin_channel(w, taps)
                w.go_all((X, "a"), (Y, "b"))
                with w.times("i", oh):
                    self._row(w, x, y, ow, len(self.weights))
                    if oh > 1:
                        w.move(X, self.window.strides[0] * x.pitch - ow * self.window.strides[1] * channels)
                        w.move(Y, y.pitch - ow * len(self.weights))
                if each > 1:
                    w.line("b += 1")
            if channels > 1:
                w.line("a += 1")
                if each == 1:
                    w.line("b += 1")
        return w

    def _row(self, w: Writer, x: View, y: View, ow: int, out: int) -> None:
        """Write code for one row of the output; x and y end after it."""
        across = self.window.strides[1] * self.image[2]
        unroll = self._unroll(w, ow, x, across, out)
        with w.times("j", ow // unroll):
            for u in range(unroll):
                self._position(w, x, u * across, u * out)
            w.move_all((X, unroll * across), (Y, unroll * out))
        rest = ow % unroll
        for u in range(rest):
            self._position(w, x, u * across, u * out)
        w.move_all((X, rest * across), (Y, rest * out))

    def _unroll(self, w: Writer, ow: int, x: View, across: int, out: int) -> int:
        """The number of positions to unroll: pointers move less often, as long as offsets and the loop stay short."""
        taps = self.window.kernel[0] * self.window.kernel[1]
        begin = len(w.lines)
        self.finish(w)
        lines = taps + len(w.lines) - begin
        del w.lines[begin:]
        reach = self._offsets(x)[-1]
        for u in (4, 3, 2):
            if (
                ow % u == 0
                and u * taps <= 20
                and u * lines <= LINES
                and reach + (u - 1) * across <= SPAN
                and (u - 1) * out <= SPAN
            ):
                return u
        return 1

    def _offsets(self, x: View) -> list[int]:
        kh, kw = self.window.kernel
        dy, dx = self.window.dilations
        return [i * dy * x.pitch + j * dx * self.image[2] for i in range(kh) for j in range(kw)]

    def _position(self, w: Writer, x: View, shift: int, place: int) -> None:
        for k, offset in enumerate(self._offsets(x)):
            w.line(f"s = {w.load(X, offset + shift)} * w{k} + {'s' if k else 'h'}")
        self.finish(w)
        w.store(Y, "s", place)

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def begin_channel(self, w: Writer, taps: int) -> None:
        """Write code that loads a channel's weights and bias (`h`) into locals."""
        raise NotImplementedError

    def finish(self, w: Writer) -> None:
        """Write code that turns `s` into the output's element."""
        raise NotImplementedError


def _by_channel(weights: Array, each: int) -> Array:
    """(channels out, kh, kw) to (channels in, kh, kw, outputs of each) in float64."""
    n, kh, kw = weights.shape
    return weights.astype(np.float64).reshape(n // each, each, kh, kw).transpose(0, 2, 3, 1)


@dataclass(frozen=True)
class Depthwise(_Depthwise, ByteSums):
    """In int8."""

    zero: int
    requant: Requant
    weight_zero: int = ZERO

    def constants(self) -> tuple[Array, list[int]]:
        # The sum stays within these bounds from the folded bias to its end, in any order of the products.
        low, high = dot_bounds(self.weights, self.folded, 0, self.weight_zero)
        return self.weights.reshape(-1), self.words(int(low.min()), int(high.max()))

    def begin(self, w: Writer) -> None:
        w.table("q", "to")
        w.line(f"f = {w.word('q')}")
        w.line(f"m = {w.word('q', 1)}")
        w.move_table("q", 2)

    def begin_channel(self, w: Writer, taps: int) -> None:
        for k in range(taps):
            w.line(f"w{k} = {w.load(WEIGHTS, k)} - {self.weight_zero}")
        w.move(WEIGHTS, taps)
        w.line(f"h = {w.word('q')} - f")
        each = self.requant.words
        for k in range(each):
            w.line(f"p{k} = {w.word('q', 1 + k)}")
        w.move_table("q", 1 + each)

    def finish(self, w: Writer) -> None:
        emit_requantize(w, self.requant, [f"p{k}" for k in range(self.requant.words)], "m")


@dataclass(frozen=True)
class DepthwiseFloat(_Depthwise, FloatSums):
    """In float32, clamped to low..high."""

    low: float = -inf
    high: float = inf

    def constants(self) -> tuple[Array, list[int]]:
        """The weights of each channel, followed by its bias."""
        rows = self.weights.reshape(len(self.weights), -1)
        return np.concatenate([rows, self.bias.reshape(-1, 1)], 1).astype(np.float32).reshape(-1), []

    def begin_channel(self, w: Writer, taps: int) -> None:
        for k in range(taps):
            w.line(f"w{k} = {w.load(WEIGHTS, k)}")
        w.line(f"h = {w.load(WEIGHTS, taps)}")
        w.move(WEIGHTS, taps + 1)

    def finish(self, w: Writer) -> None:
        emit_clamp_float(w, self.low, self.high)
