"""Joining and splitting along an axis."""

from __future__ import annotations

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, Tuple
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.sizes import plus
from ..ir.types import Dim, ShapeType, TensorType, Type, join_dim
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of
from .movement import AxisConfig

FAMILY = "movement"


class Concat(Node[AxisConfig]):
    """Joined along an axis (before opset 4, 1 unless given). Sizes joined on the host stay there."""

    since = (1, 4, 11, 13)

    @classmethod
    def read(cls, a: Attributes) -> AxisConfig:
        return AxisConfig(a.int("axis", 1 if a.opset < 4 else None))

    def hosts(self) -> bool:
        return (
            self.config.axis in (0, -1)
            and any(isinstance(a.type, ShapeType) for a in self.inputs)
            and all(isinstance(a.type, ShapeType) or self.vector(i) for i, a in enumerate(self.inputs))
        )

    def vector(self, i: int) -> bool:
        value = self.value(i)
        return value is not None and value.dtype.name == "int64" and len(value.shape) == 1 and value.size <= 64

    def infer(self) -> tuple[Type, ...]:
        if self.hosts():
            dims: list[Dim] = []
            for i in range(len(self.inputs)):
                dims += self.dims(i) or ()
            return (ShapeType(tuple(dims)),)
        types = [self.tensor(i) for i in range(len(self.inputs))]
        shapes = [t.shape for t in types if t.shape is not None]
        if not shapes:
            return (TensorType(types[0].dtype),)
        rank = len(shapes[0])
        axis = axis_of(self.config.axis, rank)
        out: list[Dim] = list(shapes[0])
        for s in shapes[1:]:
            if len(s) != rank:
                raise Problem(f"tensors of rank {rank} and {len(s)} do not join")
            for i in range(rank):
                if i == axis:
                    continue
                if isinstance(out[i], int) and isinstance(s[i], int) and out[i] != s[i]:
                    raise Problem(f"shapes {shapes[0]} and {s} do not join along axis {axis}")
                out[i] = (
                    out[i] if isinstance(out[i], int) else s[i] if isinstance(s[i], int) else join_dim(out[i], s[i])
                )
        total: Dim = shapes[0][axis]
        for s in shapes[1:]:
            total = plus(total, s[axis])
        out[axis] = total if len(shapes) == len(types) else None
        return (TensorType(types[0].dtype, tuple(out)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ShapeType):
            parts: list[Expr] = []  # not (*a, b), which MicroPython cannot read
            for i in range(len(self.inputs)):
                part = e.held(i)
                if isinstance(part, Tuple) and parts and isinstance(parts[-1], Tuple):
                    parts[-1] = Tuple(parts[-1].items + part.items)
                elif not isinstance(part, Tuple) or part.items:
                    parts.append(part)
            whole = parts[0] if parts else Tuple(())
            for part in parts[1:]:
                whole = Binary("+", whole, part)
            return whole
        if len(self.inputs) == 1:
            return e.x(0)
        return e.call("concat", tuple(e.x(i) for i in range(len(self.inputs))), axis=default(self.config.axis))


@dataclass(frozen=True)
class SplitConfig:
    """sizes: the attribute of opset 1 to 12. num_outputs: since opset 18, if the sizes are not given."""

    axis: int
    sizes: tuple[int, ...] | None
    num_outputs: int


class Split(Node[SplitConfig]):
    """Into parts of given sizes, or of equal ones (the last one may be smaller)."""

    since, static = (1, 2, 11, 13, 18), (1,)

    @classmethod
    def read(cls, a: Attributes) -> SplitConfig:
        sizes = a.ints("split") if a.has("split") else None
        if a.has("num_outputs") and a.int("num_outputs") != len(a.outputs):
            raise Problem(f"num_outputs is {a.int('num_outputs')}, the node has {len(a.outputs)} outputs")
        return SplitConfig(a.int("axis", 0), sizes, len(a.outputs))

    def sizes(self) -> tuple[int, ...] | None:
        if self.config.sizes is not None:
            return self.config.sizes
        return self.ints(1) if self.has(1) else None

    def infer(self) -> tuple[Type, ...]:
        x, n = self.tensor(0), self.config.num_outputs
        if x.shape is None:
            return (TensorType(x.dtype),) * n
        axis = axis_of(self.config.axis, len(x.shape))
        whole, sizes = x.shape[axis], self.sizes()
        parts: list[Dim] = [None] * n
        if sizes is not None:
            if len(sizes) != n or (isinstance(whole, int) and sum(sizes) != whole):
                raise Problem(f"parts of {sizes} do not make up axis {axis} of {x.shape} in {n} outputs")
            parts = list(sizes)
        elif not self.has(1) and isinstance(whole, int):
            each = -(-whole // n)
            parts = [max(0, min(each, whole - i * each)) for i in range(n)]
        return tuple(TensorType(x.dtype, (*x.shape[:axis], p, *x.shape[axis + 1 :])) for p in parts)

    def emit(self, e: Emitter) -> Emission:
        sizes = self.sizes()
        if len(self.outputs) == 1:
            return e.x(0)
        axis = default(self.config.axis)
        if sizes is not None and len(set(sizes)) > 1:
            return e.call("split", e.x(0), sizes, axis=axis)
        if sizes is None and self.has(1):
            return e.call("split", e.x(0), e.ints(1), axis=axis)
        return e.call("split", e.x(0), self.config.num_outputs, axis=axis)
