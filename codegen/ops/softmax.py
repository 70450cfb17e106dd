"""Softmax and its relatives."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from ..emit.emitter import Emission, Emitter, default
from ..ir.graph import Node
from ..ir.types import Type
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of

FAMILY = "normalization"


@dataclass(frozen=True)
class SoftmaxConfig:
    """flattened: before opset 13 the tensor was viewed as a matrix, split at `axis`."""

    axis: int
    flattened: bool


@dataclass(frozen=True)
class SoftmaxLike(Node[SoftmaxConfig], ABC):
    function: ClassVar[str]

    @classmethod
    def read(cls, a: Attributes) -> SoftmaxConfig:
        return SoftmaxConfig(a.int("axis", -1 if a.opset >= 13 else 1), a.opset < 13)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is not None and x.shape:
            axis_of(self.config.axis, len(x.shape))
        return (x,)

    def emit(self, e: Emitter) -> Emission:
        c, x = self.config, e.x()
        if not c.flattened:
            return e.call(self.function, x, axis=default(c.axis))
        rank = self.rank(0)
        axis = axis_of(c.axis, rank)
        if axis == rank - 1:
            return e.call(self.function, x)
        shape = e.shape_of(x)
        cut = e.method(x, "flatten", axis) if rank - axis > 1 else x
        return e.method(e.call(self.function, cut), "reshape", shape)


class Softmax(SoftmaxLike):
    since, function = (1, 11, 13), "softmax"


class LogSoftmax(SoftmaxLike):
    since, function = (1, 11, 13), "log_softmax"


class Hardmax(SoftmaxLike):
    since, function = (1, 11, 13), "hardmax"
