"""Unique elements; sums of products by Einstein's notation; writing into a cache."""

from __future__ import annotations

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of


@dataclass(frozen=True)
class UniqueConfig:
    axis: int | None = None
    sorted: bool = True


class Unique(Node[UniqueConfig]):
    """The distinct elements (or slices along an axis), their first positions, the inverse map, and counts."""

    since = (11, 28)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        indices = TensorType(dtypes.int64, (None,))
        if self.config.axis is None:
            return (TensorType(x.dtype, (None,)), indices, indices, indices)
        if x.shape is None:
            return (TensorType(x.dtype), indices, indices, indices)
        axis = axis_of(self.config.axis, len(x.shape))
        return (TensorType(x.dtype, (*x.shape[:axis], None, *x.shape[axis + 1 :])), indices, indices, indices)

    def emit(self, e: Emitter) -> Emission:
        out = e.call("unique", e.x(0), axis=default(self.config.axis), sorted=default(self.config.sorted))
        return e.results(out, 4)


ELLIPSIS = 0xE000
"""The first of Unicode's private-use characters, which no equation contains."""


@dataclass(frozen=True)
class EinsumConfig:
    equation: str


class Einsum(Node[EinsumConfig]):
    """Any sum of products of axes, by its equation."""

    since = (12, 28)

    @classmethod
    def read(cls, a: Attributes) -> EinsumConfig:
        return EinsumConfig(a.string("equation").replace(" ", ""))

    def infer(self) -> tuple[Type, ...]:
        dtype = self.dtype(0)
        left, arrow, right = self.config.equation.partition("->")
        terms = left.split(",")
        if len(terms) != len(self.inputs):
            raise Problem(
                f"the equation {self.config.equation!r} names {len(terms)} operands, found {len(self.inputs)}"
            )
        batch = ""
        if "..." in self.config.equation:
            ranks = [self.tensor(i).rank for i in range(len(terms))]
            if None in ranks:
                return (TensorType(dtype),)
            # A letter for each ellipsis axis, by its distance from the end, since these axes broadcast.
            for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
                if "..." in term and rank is not None:
                    axes = "".join(chr(ELLIPSIS + n) for n in reversed(range(rank - len(term) + 3)))
                    terms[i] = term.replace("...", axes)
                    batch = max(batch, axes, key=len)
            right = right.replace("...", batch)
        sizes: dict[str, Dim] = {}
        for i, term in enumerate(terms):
            shape = self.shape(i)
            if shape is not None and len(shape) != len(term):
                raise Problem(f"operand {i} has rank {len(shape)}, its term {term!r} {len(term)} letters")
            for letter, size in zip(term, shape or (None,) * len(term), strict=True):
                if sizes.get(letter) in (None, 1):
                    sizes[letter] = size
        if not arrow:
            letters = "".join(terms)
            right = batch + "".join(sorted(c for c in sizes if letters.count(c) == 1 and c not in batch))
        return (TensorType(dtype, tuple(sizes.get(c) for c in right)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("einsum", self.config.equation, *(e.x(i) for i in range(len(self.inputs))))


@dataclass(frozen=True)
class TensorScatterConfig:
    axis: int
    circular: bool


class TensorScatter(Node[TensorScatterConfig]):
    """A cache with new entries written from each batch entry's own position on: past, update, write indices."""

    since = (24,)
    carries = ((0, 0, None),)

    @classmethod
    def read(cls, a: Attributes) -> TensorScatterConfig:
        return TensorScatterConfig(a.int("axis", -2), a.string("mode", "linear", ("linear", "circular")) == "circular")

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        indices = [e.x(2)] if self.has(2) else []
        mode = "circular" if self.config.circular else "linear"
        return e.call("tensor_scatter", e.x(0), e.x(1), *indices, axis=default(self.config.axis), mode=default(mode))
