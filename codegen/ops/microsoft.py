"""com.microsoft: operators that exporters and onnxruntime's optimizer add to the standard's.

Here: their base, and activations. By subject: `microsoft_attention`, `microsoft_normalization`, `microsoft_products`,
`microsoft_quantized`, `microsoft_quantized_products`, and `microsoft_standard`, the standard's own under another name.
ONNX has no schemas for them, so each class declares its number of inputs, and an attribute that its `read` does not use
is a Problem.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Generic, Self, TypeVar

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes

FAMILY = "com.microsoft"

C = TypeVar("C")
MANY = 1 << 20


@dataclass(frozen=True)
class Contrib(Node[C], ABC, Generic[C]):
    """A node of com.microsoft; `arity`: the least and the largest number of inputs."""

    domain: ClassVar[str] = "com.microsoft"
    arity: ClassVar[tuple[int, int]]

    @classmethod
    def spec(cls) -> str:
        return f"https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#{cls.domain}.{cls.op()}"

    @classmethod
    def make(cls, name: str, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], a: Attributes) -> Self:
        low, high = cls.arity
        if not low <= len(inputs) <= high:
            expected = f"at least {low}" if high >= MANY else str(low) if low == high else f"{low} to {high}"
            raise Problem(f"has {len(inputs)} inputs, expected {expected}")
        node = super().make(name, inputs, outputs, a)
        if a.unread():
            raise Problem(f"has the attribute {a.unread()[0]!r}, which is not known")
        return node


@dataclass(frozen=True)
class PlainContrib(Contrib[None], ABC):
    """Without attributes."""

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None


def trailing(e: Emitter, first: int, stop: int) -> list[Expr | None]:
    """Inputs first to stop as positional arguments: None for omitted ones, nothing after the last given one."""
    return trimmed([e.optional(i) for i in range(first, stop)])


def trimmed(arguments: list[Expr | None]) -> list[Expr | None]:
    """Positional arguments up to the last given one."""
    while arguments and arguments[-1] is None:
        arguments.pop()
    return arguments


# -- activations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Activation(PlainContrib, ABC):
    """A function of x, or of x plus a bias along the last axis."""

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def biased(self, e: Emitter) -> Expr:
        return Binary("+", e.x(0), e.x(1)) if self.has(1) else e.x(0)


class Gelu(Activation):
    """x · Φ(x)"""

    arity = (1, 1)

    def emit(self, e: Emitter) -> Emission:
        return e.call("gelu", e.x())


class BiasGelu(Activation):
    """The GELU of x + bias."""

    arity = (2, 2)

    def emit(self, e: Emitter) -> Emission:
        return e.call("gelu", self.biased(e))


class FastGelu(Activation):
    """GELU's tanh approximation, of x or of x + bias."""

    arity = (1, 2)

    def emit(self, e: Emitter) -> Emission:
        return e.call("gelu", self.biased(e), approximate="tanh")


class BiasSplitGelu(PlainContrib):
    """The first half of x + bias along the last axis, times the GELU of the second."""

    arity = (2, 2)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None or not x.shape:
            return (TensorType(x.dtype),)
        last = x.shape[-1]
        return (TensorType(x.dtype, (*x.shape[:-1], last // 2 if isinstance(last, int) else None)),)

    def emit(self, e: Emitter) -> Emission:
        halves = e.assign("halves", e.call("split", Binary("+", e.x(0), e.x(1)), 2, axis=-1))
        return Binary("*", e.index(halves, 0), e.call("gelu", e.index(halves, 1)))


@dataclass(frozen=True)
class AlphaConfig:
    alpha: float


class QuickGelu(Contrib[AlphaConfig]):
    """x · sigmoid(alpha · x)"""

    arity = (1, 1)

    @classmethod
    def read(cls, a: Attributes) -> AlphaConfig:
        return AlphaConfig(a.float("alpha", 1.702))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("swish", e.x(), alpha=default(self.config.alpha))


@dataclass(frozen=True)
class BiasSoftmaxConfig:
    """inner: the bias has leading axes right before `axis`; otherwise it has none of the axes before it."""

    axis: int
    inner: bool


class BiasSoftmax(Contrib[BiasSoftmaxConfig]):
    """Softmax of scores + bias over the axes from `axis` to the last."""

    arity = (2, 2)

    @classmethod
    def read(cls, a: Attributes) -> BiasSoftmaxConfig:
        return BiasSoftmaxConfig(a.int("axis", 1), bool(a.int("is_inner_broadcast")))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        rank, axis = self.rank(0), self.config.axis
        if axis % rank != rank - 1:
            raise Problem(f"only the last axis is supported, found axis {axis} of an input of rank {rank}")
        if self.config.inner and self.rank(1) != rank:
            raise Problem(f"a bias of rank {self.rank(1)} broadcast inside scores of rank {rank} is not supported")
        return e.call("softmax", Binary("+", e.x(0), e.x(1)))


class ScaledSiLU(Contrib[AlphaConfig]):
    """SiLU of x times a scale: input 1, else alpha."""

    arity = (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> AlphaConfig:
        return AlphaConfig(a.float("alpha", 1.0))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        scale = e.operand(1) if self.has(1) else lift(self.config.alpha)
        return e.call("silu", e.x(0) if scale == lift(1.0) else Binary("*", e.x(0), scale))
