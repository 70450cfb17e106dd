"""Elementwise layers: sums, differences and products of two tensors, and functions of one tensor as tables.

The second operand may be broadcast along rows, columns or channels, and may be a constant stored with the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isinf, isnan
from typing import ClassVar

import numpy as np
from emberlet.errors import UnsupportedError

from ..functions import Chain, apply, lines
from ..quantization.doubled import DoubledRequant
from ..quantization.reference import LIMIT, Bytes, Requant
from ..quantization.sixteen import to_bytes
from ..vectorized import evaluate
from .layer import Array, Layer, View, as_image, dense_view, emit_clamp, emit_clamp_float, emit_requantize
from .nest import MOST_UNROLL, Axis, copied, image_axes, nest, start_at
from .words import element_at, store_element
from .writer import TABLE, Pointer, Writer, X, Y, Z

CONSTANT = Pointer("z", "W")

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class _Binary(Layer):
    """operation: see the subclass; shape: of the first operand and of the output; other: the shape of the second
    operand, an image whose sides are those of the first or 1; constant: its values if it is constant; `inputs` then has
    one name.
    """

    operation: str
    shape: tuple[int, ...]
    other: tuple[int, ...]
    constant: Array | None

    unroll: ClassVar[int] = MOST_UNROLL
    width: ClassVar[int] = 1
    """Bytes of an element."""

    takes_borders = True
    in_place = True

    @property
    def is_doubled(self) -> bool:
        """Whether the arithmetic is TensorFlow Lite's."""
        return isinstance(getattr(self, "requant", None), DoubledRequant)

    def reference(self, *inputs: Array) -> Array:
        is_float = inputs[0].dtype.kind == "f"
        w = Writer("float32" if is_float else "bytecode", (), ())
        self.begin(w)
        self.compute(w, "a", "b")
        a, b = (v.astype(np.float64 if is_float else np.int64) for v in self.operands(inputs))
        y = evaluate(w.lines, a=a, b=b, to=0, T=np.asarray(self.constants()[1]))
        return (to_bytes(y) if self.width == 2 else y.astype(inputs[0].dtype)).reshape(self.shape)

    def operands(self, inputs: Sequence[Array]) -> tuple[Array, Array]:
        """The numbers of both operands as images."""
        second = inputs[1] if self.constant is None else self.constant
        return inputs[0].reshape(as_image(self.shape)), second.reshape(as_image(self.other))

    def constants(self) -> tuple[Array, list[int]]:
        return np.empty(0) if self.constant is None else self.constant.reshape(-1), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        x = inputs[0]
        z = inputs[1] if self.constant is None else dense_view(self.other)
        second = Z if self.constant is None else CONSTANT
        w = Writer(dialect, (X, "s", second), self.places())
        w.go(X, w.place("i0", x.origin))
        w.go(second, w.place("i1", z.origin) if self.constant is None else w.place("wo"))
        w.go(Y, w.place("o", output.origin))
        self.begin(w)
        h, cols, c = x.shape
        each = self.width
        sides = (z.shape[0], z.shape[1], z.shape[2] // each)
        steps = [0 if side == 1 else step for side, step in zip(sides, (z.pitch, z.shape[2], each), strict=True)]
        axes = [
            Axis(h, (x.pitch, steps[0], output.pitch)),
            Axis(cols, (c, steps[1], c)),
            Axis(c // each, (each, steps[2], each)),
        ]

        def element(at: tuple[int, ...]) -> None:
            self.compute(w, element_at(w, X, at[0], each), element_at(w, second, at[1], each))
            store_element(w, Y, at[2], each)

        # One element in TensorFlow Lite's arithmetic takes about 500 bytes of machine code.
        nest(w, axes, (X, second, Y), element, 2 if self.is_doubled else self.unroll)
        return w

    def begin(self, w: Writer) -> None:
        """Write the code that runs once, before the loops."""

    def compute(self, w: Writer, a: str, b: str) -> None:
        """Set `s` from one element of each operand."""
        raise NotImplementedError


@dataclass(frozen=True)
class Binary(_Binary):
    """Int8; operation: "add", "sub" or "mul". zeros: the operands' zero points.

    For a sum, `factors` rescale both operands to `2**-shift` steps of the output; for a product, `requant` rescales.
    """

    zeros: tuple[int, int]
    factors: tuple[int, int]
    requant: Requant

    @property
    def offset(self) -> int:
        """The initial value of a sum: rounding and zero points."""
        a, b = self.factors
        return self.requant.offset - a * self.zeros[0] - b * self.zeros[1]

    def compute(self, w: Writer, a: str, b: str) -> None:
        r = self.requant
        if self.operation == "mul":
            w.line(f"s = ({a} - {self.zeros[0]}) * ({b} - {self.zeros[1]})")
            emit_requantize(w, r, [str(word) for word in r.packed(0)])
            return
        first, second = self.factors
        sign = "+" if second >= 0 else "-"
        start = f"+ {self.offset}" if self.offset >= 0 else f"- {-self.offset}"
        w.line(f"s = {a} * {first} {sign} {b} * {abs(second)} {start} >> {r.shift}")
        emit_clamp(w, r.low, r.high)


def sum_factors(
    ratios: tuple[float, float], zeros: tuple[int, int], zero: int, low: int, high: int, what: str
) -> tuple[tuple[int, int], Requant]:
    """Factors and shift for `Binary`. ratios: both scales over the output's, the second one negative for a difference.

    Raises UnsupportedError if the output's scale is too fine for its operands'.
    """
    for shift in range(22, 0, -1):
        a, b = (round(r * 2**shift) for r in ratios)
        half = 1 << shift >> 1
        if 255 * (abs(a) + abs(b)) * 2 + (zero << shift) + half < LIMIT:
            return (a, b), Requant((), shift, 0, zero, low, high)
    raise UnsupportedError(
        f"{what}: its operands' scales are {max(map(abs, ratios)):.3g} times the output's; "
        "calibrate with samples that reach the output's true range, or build the model with --float"
    )


@dataclass(frozen=True)
class BinaryFloat(_Binary):
    """In float32, clamped to low..high; operation: "add", "sub", "mul" or "div".

    grid: scale and zero point of a constant that the model quantized.
    """

    low: float = -inf
    high: float = inf
    grid: tuple[float, int] | None = None

    def compute(self, w: Writer, a: str, b: str) -> None:
        if self.operation == "div":
            # MicroPython reports a division by zero as an error.
            w.line(f"v = {b}")
            w.line(f"s = {a} / v if v else {a} * float('inf')")
        else:
            w.line(f"s = {a} {SIGNS[self.operation]} {b}")
        emit_clamp_float(w, self.low, self.high)


@dataclass(frozen=True)
class ImputeFloat(_Binary):
    """The constant where the input is `gap`, which may be NaN, else the input. In float32."""

    gap: float

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s = {a}")
        gap = float(np.float32(self.gap))
        test = "s != s" if isnan(gap) else f"s == float('{gap!r}')" if isinf(gap) else f"s == {gap!r}"
        with w.block(f"if {test}"):
            w.line(f"s = {b}")


@dataclass(frozen=True)
class WholeQuotientFloat(_Binary):
    """The quotient of whole numbers, cut to a whole number; 0 where the divisor is 0. In float32."""

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"v = {b}")
        w.line(f"s = float(int({a} / v)) if v else 0.0")


@dataclass(frozen=True)
class Lookup(Layer):
    """Any function of one byte. table: its 256 values."""

    shape: tuple[int, ...]
    table: Bytes

    takes_borders = True
    in_place = True

    def reference(self, *inputs: Bytes) -> Bytes:
        return self.table[inputs[0]]

    def constants(self) -> tuple[Array, list[int]]:
        return self.table, []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y, TABLE), self.places())
        start_at(w, inputs[0], output)
        w.go(TABLE, w.place("wo"))
        copied(w, image_axes((inputs[0], output)), X, TABLE)
        return w


@dataclass(frozen=True)
class MapFloat(Layer):
    """A function of one float."""

    shape: tuple[int, ...]
    chain: Chain

    takes_borders = True
    in_place = True

    def reference(self, *inputs: Array) -> Array:
        return apply(self.chain, inputs[0])

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, Y), self.places())
        start_at(w, inputs[0], output)

        def element(at: tuple[int, ...]) -> None:
            w.line(f"v = {w.load(X, at[0])}")
            for line in lines(self.chain):
                w.line(line)
            w.store(Y, "v", at[1])

        nest(w, image_axes((inputs[0], output)), (X, Y), element)
        return w
