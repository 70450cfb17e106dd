"""A tensor that is kept from one inference to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layer import Array, Layer, View, dense_view
from .nest import copied, image_axes, start_at
from .writer import Writer, X, Y


@dataclass(frozen=True)
class Keep(Layer):
    """Copy the input to a state of the graph, `output`, for the next inference. No later layer reads the state."""

    shape: tuple[int, ...]

    def reference(self, *inputs: Array) -> Array:
        return inputs[0]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        view = dense_view(self.shape)
        start_at(w, view, view)
        copied(w, image_axes((view, view)), X)
        return w
