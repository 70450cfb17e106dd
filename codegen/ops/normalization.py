"""Normalization, softmax, dropout."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

from emberlet import dtypes

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of, dim_at


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
        if not training and any(o.present for o in a.outputs[1:]):
            raise Problem(f"has {len(a.outputs)} outputs, and only training_mode computes more than one")
        return BatchNormalizationConfig(a.float("epsilon", 1e-5), a.float("momentum", 0.9), training)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        fit_channels(self, range(1, 5), 1 if x.shape is not None and len(x.shape) == 1 else dim_at(x.shape, 1))
        statistics = self.tensor(3)
        return (x, statistics, statistics, statistics, statistics)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        epsilon = default(c.epsilon)
        values = [self.value(i) for i in range(1, 5)]
        if c.training:
            return self.trained(e, epsilon)
        if self.tensor(0).rank == 1:  # (n,): one channel
            y = e.call("batch_norm", e.call("unsqueeze", e.x(0), 1), e.x(3), e.x(4), e.x(1), e.x(2), epsilon=epsilon)
            return e.call("squeeze", y, 1)
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
        """Training mode: uses the batch's statistics and moves the running ones toward them."""
        x, scale, bias, mean, var = (e.x(i) for i in range(5))
        axes = (0, *range(2, self.rank(0)))
        narrow, kept = self.dtype(0).bits < 32, self.tensor(3).dtype
        wide = e.method(x, "astype", dtypes.float32) if narrow else x  # a variance may be beyond float16
        batch_mean = e.assign("batch_mean", e.call("mean", wide, axis=axes))
        batch_var = e.assign("batch_var", e.call("var", wide, axis=axes))
        y = e.call("batch_norm", x, batch_mean, batch_var, scale, bias, epsilon=epsilon)
        keep = self.config.momentum
        moved = [
            Binary("+", Binary("*", old, lift(keep)), Binary("*", new, lift(round(1 - keep, 9))))
            for old, new in ((mean, batch_mean), (var, batch_var))
        ]
        statistics = [*moved, batch_mean, batch_var]
        if narrow:
            statistics = [e.method(s, "astype", kept) for s in statistics]
        return (y, *statistics)[: len(self.outputs)]


def fit_channels(node: Node[Any], inputs: Iterable[int], channels: Dim) -> None:
    """Raises Problem if one of these inputs is not a number for each channel."""
    for i in inputs:
        shape = node.shape(i)
        if shape is None:
            continue
        if len(shape) != 1 or (isinstance(channels, int) and isinstance(shape[0], int) and shape[0] != channels):
            raise Problem(f"input {i} of shape {shape} is not a number for each of {channels} channels")


def layer_norm(e: Emitter, x: Expr, weight: int, bias: int | None, epsilon: float, axes: int = 1) -> Expr:
    """Layer normalization over the last `axes` axes, with inputs `weight` and `bias` of the node: a layer if they are
    constants of the axes' shape."""
    node = e.node
    scale, has_bias = node.value(weight), bias is not None and node.has(bias)
    shift = node.value(bias) if bias is not None else None
    fits = scale is not None and len(scale.shape) == axes and (shift is None or shift.shape == scale.shape)
    if not fits or scale is None or (has_bias and shift is None) or not _covers(node, scale.shape):
        given = [e.x(bias)] if has_bias and bias is not None else []
        return e.call("layer_norm", x, e.x(weight), *given, epsilon=default(epsilon), axis=default(-axes))
    layer = e.layer(
        "LayerNorm",
        scale.shape[0] if axes == 1 else scale.shape,
        weights={"weight": scale, "bias": shift},
        epsilon=default(epsilon),
        bias=default(has_bias),
    )
    return e.apply(layer, x)


def rms_norm(e: Emitter, x: Expr, weight: int, epsilon: float, axes: int = 1) -> Expr:
    """Root mean square normalization over the last `axes` axes: a layer if the weight is a constant of the axes'
    shape."""
    scale = e.node.value(weight)
    if scale is None or axes != 1 or len(scale.shape) != 1 or not _covers(e.node, scale.shape):
        return e.call("rms_norm", x, e.x(weight), epsilon=default(epsilon), axis=default(-axes))
    layer = e.layer("RmsNorm", scale.shape[0], weights={"weight": scale}, epsilon=default(epsilon))
    return e.apply(layer, x)


def _covers(node: Node[Any], shape: tuple[int, ...]) -> bool:
    """Whether the last axes of input 0 have exactly these sizes, rather than broadcast with them."""
    x = node.shape(0)
    last = (None,) * len(shape) if x is None else x[len(x) - len(shape) :]
    return all(d == n or (not isinstance(d, int) and n != 1) for d, n in zip(last, shape, strict=True))


@dataclass(frozen=True)
class NormConfig:
    """axis: the first normalized axis; all after it are normalized too; in_double: compute in float64."""

    axis: int
    epsilon: float
    in_double: bool = False


def in_double(a: Attributes) -> bool:
    """Whether `stash_type` asks for more than float32, the default precision for norms of narrower floats."""
    return a.has("stash_type") and a.dtype("stash_type") is dtypes.float64


def stashed(node: Node[Any], e: Emitter, double: bool) -> tuple[Expr, Callable[[Expr], Expr]]:
    """Input 0 in the precision of `in_double`, and a function that casts the result back to the input's dtype."""
    x, dtype = e.x(0), node.dtype(0)
    if not double or dtype.bits == 64:
        return x, lambda y: y
    return e.method(x, "astype", dtypes.float64), lambda y: e.method(y, "astype", dtype)


