"""A constant where a computed tensor is expected, such as a class token that is prepended to a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layer import Array, Layer, View
from .nest import Axis, copied
from .writer import Pointer, Writer, Y

VALUE = Pointer("w", "W")


@dataclass(frozen=True)
class Constant(Layer):
    """Copy the value from the weights into the arena, for bytes and floats."""

    value: Array

    def reference(self, *inputs: Array) -> Array:
        return self.value

    def constants(self) -> tuple[Array, list[int]]:
        return self.value.reshape(-1), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (VALUE, Y), self.places())
        w.go_all((VALUE, w.place("wo")), (Y, w.place("o")))
        axes = [Axis(self.value.size, (1, 1))]
        copied(w, axes, VALUE)
        return w
