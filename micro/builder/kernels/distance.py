"""The distance of a row from each of several constant rows, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..functions import Chain, apply, lines
from .layer import Array, Layer, View
from .writer import Pointer, Writer, X, Y

Z = Pointer("z", "W")


@dataclass(frozen=True)
class DistanceFloat(Layer):
    """rows: (n, features). Each output is the sum over features of `chain` of the difference, x less the row."""

    rows: Array
    chain: Chain

    @property
    def macs(self) -> int:
        return self.rows.size

    def reference(self, *inputs: Array) -> Array:
        apart = inputs[0].reshape(1, -1).astype(np.float64) - self.rows.astype(np.float64)
        return apply(self.chain, apart).astype(np.float64).sum(1).astype(np.float32)

    def constants(self) -> tuple[Array, list[int]]:
        return self.rows.astype(np.float32).reshape(-1), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        n, features = self.rows.shape
        w = Writer(dialect, (X, Z, Y), self.places())
        w.go_all((Y, w.place("o", output.origin)), (Z, w.place("wo")))
        with w.times("i", n):
            w.go(X, w.place("i0", inputs[0].origin))
            w.line("s = 0.0")
            with w.times("k", features):
                w.line(f"v = {w.load(X)} - {w.load(Z)}")
                for line in lines(self.chain):
                    w.line(line)
                w.line("s += v")
                w.move_all((X, 1), (Z, 1))
            w.store(Y, "s")
            w.move(Y, 1)
        return w
