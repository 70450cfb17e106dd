"""Picking and placing elements by index."""

from __future__ import annotations

from typing import ClassVar

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr, SliceKey, Tuple, lift
from ..ir.choices import ScatterReduction
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import ScalarType, ShapeType, TensorType, Type, is_size
from ..ir.value import Value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, axis_of
from .movement import AxisConfig


class Gather(Node[AxisConfig]):
    """Slices along an axis. Gathering along the first axis of a learned table is an embedding layer."""

    since = (1, 11, 13)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis", 0))

    def picked(self) -> tuple[int, ...] | None:
        """The indices, if they are constant."""
        value = self.value(1)
        return value.ints() if value is not None else None

    def infer(self) -> tuple[Type, ...]:
        t, indices, picked = self.type(0), self.tensor(1), self.picked()
        if isinstance(t, ShapeType) and picked is not None and len(indices.shape or ()) <= 1:
            if any(not -len(t.dims) <= i < len(t.dims) for i in picked):
                raise Problem(f"index {picked} is outside a shape of {len(t.dims)} sizes")
            dims = tuple(t.dims[i] for i in picked)
            return (ShapeType(dims) if indices.shape else ScalarType(dtypes.int64, dims[0], is_size(dims[0])),)
        x = self.tensor(0)
        if x.shape is None or indices.shape is None:
            return (TensorType(x.dtype),)
        axis = axis_of(self.config.axis, len(x.shape))
        return (TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)

    def table(self) -> Value | None:
        """The weight, if this is an embedding; else None."""
        table = self.value(0)
        if table is None or len(table.shape) != 2 or not table.dtype.is_float or table.dtype.burn is None:
            return None
        return table if self.config.axis in (0, -2) and self.value(1) is None else None

    def emit(self, e: Emitter) -> Emission:
        picked = self.picked()
        if isinstance(self.outputs[0].type, ScalarType) and picked is not None:
            return e.index(e.held(0), picked[0])
        if isinstance(self.outputs[0].type, ShapeType) and picked is not None:
            shape = e.held(0)
            return Tuple(tuple(e.index(shape, i) for i in picked))
        table = self.table()
        if table is not None:
            return e.apply(e.block.module.embedding(self, table), e.x(1))
        rank = self.tensor(0).rank
        if picked is not None and self.tensor(1).shape == () and rank is not None:
            axis = axis_of(self.config.axis, rank)
            keys: list[Expr] = [SliceKey()] * axis + [lift(picked[0])]
            return e.index(e.x(0), keys[0] if len(keys) == 1 else Tuple(tuple(keys)))
        return e.call("take", e.x(0), e.x(1), axis=self.config.axis)


class GatherElements(Node[AxisConfig]):
    since = (11, 13)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis", 0))

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), self.shape(1)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("gather", e.x(0), self.config.axis, e.x(1))


@dataclass(frozen=True)
class GatherNDConfig:
    batch_dims: int


class GatherND(Node[GatherNDConfig]):
    """The last axis of the indices holds positions in the data."""

    since = (11, 12, 13)

    @classmethod
    def read(cls, a: Attributes) -> GatherNDConfig:
        return GatherNDConfig(a.int("batch_dims", 0) if a.opset >= 12 else 0)

    def infer(self) -> tuple[Type, ...]:
        x, indices, b = self.tensor(0), self.tensor(1), self.config.batch_dims
        if x.shape is None or indices.shape is None or not indices.shape or not isinstance(indices.shape[-1], int):
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, (*indices.shape[:-1], *x.shape[b + indices.shape[-1] :])),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("gather_nd", e.x(0), e.x(1), batch_dims=default(self.config.batch_dims))


@dataclass(frozen=True)
class ScatterConfig:
    axis: int
    reduction: ScatterReduction


class ScatterElements(Node[ScatterConfig]):
    since: ClassVar[tuple[int, ...]] = (11, 13, 16, 18)

    @classmethod
    def read(cls, a: Attributes) -> ScatterConfig:
        none = ScatterReduction.NONE
        reduction = a.choice("reduction", ScatterReduction, none)
        return ScatterConfig(a.int("axis", 0), reduction)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("scatter", e.x(0), self.config.axis, e.x(1), e.x(2), reduction=self.config.reduction)


class Scatter(ScatterElements):
    """The former name of ScatterElements, until opset 11."""

    since: ClassVar[tuple[int, ...]] = (9, 11)


@dataclass(frozen=True)
class ScatterNDConfig:
    reduction: ScatterReduction


