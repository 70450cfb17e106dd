"""Keeps the past steps of a stream that a convolution over time needs between inferences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .layer import Array, Layer, View
from .nest import Axis, copied
from .writer import Writer, X, Y


@dataclass(frozen=True)
class Slide(Layer):
    """Shift a tensor's steps by the number of new ones, and append these.

    inputs: the tensor, which is also the output and a state of the graph, and the new steps. shape: of the tensor;
    axis: its time axis; new: the number of new steps.
    """

    shape: tuple[int, ...]
    axis: int
    new: int

    def reference(self, *inputs: Array) -> Array:
        before = inputs[0].reshape(self.shape)
        added = inputs[1].reshape(*self.shape[: self.axis], self.new, *self.shape[self.axis + 1 :])
        kept = np.take(before, range(self.new, self.shape[self.axis]), self.axis)
        return np.concatenate([kept, added], self.axis)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        outer, inner = prod(self.shape[: self.axis]), prod(self.shape[self.axis + 1 :])
        steps, new = self.shape[self.axis] * inner, self.new * inner
        # Elements move in ascending order, each to a lower address, so none is overwritten before it is read.
        for place, start, to, length, pitch in (("o", new, 0, steps - new, steps), ("i1", 0, steps - new, new, new)):
            w.go_all((X, w.place(place, start)), (Y, w.place("o", to)))
            axes = (Axis(outer, (pitch, steps)), Axis(length, (1, 1)))
            copied(w, axes, X)
        return w
