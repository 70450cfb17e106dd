"""Resizing an image by linear interpolation between its elements, along one axis or two.

In int8 the weights of two neighbors have 10 bits and add up to one, so the output has the input's scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .layer import Array, Layer, View, as_image
from .writer import Writer, X, Y, Z

BITS = 10


@dataclass(frozen=True)
class Interpolate(Layer):
    """shape: of the input, an image; rows, columns: the fractional input position of each output row and column;
    quantized: whether elements are bytes.
    """

    shape: tuple[int, ...]
    rows: Array
    columns: Array
    quantized: bool = False

    @property
    def turns(self) -> int:
        return 4 * len(self.rows) * len(self.columns) * as_image(self.shape)[2]

    def taps(self, places: Array, size: int) -> tuple[Array, Array, Array]:
        """(first, next, weight of the next) for each position; in int8, weights are integers."""
        at = np.clip(np.asarray(places, np.float64), 0, size - 1)
        first = np.floor(at).astype(np.int64)
        weight = at - first
        if self.quantized:
            weight = np.rint(weight * (1 << BITS)).astype(np.int64)
        return first, np.minimum(first + 1, size - 1), weight

    def reference(self, *inputs: Array) -> Array:
        h, width, _ = as_image(self.shape)
        x: Array = inputs[0].reshape(as_image(self.shape)).astype(np.int64 if self.quantized else np.float64)
        one = 1 << BITS if self.quantized else 1.0
        (i, j, f), (k, m, g) = self.taps(self.rows, h), self.taps(self.columns, width)
        g = g[None, :, None]
        above, below = (x[n][:, k] * (one - g) + x[n][:, m] * g for n in (i, j))
        y: Array = above * (one - f[:, None, None]) + below * f[:, None, None]
        if self.quantized:
            return np.asarray((y + (1 << 2 * BITS - 1) >> 2 * BITS).astype(np.uint8))
        return np.asarray(y.astype(np.float32))

    def _table(self, view: View) -> list[tuple[int, int, float]]:
        """For each row and then each column: the offset of the first neighbor, the distance to the next, and its
        weight."""
        h, width, channels = as_image(self.shape)
        made = []
        for places, size, step in ((self.rows, h, view.pitch), (self.columns, width, channels)):
            first, after, weight = self.taps(places, size)
            made += [(int(a) * step, int(b - a) * step, v.item()) for a, b, v in zip(first, after, weight, strict=True)]
        return made

    def constants(self) -> tuple[Array, list[int]]:
        h, width, channels = as_image(self.shape)
        table = self._table(View((h, width, channels), width * channels))
        if self.quantized:
            return np.empty(0, np.uint8), [int(v) for entry in table for v in entry]
        return np.array(table, np.float32).reshape(-1), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        channels = as_image(self.shape)[2]
        w = Writer(dialect, (X, "s", Z), self.places())
        w.go(Y, w.place("o", output.origin))
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        self._point(w, "q", 0)
        with w.times("i", len(self.rows)):
            w.line(f"b = a + {self._entry(w, 'q', 0)}")
            w.line(f"e = {self._entry(w, 'q', 1)}")
            w.line(f"f = {self._entry(w, 'q', 2)}")
            self._advance(w, "q")
            self._point(w, "p", 3 * len(self.rows))
            with w.times("j", len(self.columns)):
                w.line(f"d = {self._entry(w, 'p', 1)}")
                w.line(f"g = {self._entry(w, 'p', 2)}")
                w.go_all((X, f"b + {self._entry(w, 'p', 0)}"), (Z, f"{w.address(X)} + e"))
                self._advance(w, "p")
                with w.times("n", channels):
                    self._element(w)
                    w.move_all((X, 1), (Z, 1), (Y, 1))
        return w

    def _element(self, w: Writer) -> None:
        one = str(1 << BITS) if self.quantized else "1.0"
        x, after = (f"({w.load(p)} * ({one} - g) + {w.load(p, 'd')} * g)" for p in (X, Z))
        w.line(f"v = {x} * ({one} - f)")
        w.line(f"s = {after} * f + v")
        if self.quantized:
            w.line(f"s = s + {1 << 2 * BITS - 1} >> {2 * BITS}")
        w.store(Y, "s")

    def _point(self, w: Writer, name: str, k: int) -> None:
        if not self.quantized:
            w.line(f"{name} = wo + {k}")
            return
        w.table(name, f"(to + {k})" if k else "to")

    def _entry(self, w: Writer, name: str, k: int) -> str:
        if self.quantized:
            return w.word(name, k)
        entry = f"W[{name} + {k}]" if k else f"W[{name}]"
        return entry if k == 2 else f"int({entry})"

    def _advance(self, w: Writer, name: str) -> None:
        if self.quantized:
            w.move_table(name, 3)
        else:
            w.line(f"{name} += 3")
