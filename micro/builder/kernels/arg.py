"""The index of the largest or smallest element along an axis, for bytes and floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..quantization.sixteen import to_words
from .layer import Array, Layer, View
from .nest import each_lane
from .words import element_at
from .writer import Pointer, Writer, X, Y


@dataclass(frozen=True)
class Arg(Layer):
    """Over the middle axis of (outer, length, inner); operation: "max" or "min".

    last: ties go to the last element instead of the first; words: indices take two bytes, the lower one first; width:
    bytes of an element, 2 for 16-bit words (quantization/sixteen.py).
    """

    shape: tuple[int, int, int]
    operation: str
    last: bool = False
    words: bool = False
    width: int = 1

    def reference(self, *inputs: Array) -> Array:
        x = (to_words(inputs[0]) if self.width == 2 else inputs[0]).reshape(self.shape)
        x = x[:, ::-1] if self.last else x
        found = x.argmax(1) if self.operation == "max" else x.argmin(1)
        found = self.shape[1] - 1 - found if self.last else found
        return two_bytes(found) if self.words else np.asarray(found).astype(inputs[0].dtype)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        _, length, inner = self.shape
        w = Writer(dialect, (X, "s", Y), self.places())
        with each_lane(w, self.shape, inputs[0], output, self.width, 2 if self.words else 1):
            w.go(X, "a")
            w.line(f"s = {element_at(w, X, 0, self.width)}")
            w.line("d = 0")
            w.line("k = 1")
            with w.block(f"while k < {length}"):
                w.move(X, inner * self.width)
                w.line(f"v = {element_at(w, X, 0, self.width)}")
                with w.block(f"if v {'>' if self.operation == 'max' else '<'}{'=' if self.last else ''} s"):
                    w.line("s = v")
                    w.line("d = k")
                w.line("k += 1")
            store_index(w, Y, "d", self.words)
        return w


def two_bytes(indices: Array) -> Array:
    """Indices as pairs of bytes along a new last axis, the lower byte first."""
    whole = np.ascontiguousarray(indices).astype("<u2")
    return np.asarray(whole.view(np.uint8).reshape(*whole.shape, 2))


def store_index(w: Writer, p: Pointer, index: str, words: bool) -> None:
    """Write code that stores an index (the name of a local) in one byte or in two."""
    if not words:
        w.store(p, index)
        return
    w.store(p, f"{index} & 255")
    w.store(p, f"{index} >> 8", 1)