class ScatterND(Node[ScatterNDConfig]):
    since = (11, 13, 16, 18)

    @classmethod
    def read(cls, a: Attributes) -> ScatterNDConfig:
        none = ScatterReduction.NONE
        return ScatterNDConfig(a.choice("reduction", ScatterReduction, none))

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        reduction = default(self.config.reduction)
        return e.call("scatter_nd", e.x(0), e.x(1), e.x(2), reduction=reduction)


class NonZero(Plain):
    """The indices of nonzero elements: (rank, count)."""

    since = (9, 13)

    def infer(self) -> tuple[Type, ...]:
        rank = self.tensor(0).rank
        return (TensorType(dtypes.int64, (1 if rank == 0 else rank, None)),)

    def emit(self, e: Emitter) -> Emission:
        x = e.method(e.x(), "reshape", (1,)) if self.tensor(0).rank == 0 else e.x()
        return e.call("stack", e.call("nonzero", x))


@dataclass(frozen=True)
class CompressConfig:
    axis: int | None = None


class Compress(Node[CompressConfig]):
    """The slices along an axis (None: the elements) whose condition holds."""

    since = (9, 11, 28)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if self.config.axis is None:
            return (TensorType(x.dtype, (None,)),)
        if x.shape is None:
            return (TensorType(x.dtype),)
        axis = axis_of(self.config.axis, len(x.shape))
        return (TensorType(x.dtype, (*x.shape[:axis], None, *x.shape[axis + 1 :])),)

    def emit(self, e: Emitter) -> Emission:
        where = e.index(e.call("nonzero", e.x(1)), 0)
        if self.config.axis is None:
            return e.call("take", e.method(e.x(0), "reshape", (-1,)), where)
        return e.call("take", e.x(0), where, axis=self.config.axis)


@dataclass(frozen=True)
class OneHotConfig:
    axis: int = -1


class OneHot(Node[OneHotConfig]):
    """A new axis of `depth` that is off everywhere but at the index."""

    since = (9, 11, 28)

    def infer(self) -> tuple[Type, ...]:
        indices, depth = self.shape(0), self.value(1)
        if self.shape(2) not in (None, (2,), (None,)) and not isinstance((self.shape(2) or (0,))[0], str):
            raise Problem(f"the values have shape {self.shape(2)}, expected (2,)")
        if indices is None:
            return (TensorType(self.dtype(2)),)
        axis = axis_of(self.config.axis, len(indices) + 1)
        item = None if depth is None else depth.item()
        size = None if item is None else int(item)
        return (TensorType(self.dtype(2), (*indices[:axis], size, *indices[axis:])),)

    def emit(self, e: Emitter) -> Emission:
        depth = e.number(1)
        if not self.dtype(1).is_integer:
            depth = e.builtin("int", depth)
        indices = e.x(0)
        if not self.dtype(0).is_integer:
            indices = e.method(indices, "astype", dtypes.int64)
        values = e.x(2)
        return e.call(
            "one_hot",
            indices,
            depth,
            axis=default(self.config.axis),
            off_value=e.index(values, 0),
            on_value=e.index(values, 1),
            dtype=self.dtype(2),
        )


@dataclass(frozen=True)
class ReverseSequenceConfig:
    batch_axis: int = 1
    time_axis: int = 0


class ReverseSequence(Node[ReverseSequenceConfig]):
    """The first sequence_lens[i] elements along time in reverse, for each i of the batch."""

    since = (10, 28)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call("reverse_sequence", e.x(0), e.x(1), time_axis=c.time_axis, batch_axis=c.batch_axis)


@dataclass(frozen=True)
class TopKConfig:
    axis: int
    largest: bool
    sorted: bool
    k: int | None


class TopK(Node[TopKConfig]):
    """The k largest or smallest along an axis, with their indices; k was an attribute before opset 10."""

    since, static = (1, 10, 11, 24), (1,)

    @classmethod
    def read(cls, a: Attributes) -> TopKConfig:
        k = a.int("k") if a.opset < 10 else None
        if a.opset < 11:
            return TopKConfig(a.int("axis", -1), True, True, k)
        return TopKConfig(a.int("axis", -1), a.flag("largest", True), a.flag("sorted", True), k)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        dims = self.dims(1) if self.config.k is None else (self.config.k,)
        if x.shape is None:
            return (TensorType(x.dtype), TensorType(dtypes.int64))
        axis = axis_of(self.config.axis, len(x.shape))
        shape = (*x.shape[:axis], dims[0] if dims else None, *x.shape[axis + 1 :])
        return (TensorType(x.dtype, shape), TensorType(dtypes.int64, shape))

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        k = e.integer(1) if c.k is None else lift(c.k)
        return e.call("topk_with_indices", e.x(0), k, axis=default(c.axis), largest=default(c.largest))
