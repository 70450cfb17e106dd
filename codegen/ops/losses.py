"""Classification losses."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr
from ..ir.choices import LossReduction
from ..ir.graph import Node
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes


@dataclass(frozen=True)
class LossConfig:
    """ignore_index: a class that does not count."""

    ignore_index: int | None
    reduction: LossReduction


@dataclass(frozen=True)
class Loss(Node[LossConfig], ABC):
    """Inputs: predictions (n, classes, ...), targets (n, ...), weights of classes."""

    function: ClassVar[str]

    @classmethod
    def read(cls, a: Attributes) -> LossConfig:
        reduction = a.choice("reduction", LossReduction, LossReduction.MEAN)
        return LossConfig(a.int("ignore_index") if a.has("ignore_index") else None, reduction)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        shape = self.shape(1) if self.config.reduction == "none" else ()
        return (TensorType(x.dtype, shape), x)

    def loss(self, e: Emitter) -> Expr:
        c = self.config
        weight = [e.x(2)] if self.has(2) else []
        return e.call(
            self.function,
            e.x(0),
            e.x(1),
            *weight,
            ignore_index=default(c.ignore_index),
            reduction=default(c.reduction),
        )


class NegativeLogLikelihoodLoss(Loss):
    """The loss of log-probabilities."""

    since, function = (12, 13, 22), "nll_loss"

    def emit(self, e: Emitter) -> Emission:
        return self.loss(e)


class SoftmaxCrossEntropyLoss(Loss):
    """The loss of logits; output 1 is their log-softmax."""

    since, function = (12, 13), "cross_entropy"

    def emit(self, e: Emitter) -> Emission:
        if len(self.outputs) < 2:
            return self.loss(e)
        return self.loss(e), e.call("log_softmax", e.x(0), axis=1)
