"""Shared by many operators: nodes without a config, and helpers for axes, dimensions and layers' weights."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, Shape
from ..ir.value import Fill, Stored, Transposed, Value
from ..records import dataclass
from .attributes import Attributes


@dataclass(frozen=True)
class Plain(Node[None], ABC):
    """A node without attributes."""

    @classmethod
    def read(cls, a: Attributes) -> None:
        return None


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises Problem outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise Problem(f"axis {axis} is outside [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Non-negative axes, in the order given. Raises Problem for one that does not exist or is repeated."""
    out = tuple(axis_of(a, rank) for a in axes)
    if len(set(out)) < len(out):
        raise Problem(f"the axes {tuple(axes)} name one axis twice")
    return out


def times(d: Dim, r: Dim) -> Dim:
    """A dimension, r times."""
    if r == 1:
        return d
    return d * r if isinstance(d, int) and isinstance(r, int) else 0 if d == 0 or r == 0 else None


def dim_at(shape: Shape | None, axis: int) -> Dim:
    """Dimension `axis` of a shape, None if it is unknown."""
    return None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]


def transposed(value: Value) -> Value:
    """A matrix with its axes exchanged."""
    if isinstance(value.source, Transposed):
        return value.source.matrix
    rows, columns = value.shape
    if isinstance(value.source, Fill):
        return replace(value, shape=(columns, rows))
    return Value(value.dtype, (columns, rows), Transposed(value))


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in another shape of the same size."""
    if isinstance(value.source, Transposed) and shape != value.shape:
        value = Value(value.dtype, value.shape, Stored(value.raw, value.content()), value.key())
    return replace(value, shape=shape)
