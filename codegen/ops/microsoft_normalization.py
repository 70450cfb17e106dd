"""com.microsoft: normalization, mostly fused with the addition of a skip connection."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, Name, lift
from ..emit.statement import Assign
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at
from .microsoft import Contrib
from .normalization import layer_norm, rms_norm

FAMILY = "com.microsoft"


@dataclass(frozen=True)
class EpsilonConfig:
    epsilon: float


def named(e: Emitter, output: int, value: Expr) -> Expr:
    """`value` assigned to the variable of an output if that is used; else `value` itself."""
    targets = e.targets()
    target = targets[output] if output < len(targets) else None
    if not isinstance(target, Name) or target.id == "_":
        return value
    e.push(Assign((target.id,), value))
    return target


@dataclass(frozen=True)
class SimplifiedConfig:
    axis: int
    epsilon: float


class SimplifiedLayerNormalization(Contrib[SimplifiedConfig]):
    """Root mean square normalization. In the standard's domain, although the standard does not have it."""

    domain = ""
    arity, static = (2, 2), (1,)

    @classmethod
    def read(cls, a: Attributes) -> SimplifiedConfig:
        a.int("stash_type", 1)
        return SimplifiedConfig(a.int("axis", -1), a.float("epsilon", 1e-5))

    @classmethod
    def spec(cls) -> str:
        return super().spec().replace("#.", "#com.microsoft.")

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        if c.axis == -1 or self.tensor(0).rank == c.axis + 1:
            return rms_norm(e, e.x(0), 1, c.epsilon)
        return e.call("rms_norm", e.x(0), e.x(1), epsilon=default(c.epsilon), axis=c.axis)


@dataclass(frozen=True)
class Skip(Contrib[EpsilonConfig], ABC):
    """The normalization of input + skip (+ bias). Outputs: the result, the mean, 1 / deviation, and the sum."""

    bias_input: ClassVar[int]

    @classmethod
    def read(cls, a: Attributes) -> EpsilonConfig:
        return EpsilonConfig(a.float("epsilon", 1e-12))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        statistic = TensorType(dtypes.float32, None if x.shape is None else (*x.shape[:-1], 1))
        return (x, statistic, statistic, x)

    def total(self, e: Emitter) -> Expr:
        total = Binary("+", e.x(0), e.x(1))
        return Binary("+", total, e.x(self.bias_input)) if self.has(self.bias_input) else total

    def normalized(self, e: Emitter, total: Expr) -> Expr:
        raise NotImplementedError

    def statistics(self, e: Emitter, total: Expr) -> tuple[Expr, Expr]:
        """The mean, and one over the standard deviation."""
        variance = e.call("var", total, axis=-1, keepdims=True)
        inverse = e.call("rsqrt", Binary("+", variance, lift(self.config.epsilon)))
        return e.call("mean", total, axis=-1, keepdims=True), inverse

    def emit(self, e: Emitter) -> Emission:
        if not any(o.present for o in self.outputs[1:]):
            return (self.normalized(e, self.total(e)), *[lift(None)] * (len(self.outputs) - 1))
        total = named(e, 3, self.total(e))
        return (self.normalized(e, total), *self.statistics(e, total), total)[: len(self.outputs)]


class SkipLayerNormalization(Skip):
    """Layer normalization: inputs x, skip, weight, bias of the normalization, bias of the sum."""

    arity, static, bias_input = (3, 5), (2, 3), 4

    def normalized(self, e: Emitter, total: Expr) -> Expr:
        return layer_norm(e, total, 2, 3, self.config.epsilon)


class SkipSimplifiedLayerNormalization(Skip):
    """Root mean square normalization: inputs x, skip, weight, bias of the sum."""

    arity, static, bias_input = (3, 4), (2,), 3

    def normalized(self, e: Emitter, total: Expr) -> Expr:
        return rms_norm(e, total, 2, self.config.epsilon)


class EmbedLayerNormalization(Contrib[EpsilonConfig]):
    """Embeddings of words, positions and segments, added and normalized: inputs word ids, segment ids, the three
    tables, weight, bias, mask, position ids. Outputs: the result, the number of words in the mask, the sum."""

    arity, static = (7, 9), (5, 6)

    @classmethod
    def read(cls, a: Attributes) -> EpsilonConfig:
        a.int("mask_index_type", 1)
        return EpsilonConfig(a.float("epsilon", 1e-12))

    def infer(self) -> tuple[Type, ...]:
        ids, words = self.shape(0), self.tensor(2)
        shape = None if ids is None else (*ids, dim_at(words.shape, 1))
        out = TensorType(words.dtype, shape)
        return (out, TensorType(dtypes.int32, (dim_at(ids, 0),)), out)

    def emit(self, e: Emitter) -> Emission:
        total: Expr = e.call("embedding", e.x(0), e.x(2))
        if self.has(8):
            positions: Expr = e.call("embedding", e.x(8), e.x(3))
        else:
            positions = e.method(e.x(3), "narrow", 0, 0, e.index(e.shape_of(e.x(0)), 1))
        total = Binary("+", total, positions)
        if self.has(1):
            total = Binary("+", total, e.call("embedding", e.x(1), e.x(4)))
        total = named(e, 2, total)
        out = layer_norm(e, total, 5, 6, self.config.epsilon)
        return (out, self.counted(e), total)[: len(self.outputs)]

    def counted(self, e: Emitter) -> Expr:
        """The number of unmasked words of each sequence; 0 without a mask."""
        if self.has(7):
            return e.call("sum", e.x(7), axis=1, dtype=dtypes.int32)
        batch = e.index(e.shape_of(e.x(0)), 0)
        return e.create("zeros", lift((batch,)), dtype=dtypes.int32)


@dataclass(frozen=True)
class GroupNormConfig:
    groups: int
    epsilon: float
    silu: bool
    channels_last: bool


class GroupNorm(Contrib[GroupNormConfig]):
    """Group normalization of images, by default with the channels last, then SiLU if `activation` is 1."""

    arity, static = (3, 3), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> GroupNormConfig:
        return GroupNormConfig(
            a.int("groups"), a.float("epsilon", 1e-5), bool(a.int("activation")), a.flag("channels_last", True)
        )

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        x = e.method(e.x(0), "moveaxis", -1, 1) if c.channels_last else e.x(0)
        x = e.call("group_norm", x, c.groups, e.x(1), e.x(2), epsilon=default(c.epsilon))
        x = e.call("silu", x) if c.silu else x
        return e.method(x, "moveaxis", 1, -1) if c.channels_last else x
