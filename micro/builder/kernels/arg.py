"""The index of the greatest or the least element along an axis; bytes and floats alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .layer import Array, Layer, View
from .writer import Pointer, Writer

X = Pointer("x", "A")
Y = Pointer("y", "A")


@dataclass(frozen=True)
class Arg(Layer):
    """Over the middle axis of (outer, length, inner); operation: "max" or "min".

    last: of equal elements the last counts, not the first.
    """

    shape: tuple[int, int, int]
    operation: str
    last: bool = False

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(self.shape)
        x = x[:, ::-1] if self.last else x
        found = x.argmax(1) if self.operation == "max" else x.argmin(1)
        found = self.shape[1] - 1 - found if self.last else found
        return np.asarray(found).astype(inputs[0].dtype)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        outer, length, inner = self.shape
        w = Writer(dialect, (X, "s", Y), self.places())
        w.line(f"a = {w.place('i0', inputs[0].origin)}")
        w.go(Y, w.place("o", output.origin))
        with w.times("i", outer):
            with w.times("n", inner):
                w.go(X, "a")
                w.line(f"s = {w.load(X)}")
                w.line("d = 0")
                w.line("k = 1")
                with w.block(f"while k < {length}"):
                    w.move(X, inner)
                    w.line(f"v = {w.load(X)}")
                    with w.block(f"if v {'>' if self.operation == 'max' else '<'}{'=' if self.last else ''} s"):
                        w.line("s = v")
                        w.line("d = k")
                    w.line("k += 1")
                w.store(Y, "d")
                w.move(Y, 1)
                w.line("a += 1")
            if outer > 1 and length > 1:
                w.line(f"a += {(length - 1) * inner}")
        return w
