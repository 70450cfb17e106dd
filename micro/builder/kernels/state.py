"""A tensor that is kept from one inference to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layer import Array, Layer, View, dense_view
from .nest import image_axes, nest
from .writer import Pointer, Writer

X = Pointer("x", "A")
Y = Pointer("y", "A")


@dataclass(frozen=True)
class Keep(Layer):
    """Copy the input to a state of the graph, `output`, for the next inference. No later layer reads the state."""

    shape: tuple[int, ...]

    def reference(self, *inputs: Array) -> Array:
        return inputs[0]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        w.go(X, w.place("i0"))
        w.go(Y, w.place("o"))
        views = (dense_view(self.shape), dense_view(self.shape))
        nest(w, image_axes(views), (X, Y), lambda at: w.store(Y, w.load(X, at[0]), at[1]))
        return w
