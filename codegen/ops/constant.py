"""Constants, shapes and fills: values that depend on no tensor, or only on a shape."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Self

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Attribute, Expr, SliceKey, lift
from ..ir.argument import Constant as ConstantSource
from ..ir.choices import RoundMode
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.sizes import minus
from ..ir.types import Dim, ScalarType, ShapeType, TensorType, Type, product
from ..ir.value import Fill, Inline, Value, ints_value, scalar_value, text_value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain


@dataclass(frozen=True)
class ConstantConfig:
    value: Value


class Constant(Node[ConstantConfig]):
    """A value in the file, as a tensor, or (since opset 12) as a number, a string or a list of them."""

    since, absorbed = (1, 9, 11, 12, 13, 19, 21, 23, 24, 25), True

    @classmethod
    def read(cls, a: Attributes) -> ConstantConfig:
        if a.has("value"):
            return ConstantConfig(a.tensor("value"))
        if a.has("sparse_value"):
            return ConstantConfig(a.tensor("sparse_value"))
        if a.has("value_int"):
            return ConstantConfig(scalar_value(a.int("value_int"), dtypes.int64))
        if a.has("value_ints"):
            return ConstantConfig(ints_value(a.ints("value_ints")))
        if a.has("value_float"):
            return ConstantConfig(scalar_value(a.float("value_float"), dtypes.float32))
        if a.has("value_floats"):
            return ConstantConfig(floats_value(a.floats("value_floats")))
        if a.has("value_string"):
            return ConstantConfig(text_value((a.string("value_string"),), ()))
        if a.has("value_strings"):
            return ConstantConfig(text_value(a.strings("value_strings")))
        raise Problem("has no value")

    def infer(self) -> tuple[Type, ...]:
        value = self.config.value
        return (TensorType(value.dtype, value.shape),)

    def typed(self) -> Self:
        node = super().typed()
        source = ConstantSource(self.config.value)
        return replace(node, outputs=tuple(replace(o, source=source) for o in node.outputs))

    def emit(self, e: Emitter) -> Emission:
        return e.parameter(self.outputs[0].name, self.config.value)


def floats_value(values: tuple[float, ...]) -> Value:
    return Value(dtypes.float32, (len(values),), Inline(struct.pack(f"<{len(values)}f", *values)))


@dataclass(frozen=True)
class ConstantOfShapeConfig:
    value: Value


class ConstantOfShape(Node[ConstantOfShapeConfig]):
    """One value, as often as the shape says."""

    since, static = (9, 20, 21, 23, 24, 25), (0,)

    @classmethod
    def read(cls, a: Attributes) -> ConstantOfShapeConfig:
        value = a.tensor("value") if a.has("value") else scalar_value(0.0, dtypes.float32)
        if value.size != 1:
            raise Problem(f"the value has {value.size} elements, expected 1")
        return ConstantOfShapeConfig(value)

    def infer(self) -> tuple[Type, ...]:
        if self.dtype(0).name != "int64":
            raise Problem(f"the shape is {self.dtype(0).name}, expected int64")
        return (TensorType(self.config.value.dtype, self.dims(0)),)

    def folded(self) -> Value | None:
        shape = self.ints(0)
        item = self.config.value.item()
        return None if shape is None or isinstance(item, str) else Value(self.config.value.dtype, shape, Fill(item))

    def emit(self, e: Emitter) -> Emission:
        value = self.config.value
        return e.filled(e.ints(0), e.shortest(value), value.dtype)


@dataclass(frozen=True)
class ShapeConfig:
    start: int = 0
    end: int | None = None


class Shape(Node[ShapeConfig]):
    """The sizes of a tensor, or (opset 15) some of them, as Python ints."""

    since = (1, 13, 15, 19, 21, 23, 24, 25)

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        if shape is None:
            return (TensorType(dtypes.int64, (None,)),)
        return (ShapeType(shape[self.config.start : self.config.end]),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        shape = e.shape_of(e.x())
        if c.start or c.end is not None:
            start = lift(c.start) if c.start else None
            shape = e.index(shape, SliceKey(start, None if c.end is None else lift(c.end)))
        if isinstance(self.outputs[0].type, ShapeType):
            return shape
        return e.create("asarray", shape, dtype=dtypes.int64)


class Size(Plain):
    """The number of elements, as a Python int."""

    since = (1, 13, 19, 21, 23, 24, 25)

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        return (ScalarType(dtypes.int64, None if shape is None else product(shape), True),)

    def emit(self, e: Emitter) -> Emission:
        return Attribute(e.x(), "size")


class Range(Plain):
    """start, start + delta, … below limit."""

    since = (11, 27)

    def infer(self) -> tuple[Type, ...]:
        values = [self.value(i) for i in range(3)]
        dtype = self.dtype(0)
        count: Dim = None
        limit_type = self.type(1)
        start, step = values[0], values[2]
        counts = start is not None and start.item() == 0 and step is not None and step.item() == 1
        if counts and isinstance(limit_type, ScalarType) and limit_type.natural and values[1] is None:
            count = limit_type.value  # a named size
        elif all(v is not None for v in values):
            first, limit, delta = (float(v.item()) for v in values if v is not None)
            if not delta:
                raise Problem("delta is 0")
            count = max(0, math.ceil((limit - first) / delta))
        elif all(self.ints(i) is not None for i in range(3)) and dtype.is_integer:
            a, b, c = ((self.ints(i) or (0,))[0] for i in range(3))
            count = len(range(a, b, c)) if c else None
        elif step is not None and step.item() == 1 and dtype.is_integer and self.sizes(0) and self.sizes(1):
            ends = [self.dims(i) or (None,) for i in (0, 1)]
            count = minus(ends[1][0], ends[0][0])
        return (TensorType(dtype, (count,)),)

    def sizes(self, i: int) -> bool:
        """Whether a bound is a size, which is never negative."""
        t = self.type(i)
        return self.value(i) is not None or (isinstance(t, ScalarType) and t.natural)

    def emit(self, e: Emitter) -> Emission:
        start, limit, delta = (e.number(i) for i in range(3))
        # Of ints, F.arange makes int64.
        dtype: dict[str, dtypes.DType] = {} if self.dtype(0) is dtypes.int64 else {"dtype": self.dtype(0)}
        if delta == lift(1) and start == lift(0):
            return e.create("arange", limit, **dtype)
        if delta == lift(1):
            return e.create("arange", start, limit, **dtype)
        return e.create("arange", start, limit, delta, **dtype)


@dataclass(frozen=True)
class EyeLikeConfig:
    dtype: dtypes.DType | None
    k: int


class EyeLike(Node[EyeLikeConfig]):
    """Ones on a diagonal of a matrix shaped like the input."""

    since = (9, 22)

    @classmethod
    def read(cls, a: Attributes) -> EyeLikeConfig:
        return EyeLikeConfig(a.dtype("dtype") if a.has("dtype") else None, a.int("k", 0))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is not None and len(x.shape) != 2:
            raise Problem(f"the input has shape {x.shape}, expected a matrix")
        return (TensorType(self.config.dtype or x.dtype, x.shape if x.shape is not None else (None, None)),)

    def emit(self, e: Emitter) -> Emission:
        dtype = self.config.dtype or self.dtype(0)
        if self.tensor(0).shape is None:
            return e.call("eye_like", e.x(), k=default(self.config.k), dtype=dtype)
        x = e.shape_of(e.x())
        rows, columns = e.index(x, 0), e.index(x, 1)
        return e.create("eye", rows, columns, **({"k": self.config.k} if self.config.k else {}), dtype=dtype)


@dataclass(frozen=True)
class TriluConfig:
    upper: bool = True


class Trilu(Node[TriluConfig]):
    """The triangle above or below the k-th diagonal."""

    since, static = (14,), (1,)

    def infer(self) -> tuple[Type, ...]:
        return (self.tensor(0),)

    def emit(self, e: Emitter) -> Emission:
        function = "triu" if self.config.upper else "tril"
        if not self.has(1):
            return e.call(function, e.x(0))
        k = e.integer(1)
        return e.call(function, e.x(0)) if k == lift(0) else e.call(function, e.x(0), k=k)


@dataclass(frozen=True)
class CastConfig:
    dtype: dtypes.DType
    saturate: bool
    round_mode: RoundMode


class Cast(Node[CastConfig]):
    """Another dtype; between numbers and strings too."""

    since = (1, 6, 9, 13, 19, 21, 23, 24, 25, 28)

    @classmethod
    def read(cls, a: Attributes) -> CastConfig:
        dtype = dtypes.dtype(a.string("to").lower()) if a.opset < 6 else a.dtype("to")
        round_mode = a.choice("round_mode", RoundMode, RoundMode.UP)
        return CastConfig(dtype, a.flag("saturate", True), round_mode)

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        if isinstance(t, ScalarType | ShapeType) and self.config.dtype.name == "int64":
            return (t,)
        return (TensorType(self.config.dtype, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        if isinstance(self.outputs[0].type, ScalarType | ShapeType):
            return e.held(0)
        return cast(e, e.x(0), self.dtype(0), self.config.dtype, self.config.saturate, self.config.round_mode)


@dataclass(frozen=True)
class CastLikeConfig:
    saturate: bool
    round_mode: RoundMode


class CastLike(Node[CastLikeConfig]):
    """Another tensor's dtype."""

    since, typing = (15, 19, 21, 23, 24, 25), (1,)

    @classmethod
    def read(cls, a: Attributes) -> CastLikeConfig:
        round_mode = a.choice("round_mode", RoundMode, RoundMode.UP)
        return CastLikeConfig(a.flag("saturate", True), round_mode)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(1), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        return cast(e, e.x(0), self.dtype(0), self.dtype(1), self.config.saturate, self.config.round_mode)


def cast(
    e: Emitter, x: Expr, source: dtypes.DType, target: dtypes.DType, saturate: bool, round_mode: str = "up"
) -> Expr:
    """x.astype(…), with the options that only narrow floats have."""
    if source is target:
        return x
    if source.is_float and target.is_integer and target.bits < 8:
        x = e.method(x, "astype", dtypes.int32)  # from here on it wraps, whereas a float would saturate
    extras: dict[str, bool | str] = {}
    if not saturate and target.is_float and target.bits <= 8:
        extras["saturate"] = False
    if round_mode != "up" and target.name == "float8_e8m0fnu":
        extras["round_mode"] = round_mode
    if extras:
        return e.call("cast", x, target, **extras)
    return e.method(x, "astype", target)


@dataclass(frozen=True)
class BitCastConfig:
    dtype: dtypes.DType


class BitCast(Node[BitCastConfig]):
    """The same bits as another dtype."""

    since = (26,)

    @classmethod
    def read(cls, a: Attributes) -> BitCastConfig:
        return BitCastConfig(a.dtype("to"))

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.config.dtype, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("bitcast", e.x(), self.config.dtype)
