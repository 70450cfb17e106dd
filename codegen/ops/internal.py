"""Operators of the typed IR that files do not contain: passes make them from several nodes."""

from __future__ import annotations

from abc import ABC
from typing import Generic, TypeVar

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, Tuple, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import ScalarType, Shape, ShapeType, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .linear_algebra import dense, product_shape

FAMILY = "the compiler's own"

C = TypeVar("C")


@dataclass(frozen=True)
class Internal(Node[C], ABC, Generic[C]):
    domain = "emberlet"

    @classmethod
    def read(cls, a: Attributes) -> C:
        raise Problem("the operator is internal to the compiler; models cannot contain it")


class Linear(Internal[None]):
    """A dense layer on the last axis: inputs x, weight (in, out) and bias (out,), both constants."""

    static = (1, 2)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), product_shape(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        weight, bias = self.value(1), self.value(2)
        if weight is None:
            raise Problem("the weight of a dense layer is not constant")
        return dense(e, weight, bias)


@dataclass(frozen=True)
class MaskedMeanConfig:
    least: float


class MaskedMean(Internal[MaskedMeanConfig]):
    """The mean over the length of x (batch, length, …), of what a mask (batch, length) selects."""

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        return (TensorType(self.dtype(0), None if shape is None else (shape[0], *shape[2:])),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("masked_mean", e.x(0), e.x(1), least=default(self.config.least))


@dataclass(frozen=True)
class RollConfig:
    """shifts: the places by which the elements move along each of `axes`."""

    shifts: tuple[int, ...]
    axes: tuple[int, ...]


class Roll(Internal[RollConfig]):
    """x with its elements shifted along some axes, wrapping around."""

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        shifts, axes = self.config.shifts, self.config.axes
        if len(shifts) == 1:
            return e.call("roll", e.x(0), shifts[0], axis=axes[0])
        return e.call("roll", e.x(0), shifts, axis=axes)


@dataclass(frozen=True)
class InputSizeConfig:
    """by: the multiple of the symbol that the axis has."""

    axis: int
    symbol: str
    by: int = 1


class InputSize(Internal[InputSizeConfig]):
    """The size of one axis of a graph's input, which the model calls `symbol`, or that of which it is a multiple."""

    named = True

    def infer(self) -> tuple[Type, ...]:
        return (ScalarType(dtypes.int64, self.config.symbol, True),)

    def emit(self, e: Emitter) -> Emission:
        size = e.index(e.shape_of(e.x(0)), self.config.axis)
        return size if self.config.by == 1 else Binary("//", size, lift(self.config.by))


@dataclass(frozen=True)
class SizesConfig:
    dims: Shape


class Sizes(Internal[SizesConfig]):
    """A shape of numbers and of symbols; the inputs are the symbols' sizes."""

    repeated = True

    def infer(self) -> tuple[Type, ...]:
        return (ShapeType(self.config.dims),)

    def emit(self, e: Emitter) -> Emission:
        sizes: dict[str, Expr] = {}
        for i, a in enumerate(self.inputs):
            if isinstance(a.type, ScalarType) and isinstance(a.type.value, str):
                sizes[a.type.value] = e.held(i)
        return Tuple(tuple(sizes[d] if isinstance(d, str) else lift(d) for d in self.config.dims))


class PartOfShape(Internal[SizesConfig]):
    """A shape with some elements of the input replaced by known numbers."""

    repeated = True

    def infer(self) -> tuple[Type, ...]:
        return (ShapeType(self.config.dims),)

    def emit(self, e: Emitter) -> Emission:
        given = e.held(0)
        items = given.items if isinstance(given, Tuple) else None
        parts: list[Expr] = []
        for i, d in enumerate(self.config.dims):
            held = items[i] if items is not None and len(items) == len(self.config.dims) else e.index(given, i)
            parts.append(lift(d) if isinstance(d, int) else held)
        return Tuple(tuple(parts))


class SumTo(Internal[None]):
    """A tensor summed over the axes along which another was broadcast to it."""

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None

    def reduced(self) -> tuple[int, ...]:
        """The axes to sum over."""
        x, like = self.shape(0), self.shape(1)
        if x is None or like is None or len(like) > len(x):
            raise Problem("a derivative needs the ranks of the tensors it is taken of")
        lead = len(x) - len(like)
        pairs = list(enumerate(zip(x[lead:], like, strict=True), lead))
        if any(d != n and n != 1 for _, (d, n) in pairs):
            raise Problem(f"a derivative needs to know how {like} was broadcast to {x}")
        return (*range(lead), *(i for i, (d, n) in pairs if d != n))

    def infer(self) -> tuple[Type, ...]:
        self.reduced()
        return (TensorType(self.dtype(0), self.shape(1)),)

    def emit(self, e: Emitter) -> Emission:
        axes, lead = self.reduced(), self.rank(0) - self.rank(1)
        if not axes:
            return e.x(0)
        total = e.call("sum", e.x(0), axis=axes, keepdims=True)
        return e.method(total, "squeeze", tuple(range(lead))) if lead else total
