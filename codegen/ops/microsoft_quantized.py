"""com.microsoft: operators on quantized tensors.

All but products dequantize their operands, compute, and quantize the result, as onnxruntime defines.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Generic, TypeVar

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type, broadcast
from ..records import dataclass
from . import quantization
from .attributes import Attributes
from .base import axes_of, axis_of
from .microsoft import MANY, Contrib, PlainContrib
from .microsoft_products import CHANNELS_FIRST, CHANNELS_LAST, channels_first, channels_last
from .pooling import AveragePool, GlobalAveragePool, PoolConfig
from .quantization import plain, point, result_dtype

FAMILY = "com.microsoft"

C = TypeVar("C")


def real(e: Emitter, x: int) -> Expr:
    """Input x dequantized; its scale and zero point are the next two inputs."""
    given = [] if (zero := point(e, x + 2)) is None else [zero]
    return e.call("dequantize_linear", e.x(x), plain(e, x + 1), *given)


def quantized(e: Emitter, value: Expr, scale: int) -> Expr:
    """`value` with the scale of one input and the zero point of the next; uint8 without a zero point."""
    zero = point(e, scale + 1)
    dtype = result_dtype(e, scale + 1)
    given = [] if zero is None else [zero]
    return e.call("quantize_linear", value, plain(e, scale), *given, dtype=default(dtype))


# -- to integers and back ---------------------------------------------------------------------------------------------


class QuantizeLinear(Contrib[quantization.QuantizeConfig], quantization.QuantizeLinear):
    """As the standard's; without an axis the scale is one number."""

    arity, static = (2, 3), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> quantization.QuantizeConfig:
        return quantization.QuantizeConfig(a.int("axis", 1), 0, None, True)


class DequantizeLinear(Contrib[quantization.QuantizeConfig], quantization.DequantizeLinear):
    """As the standard's; without an axis the scale is one number."""

    arity, static = (2, 3), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> quantization.QuantizeConfig:
        return quantization.QuantizeConfig(a.int("axis", 1), 0, None, True)


# -- elementwise ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QLinear(Contrib[C], ABC, Generic[C]):
    """A function of one quantized tensor: inputs x, its scale and zero point, scale and zero point of the result."""

    arity: ClassVar[tuple[int, int]] = (4, 5)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def function(self, e: Emitter, x: Expr) -> Expr:
        raise NotImplementedError

    def emit(self, e: Emitter) -> Emission:
        return quantized(e, self.function(e, real(e, 0)), 3)


class QLinearSigmoid(QLinear[None]):
    """1 / (1 + exp(-x))"""

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None

    def function(self, e: Emitter, x: Expr) -> Expr:
        return e.call("sigmoid", x)


@dataclass(frozen=True)
class AlphaConfig:
    alpha: float


class QLinearLeakyRelu(QLinear[AlphaConfig]):
    """x, or alpha · x where it is negative."""

    @classmethod
    def read(cls, a: Attributes) -> AlphaConfig:
        return AlphaConfig(a.float("alpha", 0.01))

    def function(self, e: Emitter, x: Expr) -> Expr:
        return e.call("leaky_relu", x, negative_slope=default(self.config.alpha))


@dataclass(frozen=True)
class SoftmaxConfig:
    """flattened: the tensor is viewed as a matrix, split at `axis`, as before opset 13 of the standard."""

    axis: int
    flattened: bool


class QLinearSoftmax(QLinear[SoftmaxConfig]):
    """Softmax along an axis."""

    @classmethod
    def read(cls, a: Attributes) -> SoftmaxConfig:
        return SoftmaxConfig(a.int("axis", -1), a.int("opset") < 13)

    def function(self, e: Emitter, x: Expr) -> Expr:
        c = self.config
        if not c.flattened:
            return e.call("softmax", x, axis=default(c.axis))
        rank = self.rank(0)
        axis = axis_of(c.axis, rank)
        if axis == rank - 1:
            return e.call("softmax", x)
        return e.method(e.call("softmax", e.method(x, "flatten", axis)), "reshape", e.shape_of(e.x(0)))


@dataclass(frozen=True)
class MeanConfig:
    axes: tuple[int, ...] = ()
    keepdims: bool = True


class QLinearReduceMean(QLinear[MeanConfig]):
    """The mean over axes."""

    def axes(self) -> tuple[int, ...]:
        rank = self.rank(0)
        return tuple(sorted(axes_of(self.config.axes or tuple(range(rank)), rank)))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (x,)
        axes, keep = self.axes(), self.config.keepdims
        dims: list[Dim] = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        return (TensorType(x.dtype, tuple(dims)),)

    def function(self, e: Emitter, x: Expr) -> Expr:
        return e.call("mean", x, axis=self.axes(), keepdims=default(self.config.keepdims))


