"""LSTM layers that multiply integers, which a pass makes from DynamicQuantizeLSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.tensor import Tensor

from ..emit.emitter import Emitter, default
from ..emit.expression import Expr
from ..ir.types import Dim
from ..ir.value import Stored, Value
from .base import dim_at
from .recurrent_layers import GATES, RecurrentLayer

FAMILY = "the compiler's own"
SCALES = {1: 6, 2: 8}  # input of a weight -> that of its scales; their zero points follow
MIDDLE = 128  # the level of zero of weights without zero points


class QuantizedRecurrentLayer(RecurrentLayer):
    """A RecurrentLayer whose weights are int8 or uint8, w (directions, features, 4 · d_hidden) and r (directions,
    d_hidden, 4 · d_hidden), followed after the states by scales and zero points of w and those of r: one for each
    direction, or for each column of it. All but x and the states are constants."""

    static: ClassVar[tuple[int, ...]] = (1, 2, 3, 6, 7, 8, 9)

    def hidden(self) -> Dim:
        return dim_at(self.shape(2), 1)

    def layer(self, e: Emitter) -> Expr:
        features, width = (self._weight(i).shape[1] for i in (1, 2))
        return self.field(e, "Quantized", features, width, affine=default(self.affine()))

    def affine(self) -> bool:
        """Whether a zero point is not the middle."""
        return any(bool((self.levels(i) != MIDDLE).any()) for i in (7, 9) if self.value(i) is not None)

    def levels(self, i: int) -> Tensor:
        """Integers of input i as those of uint8, in int32."""
        value = self._weight(i)
        found: Tensor = value.tensor().astype(dtypes.int32)
        return found + MIDDLE if value.dtype is dtypes.int8 else found

    def matrix(self, name: str, i: int, at: int, width: int, columns: int) -> dict[str, Value | None]:
        gates = len(GATES[self.config.kind])
        direction, first = at // gates, at % gates * width
        held = self._weight(i)

        def values() -> Tensor:
            return self.levels(i)[direction, :, first : first + width].mT.reshape((width, 1, columns))

        def each(k: int, x: Tensor) -> Tensor:
            """The scales or zero points of input k for the gate's outputs."""
            rows = x.reshape((held.shape[0], -1))[direction]
            return rows[first : first + width] if rows.size > 1 else rows.broadcast_to((width,))

        def part(k: int, dtype: DType, shape: tuple[int, ...], read: Callable[[], Tensor]) -> Value:
            def load() -> bytes:
                x = read().astype(dtype)
                return bytes(x.backend.to_bytes(x))

            key = ("gate", at, i, self._weight(k).content())
            return Value(dtype, shape, Stored(load, key), ("gate", at, i, self._weight(k).key()))

        scale, zero = SCALES[i], SCALES[i] + 1
        return {
            f"{name}.values": part(i, dtypes.uint8, (width, 1, columns), values),
            f"{name}.scale": part(
                scale, dtypes.float32, (width,), lambda: each(scale, self._weight(scale).tensor())
            ),
            f"{name}.zero_point": part(zero, dtypes.uint8, (width,), lambda: each(zero, self.levels(zero)))
            if self.affine()
            else None,
        }  # fmt: skip
