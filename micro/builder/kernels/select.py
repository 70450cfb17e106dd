"""Elementwise selection between two tensors. Each of the three operands may be constant or broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..quantization.reference import Bytes
from .layer import Array, Layer, View
from .nest import Axis, nest
from .writer import Pointer, Writer

NAMES = ("x", "z", "u")
UNROLL = 3


@dataclass(frozen=True)
class Select(Layer):
    """The second operand where the first is not zero, else the third, for bytes and floats.

    shape: of the output; axes: iterations, and the strides of the operands and the output; constants: the values of
    constant operands, which `inputs` leaves out; tables: 256 bytes to map each element of the second and the third
    operand through.
    """

    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    constants_of: tuple[Array | None, Array | None, Array | None]
    tables: tuple[Bytes | None, Bytes | None] = (None, None)

    def operands(self, inputs: Sequence[Array]) -> list[Array]:
        """The elements of all three operands, in the order in which they are read."""
        given = iter(inputs)
        found = []
        for k, constant in enumerate(self.constants_of):
            x = next(given) if constant is None else constant
            places = np.zeros(1, np.int64)
            for axis in self.axes:
                places = (places[:, None] + np.arange(axis.turns) * axis.steps[k]).reshape(-1)
            found.append(x.reshape(-1)[places])
        return found

    def reference(self, *inputs: Array) -> Array:
        chosen, *others = self.operands(inputs)
        x, y = (v if table is None else table[v] for v, table in zip(others, self.tables, strict=True))
        return np.where(chosen != 0, x, y).astype(inputs[0].dtype).reshape(self.shape)

    def constants(self) -> tuple[Array, list[int]]:
        parts = [v.reshape(-1) for v in (*self.constants_of, *self.tables) if v is not None]
        dtype = np.float32 if any(v.dtype.kind == "f" for v in parts) else np.uint8
        return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        pointers = [
            Pointer(name, "A" if constant is None else "W")
            for name, constant in zip(NAMES, self.constants_of, strict=True)
        ]
        y, tables = Pointer("y", "A"), (Pointer("p", "W"), Pointer("t", "W"))
        w = Writer(dialect, tuple(pointers), self.places())
        read = stored = 0
        for pointer, constant in zip(pointers, self.constants_of, strict=True):
            if constant is None:
                w.go(pointer, w.place(f"i{read}", inputs[read].origin))
                read += 1
            else:
                w.go(pointer, w.place("wo", stored))
                stored += constant.size
        for pointer, table in zip(tables, self.tables, strict=True):
            if table is not None:
                w.go(pointer, w.place("wo", stored))
                stored += 256
        w.go(y, w.place("o", output.origin))

        def element(at: tuple[int, ...]) -> None:
            values = [w.load(pointer, offset) for pointer, offset in zip(pointers, at, strict=False)]
            first, second = (
                value if table is None else w.load(pointer, value)
                for value, pointer, table in zip(values[1:], tables, self.tables, strict=True)
            )
            with w.block(f"if {values[0]}"):
                w.store(y, first, at[3])
            with w.block("else"):
                w.store(y, second, at[3])

        nest(w, self.axes, (*pointers, y), element, UNROLL)
        return w
