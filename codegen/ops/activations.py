"""Activations with parameters."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from emberlet import functional

from ..emit.emitter import Emission, Emitter, default, default_of
from ..emit.expression import Binary, lift
from ..ir.choices import GeluApproximation
from ..ir.problem import Problem
from ..ir.types import TensorType, Type, describe_shape
from ..ir.value import Value
from ..records import dataclass
from .attributes import Attributes
from .base import reshaped
from .elementwise import Elementwise


@dataclass(frozen=True)
class AlphaConfig:
    alpha: float


@dataclass(frozen=True)
class Alpha(Elementwise[AlphaConfig], ABC):
    """`F.function(x, alpha=…)`; the keyword is omitted if the functional layer has the same default."""

    keyword: ClassVar[str] = "alpha"

    @classmethod
    def default_alpha(cls) -> float:
        """ONNX's default, which is also the function's."""
        found = default_of(getattr(functional, cls.function), cls.keyword)
        assert isinstance(found, float)
        return found

    @classmethod
    def read(cls, a: Attributes) -> AlphaConfig:
        return AlphaConfig(a.float("alpha", cls.default_alpha()))

    def emit(self, e: Emitter) -> Emission:
        return e.call(self.function, e.x(), **{self.keyword: default(self.config.alpha)})


class Celu(Alpha):
    since, function = (12, 28), "celu"


class Elu(Alpha):
    since, function = (1, 6, 22), "elu"


class LeakyRelu(Alpha):
    since, function, keyword = (1, 6, 16), "leaky_relu", "negative_slope"


class Swish(Alpha):
    """x · sigmoid(alpha · x)"""

    since, function = (24,), "swish"

    def emit(self, e: Emitter) -> Emission:
        return e.call("silu", e.x()) if self.config.alpha == 1.0 else super().emit(e)


class ThresholdedRelu(Alpha):
    since, function = (10, 22), "thresholded_relu"


@dataclass(frozen=True)
class HardSigmoidConfig:
    alpha: float = 0.2
    beta: float = 0.5


class HardSigmoid(Elementwise[HardSigmoidConfig]):
    """max(0, min(1, alpha · x + beta))"""

    since, function = (1, 6, 22), "hard_sigmoid"

    def emit(self, e: Emitter) -> Emission:
        return e.call("hard_sigmoid", e.x(), alpha=default(self.config.alpha), beta=default(self.config.beta))


@dataclass(frozen=True)
class SeluConfig:
    alpha: float
    gamma: float


class Selu(Elementwise[SeluConfig]):
    """Opset 1 has rounder defaults than 6."""

    since, function = (1, 6, 22), "selu"

    @classmethod
    def read(cls, a: Attributes) -> SeluConfig:
        alpha, gamma = (1.6732, 1.0507) if a.opset < 6 else (1.6732632, 1.050701)
        return SeluConfig(a.float("alpha", alpha), a.float("gamma", gamma))

    def emit(self, e: Emitter) -> Emission:
        return e.call("selu", e.x(), alpha=default(self.config.alpha), gamma=default(self.config.gamma))


@dataclass(frozen=True)
class ShrinkConfig:
    bias: float = 0.0
    lambd: float = 0.5


class Shrink(Elementwise[ShrinkConfig]):
    """x + bias below -lambd, x - bias above lambd, 0 between."""

    since, function = (9,), "shrink"

    def emit(self, e: Emitter) -> Emission:
        return e.call("shrink", e.x(), lambd=default(self.config.lambd), bias=default(self.config.bias))


@dataclass(frozen=True)
class GeluConfig:
    approximate: GeluApproximation = GeluApproximation.NONE


class Gelu(Elementwise[GeluConfig]):
    """x · Φ(x), or its tanh approximation."""

    since, function = (20,), "gelu"

    def emit(self, e: Emitter) -> Emission:
        return e.call("gelu", e.x(), approximate=default(self.config.approximate))


@dataclass(frozen=True)
class PReluConfig:
    per_channel: bool


class PRelu(Elementwise[PReluConfig]):
    """A slope that broadcasts to x's shape; before opset 7, one per channel. A layer if it is a constant of one number,
    or of one per channel."""

    since, static, function = (1, 6, 7, 9, 16), (1,), "prelu"

    @classmethod
    def read(cls, a: Attributes) -> PReluConfig:
        return PReluConfig(a.opset < 7)

    def slopes(self) -> Value | None:
        """The slope as a layer's weight: a constant of shape (1,) or (channels,)."""
        value, rank = self.value(1), self.tensor(0).rank
        if value is None or not value.dtype.is_float or value.size == 0:
            return None
        if value.size == 1 and rank and len(value.shape) <= rank:  # a layer gives a single number an axis
            return reshaped(value, (1,))
        if self.config.per_channel:
            return value if len(value.shape) == 1 else None
        if rank is None or rank < 2 or len(value.shape) > rank:
            return None
        shape = (1,) * (rank - len(value.shape)) + value.shape
        return reshaped(value, (value.size,)) if shape[1] == value.size else None

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if self.broadcasts() is False:
            slope = describe_shape(self.tensor(1).shape)
            raise Problem(f"the slope's shape {slope} does not broadcast to {describe_shape(x.shape)}, the shape of x")
        return (TensorType(x.dtype, x.shape),)

    def broadcasts(self) -> bool | None:
        """Whether the slope broadcasts to x's shape; None if that depends on sizes known only at run time."""
        shape, slope = self.shape(0), self.tensor(1).shape
        if shape is None or slope is None:
            return None
        if self.config.per_channel and len(slope) == 1 and slope != (1,) and len(shape) > 1:
            slope = (*slope, *(1,) * (len(shape) - 2))
        if len(slope) > len(shape):
            return False
        pairs = [(s, d) for s, d in zip(slope, shape[len(shape) - len(slope) :], strict=True) if s not in (1, d)]
        if any(isinstance(s, int) and isinstance(d, int) for s, d in pairs):
            return False
        return None if pairs or any(s is None for s in slope) else True

    def emit(self, e: Emitter) -> Emission:
        slopes = self.slopes()
        if slopes is not None:
            count = default(slopes.size)
            return e.apply(e.layer("PRelu", weights={"weight": slopes}, num_parameters=count), e.x(0))
        if self.config.per_channel:
            return e.call("prelu", e.x(0), e.x(1))
        slope = e.operand(1)
        if not self.broadcasts():  # known only at run time
            slope = e.call("broadcast_to", slope, e.shape_of(e.x(0)))
        return e.call("where", Binary("<", e.x(0), lift(0)), Binary("*", e.x(0), slope), e.x(0))


class SwiGLU(Elementwise[AlphaConfig]):
    """Swish of the first input, times the second."""

    since, function = (28,), "swiglu"

    @classmethod
    def read(cls, a: Attributes) -> AlphaConfig:
        return AlphaConfig(a.float("alpha", 1.0))

    def emit(self, e: Emitter) -> Emission:
        return e.call("swiglu", e.x(0), e.x(1), alpha=default(self.config.alpha))
