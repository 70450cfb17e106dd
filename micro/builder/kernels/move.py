"""Layers that only move elements: concatenation, slices, padding, transposition, repetition, borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..quantization.reference import Bytes
from .layer import Array, Layer, View
from .nest import Axis, copied, image_axes, nest, start_at
from .writer import TABLE, Writer, X, Y


@dataclass(frozen=True)
class Part:
    """A block of elements to move. start, to: its first element in the input and in the output; axes: (count, stride in
    the input, stride in the output); table: 256 bytes to map each element through, or None.
    """

    start: int
    to: int
    axes: tuple[Axis, ...]
    table: Bytes | None = None


@dataclass(frozen=True)
class Move(Layer):
    """One part per input, moved into a tensor that is filled with `fill` first, unless that is None. width: bytes of an
    element of `fill`; shape and parts count bytes."""

    shape: tuple[int, ...]
    parts: tuple[Part, ...]
    fill: float | None = None
    width: int = 1

    def reference(self, *inputs: Array) -> Array:
        out = np.full(prod(self.shape), self.fill or 0, inputs[0].dtype)
        if self.width == 2 and self.fill is not None:
            out[::2], out[1::2] = int(self.fill) & 255, int(self.fill) >> 8
        for x, part in zip(inputs, self.parts, strict=True):
            source = x.reshape(-1)[_places(part.start, part.axes, 0)]
            out[_places(part.to, part.axes, 1)] = source if part.table is None else part.table[source]
        return out.reshape(self.shape)

    def constants(self) -> tuple[Array, list[int]]:
        tables = [p.table for p in self.parts if p.table is not None]
        return np.concatenate(tables) if tables else np.empty(0, np.uint8), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y, TABLE), self.places())
        if self.fill is not None:
            w.go(Y, w.place("o"))
            _fill(w, [Axis(prod(self.shape), (1,))], self.fill, self.width)
        tables = 0
        for k, part in enumerate(self.parts):
            w.go_all((X, w.place(f"i{k}", part.start)), (Y, w.place("o", part.to)))
            if part.table is not None:
                w.go(TABLE, w.place("wo", 256 * tables))
                tables += 1
            copied(w, part.axes, X, TABLE if part.table is not None else None)
        return w


def _fill(w: Writer, axes: Sequence[Axis], fill: float, width: int) -> None:
    """Write code that fills a tensor. axes: of the elements, or of bytes, the last one without gaps."""
    if width == 1:
        value = repr(fill if w.float else int(fill))
        nest(w, axes, (Y,), lambda at: w.store(Y, value, at[0]))
        return

    def word(at: tuple[int, ...]) -> None:
        w.store(Y, str(int(fill) & 255), at[0])
        w.store(Y, str(int(fill) >> 8), at[0] + 1)

    *outer, last = axes
    nest(w, [*outer, Axis(last.turns // 2, (2,))], (Y,), word)


def _places(start: int, axes: Sequence[Axis], which: int) -> Array:
    """The elements that a part reads (which = 0) or writes (1), in order."""
    places = np.array([start])
    for axis in axes:
        places = (places[:, None] + np.arange(axis.turns) * axis.steps[which]).reshape(-1)
    return places


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one index to the next, along each axis of a dense tensor."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


@dataclass(frozen=True)
class Border(Layer):
    """Fill the border of a tensor, from which a window reads its padding; input and output are the same tensor."""

    view: View
    size: int
    fill: float
    width: int = 1

    def reference(self, *inputs: Array) -> Array:
        return inputs[0]

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """The border's parts: above, between rows, where the right and left sides are adjacent, and below. Each is its
        first element, a number of rows, `view.pitch` apart, and their length."""
        h, _, _ = self.view.shape
        row, pitch, origin = self.view.row, self.view.pitch, self.view.origin
        last = origin + (h - 1) * pitch + row
        found = ((0, 1, origin), (origin + row, h - 1, pitch - row), (last, 1, self.size - last))
        return [(start, turns, length) for start, turns, length in found if turns and length]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (Y,), self.places())
        for start, turns, length in self.parts:
            w.go(Y, w.place("o", start))
            _fill(w, [Axis(turns, (self.view.pitch,)), Axis(length, (1,))], self.fill, self.width)
        return w


@dataclass(frozen=True)
class Copy(Layer):
    """Copy a tensor to another buffer, where it may have a border."""

    shape: tuple[int, ...]

    takes_borders = True

    def reference(self, *inputs: Array) -> Array:
        return inputs[0]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        start_at(w, inputs[0], output)
        copied(w, image_axes((inputs[0], output)), X)
        return w
