"""Expanding, tiling and padding: operators that enlarge a tensor."""

from __future__ import annotations

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr, Name, Tuple, flat, lift
from ..ir.choices import PadMode
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type, broadcast
from ..ir.value import Fill, Value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, axes_of, axis_of, times

FAMILY = "movement"


class Expand(Plain):
    """Broadcast to a shape, by NumPy's rule in both directions."""

    since, static = (8, 13), (1,)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, broadcast(x.shape, self.dims(1))),)

    def folded(self) -> Value | None:
        value, out = self.value(0), self.outputs[0].type
        if value is None or not isinstance(out, TensorType) or out.static_shape is None:
            return None
        if isinstance(value.source, Fill):
            return Value(value.dtype, out.static_shape, value.source)
        item = value.item() if value.size == 1 else ""
        return None if isinstance(item, str) else Value(value.dtype, out.static_shape, Fill(item))

    def emit(self, e: Emitter) -> Emission:
        value, out = self.value(0), self.outputs[0].type
        ranks = self.rank_of_result(out)
        if value is not None and value.size == 1 and ranks and value.dtype.bits >= 16:
            if value.dtype.is_float:
                return e.filled(e.ints(1), e.shortest(value), value.dtype)
            if value.dtype.is_integer:
                return e.filled(e.ints(1), value.ints()[0], value.dtype)
        return e.method(e.x(0), "expand", e.ints(1))

    def rank_of_result(self, out: Type) -> bool:
        """Whether the requested shape has all axes of the result."""
        dims, x = self.dims(1), self.tensor(0)
        return dims is not None and x.rank is not None and len(dims) >= x.rank and isinstance(out, TensorType)


class Tile(Plain):
    """Repeated along each axis; opset 1 takes a count and an axis instead."""

    since, static = (1, 6, 13), (1, 2)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if self.has(2):
            axis, count = self.ints(2), self.ints(1)
            if x.shape is None or axis is None:
                return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
            at = axis_of(axis[0], len(x.shape))
            repeat: Dim = count[0] if count else None
            return (TensorType(x.dtype, tuple(times(d, repeat) if i == at else d for i, d in enumerate(x.shape))),)
        repeats = self.dims(1)
        if x.shape is None or repeats is None:
            return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
        if len(repeats) != len(x.shape):
            raise Problem(f"{len(repeats)} repeats for a tensor of rank {len(x.shape)}")
        return (TensorType(x.dtype, tuple(times(d, r) for d, r in zip(x.shape, repeats, strict=True))),)

    def emit(self, e: Emitter) -> Emission:
        if self.has(2):
            return e.call("repeat_dim", e.x(0), *(self.as_int(e, i) for i in (2, 1)))
        return e.call("tile", e.x(0), e.ints(1))

    def as_int(self, e: Emitter, i: int) -> Expr:
        """A count or an axis of opset 1, which has the dtype of x, as an int."""
        value = self.value(i)
        if value is not None and value.size == 1 and value.dtype.is_float:
            return lift(int(value.list()[0]))
        return e.builtin("int", e.number(i)) if self.dtype(i).is_float else e.integer(i)


@dataclass(frozen=True)
class PadConfig:
    """pads, value: the attributes of opset 1 to 10; None and 0 if they are inputs."""

    mode: PadMode
    pads: tuple[int, ...] | None
    value: float


class Pad(Node[PadConfig]):
    """New elements around the tensor; since opset 18 along given axes."""

    since, static = (1, 2, 11, 13, 18, 19, 21, 23, 24, 25), (1, 3)

    @classmethod
    def read(cls, a: Attributes) -> PadConfig:
        mode = a.choice("mode", PadMode, PadMode.CONSTANT)
        if a.opset >= 11:
            return PadConfig(mode, None, 0.0)
        return PadConfig(mode, a.ints("paddings" if a.opset < 2 else "pads"), a.float("value", 0.0))

    def axes(self) -> tuple[int, ...] | None:
        """The axes, None if they are known only at run time."""
        if not self.has(3):
            return tuple(range(self.rank(0)))
        axes = self.ints(3)
        return None if axes is None else axes_of(axes, self.rank(0))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        axes, pads = self.axes(), self.config.pads if self.config.pads is not None else self.ints(1)
        if axes is None:
            return (TensorType(x.dtype, (None,) * len(x.shape)),)
        out = list(x.shape)
        given = pads if self.config.pads is not None else self.dims(1)
        if given is not None and len(given) != 2 * len(axes):
            raise Problem(f"{len(given)} pads for {len(axes)} axes, expected two for each")
        for i, axis in enumerate(axes):
            d = out[axis]
            if pads is None:
                out[axis] = None
            elif pads[i] or pads[i + len(axes)]:
                out[axis] = d + pads[i] + pads[i + len(axes)] if isinstance(d, int) else None
        return (TensorType(x.dtype, tuple(out)),)

    def emit(self, e: Emitter) -> Emission:
        c, axes = self.config, self.axes()
        mode = default(c.mode)
        if axes is None:
            filled = {"value": e.number(2)} if self.has(2) and c.mode == "constant" else {}
            return e.call("pad_axes", e.x(0), e.ints(1), e.ints(3), mode=mode, **filled)
        around = self.pairs(e, axes)
        if c.mode != "constant":
            return e.call("pad", e.x(0), around, mode=mode)
        value = e.number(2) if self.has(2) else lift(c.value if self.dtype(0).is_float else int(c.value))
        zero = flat(value) in ("0", "0.0", "False")
        return e.call("pad", e.x(0), around, **({} if zero else {"value": value}))

    def pairs(self, e: Emitter, axes: tuple[int, ...]) -> Expr:
        """A (low, high) pair for each axis."""
        pads = self.config.pads if self.config.pads is not None else self.ints(1)
        pairs: list[Expr] = [lift((0, 0))] * self.rank(0)
        held = lift(None) if pads is not None else self.given(e)
        for i, axis in enumerate(axes):
            j = i + len(axes)
            low = lift(pads[i]) if pads is not None else e.index(held, i)
            high = lift(pads[j]) if pads is not None else e.index(held, j)
            pairs[axis] = Tuple((low, high))
        return Tuple(tuple(pairs))

    def given(self, e: Emitter) -> Expr:
        pads = e.ints(1)
        return pads if isinstance(pads, Name) else e.assign("pads", pads)