@dataclass(frozen=True)
class LastAxes(Node[NormConfig], ABC):
    """A normalization over the last axes, from `axis` on."""

    @classmethod
    def read(cls, a: Attributes) -> NormConfig:
        return NormConfig(a.int("axis", -1), a.float("epsilon", 1e-5), in_double(a))

    def axes(self) -> int:
        """The number of normalized axes."""
        axis = self.config.axis
        return -axis if axis < 0 else self.rank(0) - axis_of(axis, self.rank(0))


class LayerNormalization(LastAxes):
    """Zero mean and unit variance; outputs 1 and 2 are the mean and 1 / deviation."""

    since, static = (17,), (1, 2)

    def infer(self) -> tuple[Type, ...]:
        x, axes = self.tensor(0), self.axes()
        if x.shape is not None and axes > len(x.shape):
            raise Problem(f"axis {self.config.axis} is outside an input of rank {len(x.shape)}")
        kept = None if x.shape is None else (*x.shape[: len(x.shape) - axes], *(1,) * axes)
        statistic = TensorType(dtypes.float32, kept)
        return (x, statistic, statistic)

    def emit(self, e: Emitter) -> Emission:
        c, axes = self.config, self.axes()
        x, back = stashed(self, e, c.in_double)
        y = back(layer_norm(e, x, 1, 2 if self.has(2) else None, c.epsilon, axes))
        if not any(o.present for o in self.outputs[1:]):
            return (y, *[lift(None)] * (len(self.outputs) - 1))
        if self.dtype(0).bits < 32 and not c.in_double:
            x = e.method(x, "astype", dtypes.float32)
        along = -1 if axes == 1 else tuple(range(-axes, 0))
        variance = e.call("var", x, axis=along, keepdims=True)
        inverse = e.call("rsqrt", Binary("+", variance, lift(c.epsilon)))
        statistics = [e.call("mean", x, axis=along, keepdims=True), inverse]
        if c.in_double or self.dtype(0) is dtypes.float64:
            statistics = [e.method(s, "astype", dtypes.float32) for s in statistics]
        return (y, *statistics)[: len(self.outputs)]


class RMSNormalization(LastAxes):
    """Division by the root mean square."""

    since, static = (23,), (1,)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        x, back = stashed(self, e, self.config.in_double)
        return back(rms_norm(e, x, 1, self.config.epsilon, self.axes()))


@dataclass(frozen=True)
class GroupNormalizationConfig:
    """per_group: opset 18 has a weight and a bias per group, opset 21 per channel."""

    groups: int
    epsilon: float
    per_group: bool
    in_double: bool = False


class GroupNormalization(Node[GroupNormalizationConfig]):
    """Zero mean and unit variance over each group of channels."""

    since, static = (18, 21), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> GroupNormalizationConfig:
        return GroupNormalizationConfig(a.int("num_groups"), a.float("epsilon", 1e-5), a.opset < 21, in_double(a))

    def infer(self) -> tuple[Type, ...]:
        channels, groups = dim_at(self.shape(0), 1), self.config.groups
        if groups < 1 or (isinstance(channels, int) and channels % groups):
            raise Problem(f"{channels} channels do not divide into {groups} groups")
        fit_channels(self, (1, 2), groups if self.config.per_group else channels)
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c, weight, bias = self.config, self.value(1), self.value(2)
        epsilon = default(c.epsilon)
        x, back = stashed(self, e, c.in_double)
        if c.per_group:
            each = Binary("//", e.index(e.shape_of(e.x(0)), 1), lift(c.groups))
            scale, shift = (e.call("repeat", e.x(i), each) for i in (1, 2))
            return back(e.call("group_norm", x, c.groups, scale, shift, epsilon=epsilon))
        if weight is None or bias is None:
            return back(e.call("group_norm", x, c.groups, e.x(1), e.x(2), epsilon=epsilon))
        weights = {"weight": weight, "bias": bias}
        return back(e.apply(e.layer("GroupNorm", c.groups, weight.shape[0], weights=weights, epsilon=epsilon), x))


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
        fit_channels(self, (1, 2), dim_at(self.shape(0), 1))
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        weight, bias, epsilon = self.value(1), self.value(2), default(self.config.epsilon)
        if weight is None or bias is None:
            return e.call("instance_norm", e.x(0), weight=e.x(1), bias=e.x(2), epsilon=epsilon)
        layer = e.layer("InstanceNorm", weight.shape[0], weights={"weight": weight, "bias": bias}, epsilon=epsilon)
        return e.apply(layer, e.x(0))


@dataclass(frozen=True)
class LrnConfig:
    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0


class LRN(Node[LrnConfig]):
    """Normalization by the squares of neighboring channels."""

    since = (1, 13)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "local_response_norm",
            e.x(),
            c.size,
            alpha=default(c.alpha),
            beta=default(c.beta),
            bias=default(c.bias),
            before=default(None if c.size % 2 else c.size // 2 - 1),
        )


@dataclass(frozen=True)
class LpNormalizationConfig:
    axis: int = -1
    p: int = 2


class LpNormalization(Node[LpNormalizationConfig]):
    since = (1, 22)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("lp_normalize", e.x(), p=default(self.config.p), axis=default(self.config.axis))


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
        return e.call("mean_variance_norm", e.x(), axes=default(self.config.axes))


# -- dropout ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DropoutConfig:
    """training: the file's attribute before opset 7; from 12 on it is the third input."""

    ratio: float
    seed: int | None
    training: bool


class Dropout(Node[DropoutConfig]):
    """The identity, unless in training mode."""

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
