"""Normalisation, softmax, dropout."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

from emberlet import dtypes

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Binary, lift
from ..ir.node import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from .attributes import Attributes
from .base import axis_of


@dataclass(frozen=True)
class BatchNormalizationConfig:
    epsilon: float
    momentum: float
    training: bool


class BatchNormalization(Node[BatchNormalizationConfig]):
    """Per channel, with running statistics; in training mode (opset 14) with the batch's, which it also returns."""

    since, static = (1, 6, 7, 9, 14, 15), (1, 2, 3, 4)

    @classmethod
    def read(cls, a: Attributes) -> BatchNormalizationConfig:
        if a.opset < 7 and not a.flag("is_test"):
            training = len([o for o in a.outputs if o.present]) > 1
        else:
            training = a.flag("training_mode") if a.opset >= 14 else len([o for o in a.outputs if o.present]) > 1
        if a.opset < 9 and not a.flag("spatial", True):
            raise Problem("statistics for each element (spatial=0) are not supported")
        return BatchNormalizationConfig(a.float("epsilon", 1e-5), a.float("momentum", 0.9), training)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        statistics = self.tensor(3)
        return (x, statistics, statistics, statistics, statistics)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        epsilon = default(c.epsilon, 1e-5)
        values = [self.value(i) for i in range(1, 5)]
        if c.training:
            return self.trained(e, epsilon)
        if any(v is None for v in values):
            x, scale, bias, mean, var = (e.x(i) for i in range(5))
            return e.call("batch_norm", x, mean, var, scale, bias, epsilon=epsilon)
        names = ("weight", "bias", "running_mean", "running_var")
        rank = self.tensor(0).rank
        kind = f"BatchNorm{rank - 2}d" if rank in (3, 4, 5) else "BatchNorm"
        size = values[0].shape[0] if values[0] is not None else 0
        layer = e.layer(kind, size, weights=dict(zip(names, values, strict=True)), epsilon=epsilon)
        return e.apply(layer, e.x(0))

    def trained(self, e: Emitter, epsilon: Default) -> Emission:
        """With the batch's own statistics; the running ones move toward them."""
        x, scale, bias, mean, var = (e.x(i) for i in range(5))
        axes = (0, *range(2, self.rank(0)))
        batch_mean = e.assign("batch_mean", e.call("mean", x, axis=axes))
        batch_var = e.assign("batch_var", e.call("var", x, axis=axes))
        y = e.call("batch_norm", x, batch_mean, batch_var, scale, bias, epsilon=epsilon)
        keep = self.config.momentum
        moved = [
            Binary("+", Binary("*", old, lift(keep)), Binary("*", new, lift(round(1 - keep, 9))))
            for old, new in ((mean, batch_mean), (var, batch_var))
        ]
        return (y, *moved, batch_mean, batch_var)[: len(self.outputs)]


@dataclass(frozen=True)
class EpsilonConfig:
    epsilon: float


class InstanceNormalization(Node[EpsilonConfig]):
    since, static = (1, 6, 22), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> EpsilonConfig:
        a.has("consumed_inputs")
        return EpsilonConfig(a.float("epsilon", 1e-5))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        weight, bias, epsilon = self.value(1), self.value(2), default(self.config.epsilon, 1e-5)
        if weight is None or bias is None:
            return e.call("instance_norm", e.x(0), e.x(1), e.x(2), epsilon=epsilon)
        layer = e.layer("InstanceNorm", weight.shape[0], weights={"weight": weight, "bias": bias}, epsilon=epsilon)
        return e.apply(layer, e.x(0))


@dataclass(frozen=True)
class LrnConfig:
    size: int
    alpha: float
    beta: float
    bias: float


class LRN(Node[LrnConfig]):
    """Normalisation by the squares of neighbouring channels."""

    since = (1, 13)

    @classmethod
    def read(cls, a: Attributes) -> LrnConfig:
        return LrnConfig(a.int("size"), a.float("alpha", 1e-4), a.float("beta", 0.75), a.float("bias", 1.0))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "local_response_norm",
            e.x(),
            c.size,
            alpha=default(c.alpha, 1e-4),
            beta=default(c.beta, 0.75),
            bias=default(c.bias, 1.0),
        )


@dataclass(frozen=True)
class LpNormalizationConfig:
    axis: int
    p: int


class LpNormalization(Node[LpNormalizationConfig]):
    since = (1, 22)

    @classmethod
    def read(cls, a: Attributes) -> LpNormalizationConfig:
        return LpNormalizationConfig(a.int("axis", -1), a.int("p", 2))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("lp_normalize", e.x(), p=default(self.config.p, 2), axis=default(self.config.axis, -1))


@dataclass(frozen=True)
class AxesConfig:
    axes: tuple[int, ...]


class MeanVarianceNormalization(Node[AxesConfig]):
    since = (9, 13)

    @classmethod
    def read(cls, a: Attributes) -> AxesConfig:
        return AxesConfig(a.ints("axes", (0, 2, 3)))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("mean_variance_norm", e.x(), axes=default(self.config.axes, (0, 2, 3)))


# -- softmax ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SoftmaxConfig:
    """flattened: before opset 13 the tensor was seen as a matrix, cut at `axis`."""

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
            return e.call(self.function, x, axis=default(c.axis, -1))
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


# -- dropout ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DropoutConfig:
    """training: what the file says before opset 7; from 12 on it is the third input."""

    ratio: float
    seed: int | None
    training: bool


class Dropout(Node[DropoutConfig]):
    """Nothing, unless a training mode is asked for."""

    since, static = (1, 6, 7, 10, 12, 13, 22), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> DropoutConfig:
        if a.opset < 7:
            a.flag("is_test")
        ratio = a.float("ratio", 0.5) if a.opset < 12 else 0.5
        return DropoutConfig(ratio, a.int("seed") if a.has("seed") else None, False)

    def trains(self) -> bool:
        """Whether elements are dropped, or may be."""
        if not self.has(2):
            return False
        value = self.value(2)
        ratio = self.value(1)
        if ratio is not None and float(ratio.item()) == 0.0:
            return False
        return value is None or bool(value.item())

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (x, TensorType(dtypes.bool, x.shape))

    def emit(self, e: Emitter) -> Emission:
        masked = len(self.outputs) > 1 and self.outputs[1].present
        if not self.trains():
            return (e.x(0), e.call("ones_like", e.x(0), dtype=dtypes.bool)) if masked else e.x(0)
        ratio = e.number(1) if self.has(1) else 0.5
        seed = {} if self.config.seed is None else {"seed": self.config.seed}
        value = self.value(2)
        training = {} if value is not None else {"training": e.number(2)}
        out = e.call("dropout_with_mask", e.x(0), ratio, **seed, **training)
        return out if masked else e.index(out, 0)


Family = (
    BatchNormalization | Dropout | Hardmax | InstanceNormalization | LogSoftmax | LpNormalization | LRN
    | MeanVarianceNormalization | Softmax
)  # fmt: skip
