"""Reductions over axes, arg-extremes and cumulative operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, Liftable, lift
from ..ir.graph import Node
from ..ir.types import Shape, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axes_of, axis_of


@dataclass(frozen=True)
class ReduceConfig:
    """axes: those given as an attribute, None if they are an input or all axes are meant."""

    axes: tuple[int, ...] | None
    keepdims: bool
    noop_with_empty_axes: bool


@dataclass(frozen=True)
class Reduction(Node[ReduceConfig], ABC):
    """Axes were an attribute before they became the second input."""

    static = (1,)

    @classmethod
    def read(cls, a: Attributes) -> ReduceConfig:
        given = a.ints("axes") if a.has("axes") else None
        return ReduceConfig(given or None, a.flag("keepdims", True), a.flag("noop_with_empty_axes"))

    def axes(self) -> tuple[int, ...] | None:
        """The axes, if they are known: () for none, all axes if only the rank is known."""
        given = self.config.axes
        if given is None and self.has(1):
            given = self.ints(1)
            if given is None:
                return None
        if not given:
            if self.config.noop_with_empty_axes:
                return ()
            rank = self.tensor(0).rank
            return None if rank is None else tuple(range(rank))
        rank = self.tensor(0).rank
        return given if rank is None else tuple(sorted(axes_of(given, rank)))

    def infer(self) -> tuple[Type, ...]:
        x, axes = self.tensor(0), self.axes()
        return (TensorType(x.dtype, self.reduced(x.shape, axes)),)

    def reduced(self, shape: Shape | None, axes: tuple[int, ...] | None) -> Shape | None:
        if shape is None:
            return None
        if axes is None:
            if self.config.keepdims:
                return (None,) * len(shape)
            count = self.dims(1)
            return None if count is None or not count else (None,) * (len(shape) - len(count))
        if self.config.keepdims:
            return tuple(1 if i in axes else d for i, d in enumerate(shape))
        return tuple(d for i, d in enumerate(shape) if i not in axes)

    def axis(self, e: Emitter) -> Liftable:
        """The `axis` argument: None for all, an int, a tuple, or an expression."""
        axes = self.axes()
        if axes is not None:
            rank = self.tensor(0).rank
            if axes and rank is not None and len(axes) == rank:
                return None
            return axes[0] if len(axes) == 1 else axes
        if not self.has(1):
            return None
        known = self.dims(1)
        if known:
            return e.ints(1)
        # The number of axes is known only at run time: none may mean all.
        given = e.assign("axes", e.ints(1))
        return given if self.config.noop_with_empty_axes else Binary("or", given, lift(None))

    def emit(self, e: Emitter) -> Emission:
        return self.reduce(e, e.x(0), self.axis(e))

    @abstractmethod
    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        """The expression of the reduction."""

    def extreme(self, e: Emitter, function: str, x: Expr, axis: Liftable) -> Expr:
        """The largest or smallest element; of no elements, the identity of max or min."""
        shape, out = self.shape(0), self.outputs[0].type
        dtype = self.dtype(0)
        known = out.static_shape if isinstance(out, TensorType) and self.axes() is not None else None
        if shape is not None and 0 in shape and not dtype.is_bool:
            least, most = (float("-inf"), float("inf")) if dtype.is_float else dtype.range
            value = least if function == "max" else most
            if known is not None:
                return e.create("full", known, value, dtype=dtype)
            # x has no elements, so every element of the result is the identity; the sum gives its shape.
            empty = e.call("sum", x, **axis_argument(axis), dtype=dtype, **self.keep())
            return e.call("full_like", empty, value)
        return e.call(function, x, **axis_argument(axis), **self.keep())

    def keep(self) -> dict[str, Liftable]:
        return {"keepdims": True} if self.config.keepdims else {}


class ReduceSum(Reduction):
    """Keeps the dtype (the array API would widen small integers)."""

    since = (1, 11, 13)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return total(e, "sum", x, axis, self)


class ReduceProd(Reduction):
    since = (1, 11, 13, 18)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return total(e, "prod", x, axis, self)


class ReduceMean(Reduction):
    since = (1, 11, 13, 18)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        if self.dtype(0).is_float:
            return e.call("mean", x, **axis_argument(axis), **self.keep())
        mean = e.call("mean", e.method(x, "astype", dtypes.float64), **axis_argument(axis), **self.keep())
        return e.method(mean, "astype", self.dtype(0))


class ReduceMax(Reduction):
    """Of booleans, whether any is true (opset 20)."""

    since = (1, 11, 12, 13, 18, 20)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return self.extreme(e, "any" if self.dtype(0).is_bool else "max", x, axis)


class ReduceMin(Reduction):
    """Of booleans, whether all are true (opset 20)."""

    since = (1, 11, 12, 13, 18, 20)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return self.extreme(e, "all" if self.dtype(0).is_bool else "min", x, axis)


class ReduceL1(Reduction):
    since = (1, 11, 13, 18)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return total(e, "sum", e.call("abs", x), axis, self)


class ReduceL2(Reduction):
    since = (1, 11, 13, 18)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        if self.dtype(0).is_float:
            return e.call("norm", x, **axis_argument(axis), **self.keep())
        root = e.call("sqrt", total(e, "sum", e.call("square", x), axis, self))
        return e.method(root, "astype", self.dtype(0))


class ReduceLogSum(Reduction):
    since = (1, 11, 13, 18, 28)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return integral(e, back(e, e.call("log", total(e, "sum", wide(e, x, self), axis, self)), self), self)


class ReduceLogSumExp(Reduction):
    since = (1, 11, 13, 18, 28)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return integral(e, e.call("logsumexp", x, **axis_argument(axis), **self.keep()), self)


class ReduceSumSquare(Reduction):
    since = (1, 11, 13, 18)

    def reduce(self, e: Emitter, x: Expr, axis: Liftable) -> Expr:
        return back(e, total(e, "sum", e.call("square", wide(e, x, self)), axis, self), self)


def is_narrow(dtype: dtypes.DType) -> bool:
    """Whether sums of this dtype are computed in float32."""
    return dtype.is_float and dtype.bits < 32


def wide(e: Emitter, x: Expr, node: Reduction) -> Expr:
    """x, in float32 if it is a narrower float."""
    return e.method(x, "astype", dtypes.float32) if is_narrow(node.dtype(0)) else x


def back(e: Emitter, x: Expr, node: Reduction) -> Expr:
    """The reverse of `wide`."""
    return e.method(x, "astype", node.dtype(0)) if is_narrow(node.dtype(0)) else x


def integral(e: Emitter, x: Expr, node: Reduction) -> Expr:
    """A float result cast to the dtype of the operand, if that is an integer."""
    return e.method(x, "astype", node.dtype(0)) if node.dtype(0).is_integer else x


def total(e: Emitter, function: str, x: Expr, axis: Liftable, node: Reduction) -> Expr:
    dtype = node.dtype(0)
    wide = dtype.is_float or dtype.bits == 64
    return e.call(function, x, **axis_argument(axis), **({} if wide else {"dtype": dtype}), **node.keep())


def axis_argument(axis: Liftable) -> dict[str, Liftable]:
    return {} if axis is None else {"axis": axis}


# -- arg-extremes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArgConfig:
    axis: int
    keepdims: bool
    select_last_index: bool


@dataclass(frozen=True)
class ArgExtreme(Node[ArgConfig], ABC):
    """The index of the first extreme element along an axis, or of the last (opset 12)."""

    function: ClassVar[str]

    @classmethod
    def read(cls, a: Attributes) -> ArgConfig:
        last = a.flag("select_last_index")
        return ArgConfig(a.int("axis", 0), a.flag("keepdims", True), last)

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        if shape is None:
            return (TensorType(dtypes.int64),)
        if not shape and self.config.axis in (0, -1):  # a single number, which onnxruntime and the reference accept
            return (TensorType(dtypes.int64, ()),)
        axis = axis_of(self.config.axis, len(shape))
        if self.config.keepdims:
            return (TensorType(dtypes.int64, tuple(1 if i == axis else d for i, d in enumerate(shape))),)
        return (TensorType(dtypes.int64, tuple(d for i, d in enumerate(shape) if i != axis)),)

    def emit(self, e: Emitter) -> Emission:
        c, x = self.config, e.x()
        if self.shape(0) == ():
            return e.create("zeros", lift(()), dtype=dtypes.int64)
        keep = default(c.keepdims)
        if not c.select_last_index:
            return e.call(self.function, x, axis=c.axis, keepdims=keep)
        last = Binary("-", e.index(e.shape_of(x), c.axis), lift(1))
        return Binary("-", last, e.call(self.function, e.call("flip", x, axis=c.axis), axis=c.axis, keepdims=keep))


class ArgMax(ArgExtreme):
    since, function = (1, 11, 12, 13), "argmax"


class ArgMin(ArgExtreme):
    since, function = (1, 11, 12, 13), "argmin"


# -- cumulative -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CumulativeConfig:
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True)
class Cumulative(Node[CumulativeConfig], ABC):
    """A running total along the axis that the second input names; exclusive omits the element itself."""

    function: ClassVar[str]
    static = (1,)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        c, x, axis = self.config, e.x(0), e.integer(1)
        dtype = {"dtype": self.dtype(0)} if self.dtype(0).is_integer and self.dtype(0).bits < 64 else {}
        if c.reverse:
            x = e.call("flip", x, axis=axis)
        if c.exclusive:
            with_first = e.call(self.function, x, axis=axis, **dtype, include_initial=True)
            x = e.call("narrow", with_first, axis, 0, e.index(e.shape_of(e.x(0)), axis))
        else:
            x = e.call(self.function, x, axis=axis, **dtype)
        return e.call("flip", x, axis=axis) if c.reverse else x


class CumSum(Cumulative):
    since, function = (11, 14), "cumulative_sum"


class CumProd(Cumulative):
    since, function = (26,), "cumulative_prod"
