"""Quantization: to integers and back, and products of quantized tensors."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import ClassVar, Self

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Expr, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, dim_at
from .linear_algebra import product_shape
from .windows import Window, spatial_of


@dataclass(frozen=True)
class QuantizeConfig:
    """axis: that of the scales, if they have rank 1, or of the blocks; dtype: the result's, None for the default."""

    axis: int
    block_size: int
    dtype: DType | None
    saturate: bool


def _quantize_config(a: Attributes) -> QuantizeConfig:
    dtype = None
    if a.has("output_dtype") and a.int("output_dtype"):
        dtype = a.dtype("output_dtype")
    if a.has("precision"):
        a.int("precision")  # the quotient is always taken in float32 or better
    return QuantizeConfig(a.int("axis", 1), a.int("block_size", 0), dtype, a.flag("saturate", True))


def number(e: Emitter, i: int) -> Expr | None:
    """Input i, a scale or a zero point, as a number, if it is a single constant float32 or integer."""
    value = e.node.value(i)
    if value is None or value.size != 1 or len(value.shape) > 1:
        return None
    if value.dtype is not dtypes.float32 and not value.dtype.is_integer:
        return None
    return lift(e.shortest(value))


def plain(e: Emitter, i: int) -> Expr:
    """Input i as a number if possible, else as a tensor."""
    return number(e, i) or e.x(i)


def point(e: Emitter, i: int) -> Expr | None:
    """Zero point i; None if it is omitted or 0."""
    found = plain(e, i) if e.node.has(i) else None
    return None if found == lift(0) else found


def result_dtype(e: Emitter, i: int) -> DType | None:
    """The dtype of a result that the code must name, because its zero point i is written as a number; None for uint8,
    the default."""
    dtype = e.node.dtype(i) if e.node.has(i) else dtypes.uint8
    return dtype if dtype is not dtypes.uint8 and number(e, i) is not None else None


class QuantizeLinear(Node[QuantizeConfig]):
    """x / scale + zero point, rounded and clamped to the range of the zero point's dtype."""

    since, static = (10, 13, 19, 21, 23, 24, 25, 28), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> QuantizeConfig:
        return _quantize_config(a)

    def result(self) -> DType:
        return self.dtype(2) if self.has(2) else self.config.dtype or dtypes.uint8

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.result(), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        zero = point(e, 2)
        given = result_dtype(e, 2) if self.has(2) else c.dtype
        return e.call(
            "quantize_linear",
            e.x(0),
            plain(e, 1),
            *([] if zero is None else [zero]),
            axis=default(c.axis),
            block_size=default(c.block_size),
            dtype=default(None if given is dtypes.uint8 else given),
            saturate=default(c.saturate),
        )


class DequantizeLinear(Node[QuantizeConfig]):
    """(x - zero point) * scale."""

    since, static = (10, 13, 19, 21, 23, 24, 25, 28), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> QuantizeConfig:
        return _quantize_config(a)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.config.dtype or self.dtype(1), self.shape(0)),)

    @property
    def widens(self) -> bool:
        """Weights stay in 8 bits or fewer, in files and up to the kernels that multiply integers."""
        return self.dtype(0).is_integer and self.dtype(0).bits <= 8 and len(self.shape(0) or ()) > 1

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        zero = point(e, 2)
        return e.call(
            "dequantize_linear",
            e.x(0),
            plain(e, 1),
            *([] if zero is None else [zero]),
            axis=default(c.axis),
            block_size=default(c.block_size),
            dtype=default(c.dtype),
        )


class DynamicQuantizeLinear(Plain):
    """uint8 values, with the scale and zero point that suit the input's range."""

    since = (11,)

    def infer(self) -> tuple[Type, ...]:
        return (
            TensorType(dtypes.uint8, self.shape(0)),
            TensorType(dtypes.float32, ()),
            TensorType(dtypes.uint8, ()),
        )

    def emit(self, e: Emitter) -> Emission:
        return e.results(e.call("dynamic_quantize_linear", e.x(0)), 3)


