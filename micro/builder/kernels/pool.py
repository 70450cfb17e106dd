"""Pooling over a window, and reductions over an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..quantization.reference import Bytes, Requant, requantize
from .layer import Array, Layer, View, emit_extreme, emit_requantize
from .nest import each_lane
from .window import UNROLL, Window, WindowLayer, each_position, walk, window_loops
from .writer import Pointer, Writer, X, Y


@dataclass(frozen=True)
class _Pool(WindowLayer):
    source: ClassVar[Pointer] = X
    unroll: ClassVar[int] = UNROLL

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x, width = self.view(inputs[0]), self.source.width
        w = Writer(dialect, (self.source, "s", Y), self.places())
        channels = self.image[2] // width
        loops = window_loops(self.window, x.pitch // width, channels, 1)
        self.begin(w)
        with each_position(w, self.window, self.image, x, output, Y):
            self.begin_position(w)
            w.line("c = b")
            with w.times("n", channels):
                w.go(self.source, "c")
                self.begin_element(w)
                walk(w, *loops, self.source, None, lambda i, k: self.take(w, i), self.unroll)
                self.finish(w)
                self.store(w)
                w.move(Y, width)
                w.line(f"c += {width}")
            self.end_position(w)
        return w

    def view(self, x: View) -> View:
        """The input as it is read."""
        return x

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def begin_position(self, w: Writer) -> None:
        """Write the code that runs at each position."""

    def end_position(self, w: Writer) -> None:
        """Write the code after each position."""

    def begin_element(self, w: Writer) -> None:
        raise NotImplementedError

    def take(self, w: Writer, i: int) -> None:
        """Write code for the element at offset i of the window."""
        raise NotImplementedError

    def finish(self, w: Writer) -> None:
        """Turn `s` into the output's element."""

    def store(self, w: Writer) -> None:
        w.store(Y, "s")


@dataclass(frozen=True)
class MaxPool(_Pool):
    """The maximum of each window, for bytes and floats. fill: the border's value, the smallest there is."""

    fill: float = 0

    def reference(self, *inputs: Array) -> Array:
        patches = self.window.patches(inputs[0].reshape(self.image), self.fill)
        return patches.max((2, 3))

    def begin_element(self, w: Writer) -> None:
        w.line(f"s = {w.load(X)}")

    def take(self, w: Writer, i: int) -> None:
        w.line(f"v = {w.load(X, i)}")
        emit_extreme(w, "max")


@dataclass(frozen=True)
class AveragePool(_Pool):
    """The mean of each window in int8. zero: the input's zero point, which also fills the border.

    requant: one multiplier, which includes the division by the window's size; if padding does not count, one per
    position.
    """

    zero: int
    requant: Requant

    def sums(self, x: Bytes) -> Array:
        patches = self.window.patches(x.reshape(self.image).astype(np.int64) - self.zero, 0)
        return patches.sum((2, 3))

    def reference(self, *inputs: Bytes) -> Bytes:
        sums = self.sums(inputs[0])
        if len(self.requant.multipliers) == 1:
            return requantize(sums, self.requant)
        flat = requantize(sums.reshape(-1, sums.shape[2]), self.requant, axis=0)
        return flat.reshape(sums.shape)

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), packed(self.requant)

    def begin(self, w: Writer) -> None:
        w.table("q", "to")
        if len(self.requant.multipliers) == 1:
            load_words(w, self.requant)

    def begin_position(self, w: Writer) -> None:
        if len(self.requant.multipliers) > 1:
            load_words(w, self.requant)
            w.move_table("q", self.requant.words)

    def begin_element(self, w: Writer) -> None:
        kh, kw = self.window.kernel
        w.line(f"s = {-self.zero * kh * kw}")

    def take(self, w: Writer, i: int) -> None:
        w.line(f"s = {w.load(X, i)} + s")

    def finish(self, w: Writer) -> None:
        emit_requantize(w, self.requant, words_of(self.requant))


def packed(r: Requant) -> list[int]:
    """The words of T for all multipliers."""
    return [word for k in range(len(r.multipliers)) for word in r.packed(k)]


def words_of(r: Requant) -> list[str]:
    """The locals that hold the words of a multiplier."""
    return [f"m{k}" for k in range(r.words)]


def load_words(w: Writer, r: Requant) -> None:
    """Write code that loads the words of a multiplier, at `q`, into locals."""
    for k, name in enumerate(words_of(r)):
        w.line(f"{name} = {w.word('q', k)}")


