"""Slicing."""

from __future__ import annotations

from typing import Any

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr, Name, SliceKey, Tuple, lift
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.sizes import minus, plus, smaller
from ..ir.types import Dim, ScalarType, Shape, ShapeType, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axes_of

FAMILY = "movement"

FAR = (1 << 31) - 1


@dataclass(frozen=True)
class SliceConfig:
    """The attributes of opset 1 to 9; None from 10 on, where they are inputs."""

    starts: tuple[int, ...] | None
    ends: tuple[int, ...] | None
    axes: tuple[int, ...] | None


class Slice(Node[SliceConfig]):
    """start:end:step along axes, with Python's meaning."""

    since, static = (1, 10, 11, 13), (1, 2, 3, 4)

    @classmethod
    def read(cls, a: Attributes) -> SliceConfig:
        if a.opset >= 10:
            return SliceConfig(None, None, None)
        return SliceConfig(a.ints("starts"), a.ints("ends"), a.ints("axes") if a.has("axes") else None)

    def bounds(self) -> tuple[Shape, Shape, tuple[int, ...], Shape]:
        """(starts, ends, axes, steps) as far as they are known. Raises Problem if not even their number is."""
        c = self.config
        starts = c.starts if c.starts is not None else self.dims(1)
        ends = c.ends if c.ends is not None else self.dims(2)
        if starts is None or ends is None:
            known = self.ints(3) if self.has(3) else None
            count = len(known) if known is not None else self.tensor(0).rank if not self.has(3) else None
            if count is None:
                raise Problem("the number of axes to slice is not known")
            starts, ends = starts or (None,) * count, ends or (None,) * count
        axes: tuple[int, ...] | None = tuple(range(len(starts)))
        if c.axes is not None or self.has(3):
            axes = c.axes if c.axes is not None else self.ints(3)
        if axes is None:
            raise Problem("the axes to slice are only known when the model runs; they must be constant")
        steps = self.dims(4) if self.has(4) else (1,) * len(starts)
        if steps is None:
            steps = (None,) * len(starts)
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise Problem(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} differ in number")
        if 0 in steps:
            raise Problem("a step is 0")
        return starts, ends, axes, steps

    def open(self) -> bool:
        """Whether the axes, or their number, are known only at run time."""
        if self.config.starts is not None:
            return self.tensor(0).rank is None
        return (self.has(3) and self.ints(3) is None) or self.dims(1) is None or self.tensor(0).rank is None

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        if self.open():
            x = self.tensor(0)
            return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
        starts, ends, axes, steps = self.bounds()
        if isinstance(t, ShapeType) and self.are_known(starts, ends, steps):
            bounds: tuple[Any, ...] = (starts[0], ends[0], steps[0]) if starts else (None,)
            return (ShapeType(t.dims[slice(*bounds)]),)
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        out = list(x.shape)
        for start, end, axis, step in zip(starts, ends, axes_of(axes, len(out)), steps, strict=True):
            d = out[axis]
            if isinstance(d, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
                out[axis] = len(range(*slice(start, end, step).indices(d)))
            elif start == 0 and isinstance(end, int) and end >= FAR and step == 1:
                out[axis] = d
            elif start == 0 and end == d and step == 1:
                out[axis] = d
            elif start == 0 and step == 1 and isinstance(d, int) and isinstance(end, str) and self.sizes(2):
                out[axis] = smaller(d, end)
            elif start == 0 and step == 1 and isinstance(end, int) and end > 0 and isinstance(d, str):
                out[axis] = smaller(end, d)
            elif step == 1 and isinstance(end, str) and self.within(start, end, d):
                out[axis] = minus(end, start)
            else:
                out[axis] = None
        return (TensorType(x.dtype, tuple(out)),)

    def sizes(self, i: int) -> bool:
        """Whether an input's named elements are sizes, which are never negative."""
        t = self.type(i)
        return t.natural if isinstance(t, ScalarType) else isinstance(t, ShapeType)

    def within(self, start: Dim, end: Dim, whole: Dim) -> bool:
        """Whether a slice surely lies within its axis, by symbolic sizes."""
        if not (self.sizes(2) and (isinstance(start, int) or self.sizes(1))) or whole is None:
            return False
        length = minus(end, start)
        if isinstance(whole, str) and isinstance(length, str):
            # An empty axis has nothing to cut off.
            whole = plus(minus(whole, f"min(1, {length})"), 1) or whole
        return length is not None and minus(whole, end) is not None

    @staticmethod
    def are_known(*parts: Shape) -> bool:
        return all(isinstance(d, int) for part in parts for d in part)

    def by_values(self, e: Emitter) -> Emission:
        """For axes known only at run time."""
        c = self.config
        if c.starts is not None and c.ends is not None:
            axes = None if c.axes is None else lift(c.axes)
            return e.call("slice_axes", e.x(0), lift(c.starts), lift(c.ends), axes=default(axes))
        axes = e.ints(3) if self.has(3) else None
        steps = e.ints(4) if self.has(4) else None
        return e.call("slice_axes", e.x(0), e.ints(1), e.ints(2), axes=default(axes), steps=default(steps))

    def emit(self, e: Emitter) -> Emission:
        if self.open():
            return self.by_values(e)
        starts, ends, axes, steps = self.bounds()
        x = e.held(0) if isinstance(self.outputs[0].type, ShapeType) else e.x(0)
        if isinstance(self.outputs[0].type, ShapeType):
            return e.index(x, self.key(e, 0, starts, ends, steps)) if starts else x
        rank = self.rank(0)
        places = axes_of(axes, rank)
        keys: list[Expr] = [SliceKey()] * rank
        shape = self.shape(0)
        for i, axis in enumerate(places):
            keys[axis] = self.key(e, i, starts, ends, steps, None if shape is None else shape[axis])
        while len(keys) > 1 and keys[-1] == SliceKey():
            keys.pop()
        if all(k == SliceKey() for k in keys):
            return x
        return e.index(x, keys[0] if len(keys) == 1 else Tuple(tuple(keys)))

    def key(self, e: Emitter, i: int, starts: Shape, ends: Shape, steps: Shape, size: Dim = None) -> Expr:
        """What stands between the brackets for one axis. size: the axis's own, as far as it is known."""
        step = steps[i]
        backwards = isinstance(step, int) and step < 0
        start: Expr | None = self.bound(e, 1, i, starts)
        end: Expr | None = self.bound(e, 2, i, ends)
        if isinstance(step, int):
            if starts[i] == 0 and not backwards:
                start = None
            if not backwards and _far(starts[i], below=True):
                start = None
            if backwards and _far(starts[i]):
                start = None
            last = ends[i]
            if _far(last, below=backwards):
                end = None
            elif isinstance(last, int) and isinstance(size, int) and last >= size and not backwards:
                end = None
        return SliceKey(start, end, None if step == 1 else self.bound(e, 4, i, steps))

    def bound(self, e: Emitter, source: int, i: int, known: Shape) -> Expr:
        d = known[i]
        if isinstance(d, int):
            return lift(d)
        given = e.ints(source)
        if isinstance(given, Tuple):
            return given.items[i]
        if not isinstance(given, Name):
            given = e.once(source, ("starts", "ends", "axes", "steps")[source - 1], given)
        return e.index(given, i)


def _far(d: Dim, below: bool = False) -> bool:
    return isinstance(d, int) and (d <= -(1 << 31) + 1 if below else d >= (1 << 31) - 1)
