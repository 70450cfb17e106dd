"""Matrix products of two computed tensors, both read in place: attention's scores, and their products with the
values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ..quantization.reference import Bytes, Requant, requantize
from .layer import Array, Layer, View, emit_requantize
from .pool import load_words, packed, words_of
from .writer import Pointer, Writer, X, Y, Z


@dataclass(frozen=True)
class _Product(Layer):
    """rows, depth, columns: of the matrices; first, second: the row and column strides of each operand; batches: for
    each leading axis, its size and the strides of both operands.
    """

    rows: int
    depth: int
    columns: int
    first: tuple[int, int]
    second: tuple[int, int]
    batches: tuple[tuple[int, int, int], ...]

    width: ClassVar[int] = 1
    pointers: ClassVar[tuple[Pointer, Pointer]] = (X, Z)

    @property
    def macs(self) -> int:
        return self.rows * self.depth * self.columns * prod(n for n, _, _ in self.batches)

    def matrices(self, inputs: Sequence[Array]) -> tuple[Array, Array]:
        """Both operands as (batches, rows, columns)."""
        starts = np.zeros((1, 2), np.int64)
        for n, a, b in self.batches:
            starts = (starts[:, None] + np.arange(n)[:, None] * np.array([a, b])).reshape(-1, 2)
        sides = (
            (inputs[0], (self.rows, self.depth), self.first, starts[:, 0]),
            (inputs[1], (self.depth, self.columns), self.second, starts[:, 1]),
        )
        out = []
        for x, (h, w), (down, across), begin in sides:
            inside = np.arange(h)[:, None] * down + np.arange(w) * across
            out.append(x.reshape(-1)[begin[:, None, None] + inside])
        return out[0], out[1]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x, z = self.pointers
        w = Writer(dialect, (x, "s", z), self.places())
        self.begin(w)
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.line(f"b = {w.place('i1', inputs[1].origin)}")
        w.go(Y, w.place("o", output.origin))
        self._batch(w, 0)
        return w

    def _batch(self, w: Writer, level: int) -> None:
        if level == len(self.batches):
            self._matrix(w)
            return
        n, *steps = self.batches[level]
        steps = [self.width * step for step in steps]
        with w.times(f"g{level}", n):
            self._batch(w, level + 1)
            for name, step in zip("ab", steps, strict=True):
                if step:
                    w.line(f"{name} += {step}")
        for name, step in zip("ab", steps, strict=True):
            if step and level:
                w.line(f"{name} -= {n * step}")

    def _matrix(self, w: Writer) -> None:
        x, z = self.pointers
        down, across = self.width * self.first[0], self.width * self.second[1]
        with w.times("i", self.rows):
            w.line("c = b")
            with w.times("n", self.columns):
                w.go_all((x, "a"), (z, "c"))
                self.dot(w)
                self.finish(w)
                self.put(w)
                w.line(f"c += {across}")
            w.line(f"a += {down}")
        if self.batches:
            w.line(f"a -= {self.rows * down}")

    def dot(self, w: Writer) -> None:
        """Write code that sums a row's products with a column."""
        w.line(f"s = {'0.0' if w.float else '0'}")
        unroll = next(u for u in (4, 3, 2, 1) if self.depth % u == 0)
        with w.times("k", self.depth // unroll):
            for _ in range(unroll):
                self.take(w, w.load(X), w.load(Z))
                w.move_all((X, self.first[1]), (Z, self.second[0]))

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def take(self, w: Writer, a: str, b: str) -> None:
        """Add a product to `s`."""
        raise NotImplementedError

    def finish(self, w: Writer) -> None:
        """Write code that turns the sum into the output's element `s`."""

    def put(self, w: Writer) -> None:
        """Write code that stores `s` and advances the pointer."""
        w.store(Y, "s")
        w.move(Y, 1)


@dataclass(frozen=True)
class Product(_Product):
    """In int8. zeros: of both operands."""

    zeros: tuple[int, int]
    requant: Requant

    def reference(self, *inputs: Bytes) -> Bytes:
        a, b = self.matrices([x.astype(np.int64) for x in inputs])
        return requantize((a - self.zeros[0]) @ (b - self.zeros[1]), self.requant)

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0, np.uint8), packed(self.requant)

    def begin(self, w: Writer) -> None:
        w.table("q", "to")
        load_words(w, self.requant)

    def take(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s = ({a} - {self.zeros[0]}) * ({b} - {self.zeros[1]}) + s")

    def finish(self, w: Writer) -> None:
        emit_requantize(w, self.requant, words_of(self.requant))


@dataclass(frozen=True)
class ProductFloat(_Product):
    """In float32."""

    def reference(self, *inputs: Array) -> Array:
        a, b = self.matrices([x.astype(np.float64) for x in inputs])
        return (a @ b).astype(np.float32)

    def take(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s += {a} * {b}")