@dataclass(frozen=True)
class QLinearBinary(PlainContrib, ABC):
    """An operator on two quantized tensors, each with scale and zero point; then those of the result."""

    arity: ClassVar[tuple[int, int]] = (7, 8)
    symbol: ClassVar[str]

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), broadcast(self.shape(0), self.shape(3))),)

    def emit(self, e: Emitter) -> Emission:
        return quantized(e, Binary(self.symbol, real(e, 0), real(e, 3)), 6)


class QLinearAdd(QLinearBinary):
    """a + b of quantized tensors that broadcast."""

    symbol = "+"


class QLinearMul(QLinearBinary):
    """a * b of quantized tensors that broadcast."""

    symbol = "*"


class QLinearWhere(PlainContrib):
    """One quantized tensor where a condition holds, another elsewhere."""

    arity = (9, 9)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(1), broadcast(self.shape(0), self.shape(1), self.shape(4))),)

    def emit(self, e: Emitter) -> Emission:
        return quantized(e, e.call("where", e.x(0), real(e, 1), real(e, 4)), 7)


@dataclass(frozen=True)
class AxisConfig:
    axis: int


class QLinearConcat(Contrib[AxisConfig]):
    """Quantized tensors joined: inputs scale and zero point of the result, then each tensor with its own."""

    arity = (5, MANY)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis"))

    def infer(self) -> tuple[Type, ...]:
        if (len(self.inputs) - 2) % 3:
            raise Problem(f"has {len(self.inputs)} inputs; expected 2, and 3 for each tensor")
        shapes = [self.shape(i) for i in range(2, len(self.inputs), 3)]
        first = shapes[0]
        if first is None:
            return (TensorType(self.dtype(1)),)
        axis = axis_of(self.config.axis, len(first))
        sizes = [None if s is None else s[axis] for s in shapes]
        known = [d for d in sizes if isinstance(d, int)]
        total = sum(known) if len(known) == len(sizes) else None
        return (TensorType(self.dtype(1), (*first[:axis], total, *first[axis + 1 :])),)

    def emit(self, e: Emitter) -> Emission:
        parts = [real(e, i) for i in range(2, len(self.inputs), 3)]
        return quantized(e, e.call("concat", parts, axis=self.config.axis), 0)


# -- pooling ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QPoolConfig:
    pool: PoolConfig
    channels_last: bool


class QLinearAveragePool(Contrib[QPoolConfig]):
    """Means of windows of (n, c, *spatial), or of (n, *spatial, c)."""

    arity = (4, 5)

    @classmethod
    def read(cls, a: Attributes) -> QPoolConfig:
        return QPoolConfig(AveragePool.read(a.at(11)), a.flag("channels_last"))

    def pool(self) -> AveragePool:
        x = self.inputs[0]
        inputs = (channels_first(x) if self.config.channels_last else x,)
        return AveragePool(self.name, inputs, self.outputs, self.config.pool)

    def infer(self) -> tuple[Type, ...]:
        (t,) = self.pool().infer()
        return (channels_last(t) if self.config.channels_last else t,)

    def emit(self, e: Emitter) -> Emission:
        x, last = real(e, 0), self.config.channels_last
        out = self.pool().pool(e, "avg_pool", e.method(x, *CHANNELS_FIRST) if last else x)
        return quantized(e, e.method(out, *CHANNELS_LAST) if last else out, 3)


@dataclass(frozen=True)
class ChannelsConfig:
    channels_last: bool = False


class QLinearGlobalAveragePool(Contrib[ChannelsConfig]):
    """The mean of each channel; the spatial axes stay, with size 1."""

    arity = (5, 5)

    def infer(self) -> tuple[Type, ...]:
        x, last = self.inputs[0], self.config.channels_last
        pool = GlobalAveragePool(self.name, (channels_first(x) if last else x,), self.outputs, None)
        (t,) = pool.infer()
        return (channels_last(t) if last else t,)

    def emit(self, e: Emitter) -> Emission:
        x, last = real(e, 0), self.config.channels_last
        out = e.call("global_avg_pool", e.method(x, *CHANNELS_FIRST) if last else x)
        return quantized(e, e.method(out, *CHANNELS_LAST) if last else out, 3)
