"""Pooling."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from math import prod
from typing import ClassVar, Self

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, SliceKey, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import Plain
from .windows import Window, short, short_padding, spatial_of


@dataclass(frozen=True)
class PoolConfig:
    window: Window
    ceil_mode: bool
    count_include_pad: bool
    p: int
    storage_order: int


LARGE_WINDOW = 1 << 10


@dataclass(frozen=True)
class Pool(Node[PoolConfig], ABC):
    """A reduction of each window of (n, c, *spatial)."""

    function: ClassVar[str]

    @classmethod
    def read(cls, a: Attributes) -> PoolConfig:
        return PoolConfig(
            Window.read(a),
            a.flag("ceil_mode"),
            a.flag("count_include_pad"),
            a.count("p") if a.has("p") and a.opset >= 2 else 2,
            a.int("storage_order", 0),
        )

    def window(self) -> Window:
        return self.config.window.of(len(self.config.window.kernel))

    def infer(self) -> tuple[Type, ...]:
        x, window = self.tensor(0), self.window()
        rank = len(window.kernel) + 2
        if x.shape is not None and len(x.shape) != rank:
            raise Problem(f"a kernel of {window.kernel} on an input of rank {len(x.shape)}")
        shape = x.shape if x.shape is not None else (None,) * rank
        sizes = window.sizes(spatial_of(shape, rank), self.config.ceil_mode)
        return (TensorType(x.dtype, (*shape[:2], *sizes)),)

    def settled(self) -> Self:
        window, shape = self.window(), self.shape(0)
        if not window.kernel:
            return self
        return replace(self, config=replace(self.config, window=window.explicit(None if shape is None else shape[2:])))

    def pool(self, e: Emitter, function: str, x: Expr | None = None) -> Expr:
        """`function` of x, by default the first input."""
        window, shape = self.window(), self.shape(0)
        padding = window.amounts(None if shape is None else shape[2:])
        kernel, stride = short(window.kernel), short(window.stride)
        return e.call(
            function,
            e.x() if x is None else x,
            kernel,
            stride=default(stride if stride != kernel else None),
            padding=default(short_padding(padding)),
            dilation=default(short(window.dilation)),
            ceil_mode=default(self.config.ceil_mode),
            **self.extras(),
        )

    def extras(self) -> dict[str, bool | int]:
        return {}

    def emit(self, e: Emitter) -> Emission:
        return self.pool(e, self.function)


class AveragePool(Pool):
    since, function = (1, 7, 10, 11, 19, 22), "avg_pool"

    def extras(self) -> dict[str, bool | int]:
        padded = self.config.window.auto_pad != "VALID" and (
            any(self.config.window.pads) or self.config.window.auto_pad != "NOTSET"
        )
        return {"count_include_pad": False} if padded and not self.config.count_include_pad else {}


class MaxPool(Pool):
    """With a second output, the indices of the maxima in the flattened input."""

    since, function = (1, 8, 10, 11, 12, 22), "max_pool"

    @property
    def unbounded(self) -> bool:
        """The indices are found in a loop over all positions of all windows."""
        return len(self.outputs) > 1 and prod(self.config.window.kernel) > LARGE_WINDOW

    def infer(self) -> tuple[Type, ...]:
        (t,) = super().infer()
        assert isinstance(t, TensorType)
        return (t, TensorType(dtypes.int64, t.shape))

    def emit(self, e: Emitter) -> Emission:
        if len(self.outputs) < 2 or not self.outputs[1].present:
            return self.pool(e, "max_pool")
        pooled = e.assign("pooled", self.pool(e, "max_pool_with_indices"))
        return e.index(pooled, 0), self.positions_in_tensor(e, e.index(pooled, 1))

    def positions_in_tensor(self, e: Emitter, indices: Expr) -> Expr:
        """Positions in a channel as positions in the whole tensor; column-major if storage_order says so."""
        sizes = e.index(e.shape_of(e.x()), SliceKey(lift(2)))
        if self.config.storage_order:
            if len(self.config.window.kernel) != 2:
                raise Problem("storage_order 1 is supported for two spatial axes")
            h, w = e.index(sizes, 0), e.index(sizes, 1)
            indices = e.assign("indices", indices)
            indices = Binary("+", Binary("*", Binary("%", indices, w), h), Binary("//", indices, w))
        shape = self.shape(0)
        if shape is not None and shape[:2] == (1, 1):
            return indices
        n, c = (e.index(e.shape_of(e.x()), i) for i in (0, 1))
        room = e.index(sizes, 0)
        for i in range(1, len(self.config.window.kernel)):
            room = Binary("*", room, e.index(sizes, i))
        first = e.create("arange", Binary("*", n, c), dtype=dtypes.int64)
        ones = (1,) * len(self.config.window.kernel)
        return Binary("+", indices, Binary("*", e.method(first, "reshape", (n, c, *ones)), room))


class LpPool(Pool):
    since, function = (1, 2, 11, 18, 22), "lp_pool"

    def extras(self) -> dict[str, bool | int]:
        return {} if self.config.p == 2 else {"p": self.config.p}


@dataclass(frozen=True)
class GlobalPool(Plain, ABC):
    """One value per channel; the spatial axes stay, with size 1."""

    function: ClassVar[str]

    def infer(self) -> tuple[Type, ...]:
        return global_shape(self.tensor(0))

    def emit(self, e: Emitter) -> Emission:
        return e.call(self.function, e.x())


def global_shape(x: TensorType) -> tuple[Type, ...]:
    """(n, c, 1, …)"""
    return (TensorType(x.dtype, None if x.shape is None else (*x.shape[:2], *(1,) * (len(x.shape) - 2))),)


class GlobalAveragePool(GlobalPool):
    since, function = (1, 22), "global_avg_pool"


class GlobalMaxPool(GlobalPool):
    since, function = (1, 22), "global_max_pool"


@dataclass(frozen=True)
class NormOrderConfig:
    p: int | float


class GlobalLpPool(Node[NormOrderConfig]):
    """The p-norm of each channel; the spatial axes stay, with size 1. Opset 1 had a non-integer p."""

    since = (1, 2, 22)

    @classmethod
    def read(cls, a: Attributes) -> NormOrderConfig:
        return NormOrderConfig(a.float("p", 2.0) if a.opset < 2 else a.count("p") if a.has("p") else 2)

    def infer(self) -> tuple[Type, ...]:
        return global_shape(self.tensor(0))

    def emit(self, e: Emitter) -> Emission:
        axes: Expr = e.builtin("tuple", e.builtin("range", 2, e.builtin("len", e.shape_of(e.x()))))
        if self.tensor(0).rank is not None:
            axes = lift(tuple(range(2, self.rank(0))))
        return e.call("norm", e.x(), p=default(self.config.p), axis=axes, keepdims=True)