class MatMulInteger(Plain):
    """The product of two integer matrices in int32: inputs a, b and their zero points."""

    since = (10,)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.int32, product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("matmul_integer", e.x(0), e.x(1), *_points(e, 2, 4))


def _points(e: Emitter, first: int, stop: int) -> list[Expr | None]:
    """Zero points as positional arguments, without trailing ones that are omitted or 0."""
    out = [point(e, i) for i in range(first, stop)]
    while out and out[-1] is None:
        out.pop()
    return out


class QLinearMatMul(Plain):
    """The product of two quantized matrices, quantized: a, its scale and zero point, b's, and those of the result."""

    since = (10, 21)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(7), product_shape(self.shape(0), self.shape(3))),)

    def emit(self, e: Emitter) -> Emission:
        given = [e.x(i) if i in (0, 3) else plain(e, i) for i in range(8)]
        return e.call("qlinear_matmul", *given, dtype=default(result_dtype(e, 7)))


@dataclass(frozen=True)
class QConvConfig:
    window: Window
    groups: int


@dataclass(frozen=True)
class QuantizedConvolution(Node[QConvConfig], ABC):
    weight_input: ClassVar[int]

    @classmethod
    def read(cls, a: Attributes) -> QConvConfig:
        return QConvConfig(Window.read(a), a.int("group", 1))

    def window(self) -> Window:
        weight = self.shape(self.weight_input)
        rank = len(weight) if weight is not None else self.rank(0)
        if self.shape(0) is not None and self.rank(0) != rank:
            raise Problem(f"the input has rank {self.rank(0)}, the weight {rank}")
        kernel = tuple(d for d in weight[2:] if isinstance(d, int)) if weight is not None else ()
        if not kernel and not self.config.window.kernel:
            raise Problem("the size of the kernel is not known")
        return self.config.window.of(rank - 2, kernel)

    def settled(self) -> Self:
        window = self.window()
        whole = window.explicit(spatial_of(self.shape(0), len(window.kernel) + 2))
        return replace(self, config=replace(self.config, window=whole))

    def result(self) -> DType:
        raise NotImplementedError

    def infer(self) -> tuple[Type, ...]:
        shape, window = self.shape(0), self.window()
        sizes = window.sizes(spatial_of(shape, len(window.kernel) + 2))
        return (TensorType(self.result(), (dim_at(shape, 0), dim_at(self.shape(self.weight_input), 0), *sizes)),)

    def arguments(self, e: Emitter) -> list[Expr | None]:
        raise NotImplementedError

    def emit(self, e: Emitter) -> Emission:
        return self.of(e, self.arguments(e))

    def of(self, e: Emitter, arguments: list[Expr | None]) -> Expr:
        """The convolution of these, with this node's window."""
        window, shape = self.window(), self.shape(0)
        padding = window.amounts(None if shape is None else shape[2:])
        function = "conv_integer" if self.op() == "ConvInteger" else "qlinear_conv"
        groups = default(self.config.groups)
        return e.call(function, *arguments, **window.keywords(padding), groups=groups, **self.options(e))

    def options(self, e: Emitter) -> dict[str, Default]:
        return {}


class ConvInteger(QuantizedConvolution):
    """Convolution of integers in int32: x, weight and their zero points."""

    since, weight_input = (10,), 1

    def result(self) -> DType:
        return dtypes.int32

    def arguments(self, e: Emitter) -> list[Expr | None]:
        return [e.x(0), e.x(1), *_points(e, 2, 4)]


class QLinearConv(QuantizedConvolution):
    """Quantized convolution: x and weight with scales and zero points, those of the result, int32 bias."""

    since, weight_input = (10,), 3

    def result(self) -> DType:
        return self.dtype(7)

    def arguments(self, e: Emitter) -> list[Expr | None]:
        given: list[Expr | None] = [e.x(i) if i in (0, 3) else plain(e, i) for i in range(8)]
        return [*given, e.x(8)] if self.has(8) else given

    def options(self, e: Emitter) -> dict[str, Default]:
        return {"dtype": default(result_dtype(e, 7))}