@dataclass(frozen=True)
class AveragePoolFloat(_Pool):
    """The mean of each window in float32. counts: the number of elements in a mean, or one number per position."""

    counts: tuple[int, ...]

    def reference(self, *inputs: Array) -> Array:
        sums = self.window.patches(inputs[0].reshape(self.image).astype(np.float64), 0.0).sum((2, 3))
        counts = np.asarray(self.counts).reshape(sums.shape[:2] if len(self.counts) > 1 else (1, 1))
        return (sums / counts[..., None]).astype(np.float32)

    def constants(self) -> tuple[Array, list[int]]:
        return 1 / np.asarray(self.counts, np.float32), []

    def begin(self, w: Writer) -> None:
        w.line("q = wo")
        w.line("m = W[q]")

    def begin_position(self, w: Writer) -> None:
        if len(self.counts) > 1:
            w.line("m = W[q]")
            w.line("q += 1")

    def begin_element(self, w: Writer) -> None:
        w.line("s = 0.0")

    def take(self, w: Writer, i: int) -> None:
        w.line(f"s += {w.load(X, i)}")

    def finish(self, w: Writer) -> None:
        w.line("s *= m")


def window_counts(
    window: Window, height: int, width: int, counted: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> tuple[int, ...]:
    """The number of image elements that each position covers; a single number if all are equal.

    counted: the padding (top, left, bottom, right) whose elements count too.
    """
    sides = []
    for axis, (size, positions) in enumerate(zip((height, width), window.output(height, width), strict=True)):
        step = window.dilations[axis]
        begin = np.arange(positions, dtype=np.int64) * window.strides[axis] - window.pads[axis]
        first = np.maximum(-((begin + counted[axis]) // step), 0)  # of the kernel's elements, that the image has
        end = np.minimum((size + counted[axis + 2] - 1 - begin) // step + 1, window.kernel[axis])
        sides.append(np.maximum(end - first, 0))
    counts = np.outer(*sides).reshape(-1)
    return (int(counts[0]),) if np.all(counts == counts[0]) else tuple(int(c) for c in counts)


@dataclass(frozen=True)
class _Reduce(Layer):
    """Over the middle axis of (outer, length, inner); operation: "sum" (a mean too), "max" or "min"."""

    shape: tuple[int, int, int]
    operation: str

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        _, length, inner = self.shape
        w = Writer(dialect, (X, "s", Y), self.places())
        self.begin(w)
        chunk = next(u for u in range(min(16, length), 0, -1) if length % u == 0 or u == 8)
        with each_lane(w, self.shape, inputs[0], output):
            w.go(X, "a")
            self.begin_element(w)
            self._walk(w, length, inner, chunk)
            self.finish(w)
            w.store(Y, "s")
        return w

    def _walk(self, w: Writer, length: int, inner: int, chunk: int) -> None:
        with w.times("k", length // chunk):
            for _ in range(chunk):
                self.take(w, w.load(X))
                w.move(X, inner)
        for _ in range(length % chunk):
            self.take(w, w.load(X))
            w.move(X, inner)

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def begin_element(self, w: Writer) -> None:
        w.line(f"s = {w.load(X)}")

    def take(self, w: Writer, element: str) -> None:
        if self.operation == "sum":
            w.line(f"s = {element} + s")
            return
        w.line(f"v = {element}")
        emit_extreme(w, self.operation)

    def finish(self, w: Writer) -> None:
        """Turn `s` into the output's element."""


@dataclass(frozen=True)
class Reduce(_Reduce):
    """Int8; a sum or a mean is requantized, with a mean's division by the length in the multiplier."""

    zero: int = 0
    requant: Requant | None = None

    def reference(self, *inputs: Bytes) -> Bytes:
        x = inputs[0].reshape(self.shape).astype(np.int64)
        if self.operation == "sum":
            assert self.requant
            return requantize((x - self.zero).sum(1), self.requant)
        return (x.max(1) if self.operation == "max" else x.min(1)).astype(np.uint8)

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), packed(self.requant) if self.requant else []

    def begin(self, w: Writer) -> None:
        if self.requant:
            w.table("q", "to")
            load_words(w, self.requant)

    def begin_element(self, w: Writer) -> None:
        if self.operation == "sum":
            w.line(f"s = {-self.zero * self.shape[1]}")
        else:
            super().begin_element(w)

    def finish(self, w: Writer) -> None:
        if self.requant:
            emit_requantize(w, self.requant, words_of(self.requant))


@dataclass(frozen=True)
class ReduceFloat(_Reduce):
    """Float32; factor: multiplied with a sum."""

    factor: float = 1.0

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.shape).astype(np.float64)
        if self.operation == "sum":
            return (x.sum(1) * self.factor).astype(np.float32)
        return (x.max(1) if self.operation == "max" else x.min(1)).astype(np.float32)

    def begin_element(self, w: Writer) -> None:
        if self.operation == "sum":
            w.line("s = 0.0")
        else:
            super().begin_element(w)

    def finish(self, w: Writer) -> None:
        if self.operation == "sum" and self.factor != 1:
            w.line(f"s *= {self.factor!r}")
