"""Elementwise functions of one tensor without parameters."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Generic, TypeVar

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emission, Emitter
from ..emit.expression import Binary, Unary, lift
from ..ir.graph import Node
from ..ir.types import ScalarType, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import Plain

C = TypeVar("C")


@dataclass(frozen=True)
class Elementwise(Node[C], ABC, Generic[C]):
    """One output with the shape of the first input, and its dtype unless `result` says another."""

    function: ClassVar[str]
    result: ClassVar[DType | None] = None

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(self.result or x.dtype, x.shape),)

    def emit(self, e: Emitter) -> Emission:
        return e.call(self.function, e.x())


@dataclass(frozen=True)
class PlainElementwise(Elementwise[None], ABC):
    """`F.function(x)`"""

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None


class Abs(PlainElementwise):
    since, function = (1, 6, 13), "abs"


class Acos(PlainElementwise):
    since, function = (7, 22), "acos"


class Acosh(PlainElementwise):
    since, function = (9, 22), "acosh"


class Asin(PlainElementwise):
    since, function = (7, 22), "asin"


class Asinh(PlainElementwise):
    since, function = (9, 22), "asinh"


class Atan(PlainElementwise):
    since, function = (7, 22), "atan"


class Atanh(PlainElementwise):
    since, function = (9, 22), "atanh"


class BitwiseNot(PlainElementwise):
    since, function = (18,), "bitwise_invert"


class Ceil(PlainElementwise):
    since, function = (1, 6, 13), "ceil"


class Cos(PlainElementwise):
    since, function = (7, 22), "cos"


class Cosh(PlainElementwise):
    since, function = (9, 22), "cosh"


class Erf(PlainElementwise):
    since, function = (9, 13), "erf"


class Exp(PlainElementwise):
    since, function = (1, 6, 13), "exp"


class Floor(PlainElementwise):
    since, function = (1, 6, 13), "floor"


class HardSwish(PlainElementwise):
    since, function = (14, 22), "hard_swish"


class IsNaN(PlainElementwise):
    since, function, result = (9, 13, 20), "isnan", dtypes.bool


class Log(PlainElementwise):
    since, function = (1, 6, 13), "log"


class Mish(PlainElementwise):
    since, function = (18, 22), "mish"


class Not(PlainElementwise):
    since, function = (1,), "logical_not"


class Reciprocal(PlainElementwise):
    since, function = (1, 6, 13), "reciprocal"


class Relu(PlainElementwise):
    since, function = (1, 6, 13, 14), "relu"


class Round(PlainElementwise):
    since, function = (11, 22), "round"


class Sigmoid(PlainElementwise):
    since, function = (1, 6, 13), "sigmoid"


class Sign(PlainElementwise):
    since, function = (9, 13), "sign"


class Sin(PlainElementwise):
    since, function = (7, 22), "sin"


class Sinh(PlainElementwise):
    since, function = (9, 22), "sinh"


class Softplus(PlainElementwise):
    since, function = (1, 22), "softplus"


class Softsign(PlainElementwise):
    since, function = (1, 22), "softsign"


class Sqrt(PlainElementwise):
    since, function = (1, 6, 13), "sqrt"


class Tan(PlainElementwise):
    since, function = (7, 22), "tan"


class Tanh(PlainElementwise):
    since, function = (1, 6, 13), "tanh"


class Neg(Plain):
    """The negative; of a Python number too."""

    since = (1, 6, 13)

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        if isinstance(t, ScalarType):
            return (ScalarType(t.dtype, -t.value if isinstance(t.value, int) else None),)
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return Unary("-", e.held(0) if isinstance(self.type(0), ScalarType) else e.x())


@dataclass(frozen=True)
class IsInfConfig:
    negative: bool
    positive: bool


class IsInf(Elementwise[IsInfConfig]):
    """Infinite, of either sign or of one."""

    since, function, result = (10, 20), "isinf", dtypes.bool

    @classmethod
    def read(cls, a: Attributes) -> IsInfConfig:
        return IsInfConfig(a.flag("detect_negative", True), a.flag("detect_positive", True))

    def emit(self, e: Emitter) -> Emission:
        if self.config.negative and self.config.positive:
            return e.call("isinf", e.x())
        if not self.config.negative and not self.config.positive:
            return e.call("zeros_like", e.x(), dtype=dtypes.bool)
        return Binary("==", e.x(), lift(float("inf" if self.config.positive else "-inf")))
