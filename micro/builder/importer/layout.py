"""How the model's tensors are stored.

A tensor records the order of its axes in memory, so a transposition costs nothing until a layer needs another order.
Convolutions read and write channels last, whatever the model's order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.dtypes import DType

from ..kernels.layer import Array

Order = tuple[int, ...]


def channels_last(rank: int) -> Order:
    """The order batch, spatial axes, channels."""
    return (0, *range(2, rank), 1) if rank > 2 else tuple(range(rank))


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of the model. name: in the graph; dims: its shape in the model; order: its axes as stored, outermost
    first."""

    name: str
    dims: tuple[int, ...]
    order: Order

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as stored, without a leading batch of 1."""
        sizes = [self.dims[a] for a in self.order]
        return tuple(sizes[1:] if sizes and self.order[0] == 0 and sizes[0] == 1 else sizes)

    def has_order(self, order: Order) -> bool:
        """Whether the tensor is also stored in `order`: axes of size 1 may be anywhere."""
        return [a for a in self.order if self.dims[a] != 1] == [a for a in order if self.dims[a] != 1]

    @property
    def plain(self) -> Order:
        """The model's order of the axes."""
        return tuple(range(len(self.dims)))


@dataclass
class Layout:
    """shapes: of every tensor of the graph; held: the model's tensors, as stored; inputs: of the graph's inputs, their
    shape in the model and the order of their axes; flattened: tensors that the model flattened while stored in another
    order -> the position of each element in the model's order; unflattened: these tensors before the model flattened
    them; copies: tensors that were moved to another order; moved: the number of elements that these moves copy.
    """

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    held: dict[str, StoredTensor] = field(default_factory=dict)
    inputs: dict[str, tuple[tuple[int, ...], Order]] = field(default_factory=dict)
    flattened: dict[str, Array] = field(default_factory=dict)
    unflattened: dict[str, StoredTensor] = field(default_factory=dict)
    copies: dict[tuple[str, Order], StoredTensor] = field(default_factory=dict)
    moved: int = 0

    def fresh(self, name: str) -> str:
        """A name that no tensor of the graph has."""
        out, n = name, 1
        while out in self.shapes:
            n += 1
            out = f"{name}.{n}"
        return out

    def store(self, name: str, dims: tuple[int, ...], order: Order) -> StoredTensor:
        """A new tensor of the graph, for a tensor of the model."""
        held = StoredTensor(self.fresh(name), dims, order)
        self.shapes[held.name] = held.shape
        self.held[name] = held
        return held

    def part_of(self, held: StoredTensor, what: str) -> str:
        """The name of a new tensor of the graph, with another tensor's shape."""
        name = self.fresh(f"{held.name}:{what}")
        self.shapes[name] = self.shapes[held.name]
        return name


def dims_of(argument: Argument) -> tuple[int, ...]:
    """The shape of a tensor of floats (or quantized bytes). Raises Problem unless every size is known."""
    t = argument.type
    if not isinstance(t, TensorType) or t.static_shape is None:
        raise Problem(f"the shape of {argument.name!r} is not known before the model runs")
    return t.static_shape


def dtype_of(argument: Argument) -> DType:
    """The dtype of a tensor. Raises Problem unless it is of numbers or booleans."""
    t = argument.type
    if not isinstance(t, TensorType) or not (t.dtype.is_float or t.dtype.is_integer or t.dtype.is_bool):
        raise Problem(f"{argument.name!r} is {t}; numbers and booleans are supported")
    return t.dtype
