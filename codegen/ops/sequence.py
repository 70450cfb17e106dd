"""Sequences, which are Python lists, and optionals, which are a value or None."""

from __future__ import annotations

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, List, Literal, lift
from ..ir.choices import PixelFormat
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import (
    AbsentType,
    OptionalType,
    ScalarType,
    SequenceType,
    ShapeType,
    TensorType,
    Type,
    as_tensor,
    join,
)
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, axis_of


def _element(t: Type) -> Type:
    """The type of a sequence's elements. Raises Problem if it is not a sequence."""
    if isinstance(t, OptionalType):
        return _element(t.element)
    if not isinstance(t, SequenceType):
        raise Problem(f"expected a sequence, found {t}")
    return t.element


def _tensor(t: Type) -> Type:
    """The type of a value put into a sequence: sizes and numbers become tensors."""
    return as_tensor(t) if isinstance(t, ScalarType | ShapeType) else t


class SequenceConstruct(Plain):
    since = (11,)

    def infer(self) -> tuple[Type, ...]:
        element = _tensor(self.type(0))
        for i in range(1, len(self.inputs)):
            element = join(element, _tensor(self.type(i)))
        return (SequenceType(element),)

    def emit(self, e: Emitter) -> Emission:
        return List(tuple(e.x(i) for i in range(len(self.inputs))))


@dataclass(frozen=True)
class SequenceEmptyConfig:
    dtype: DType


class SequenceEmpty(Node[SequenceEmptyConfig]):
    since = (11,)

    @classmethod
    def read(cls, a: Attributes) -> SequenceEmptyConfig:
        return SequenceEmptyConfig(a.dtype("dtype") if a.has("dtype") else dtypes.float32)

    def infer(self) -> tuple[Type, ...]:
        return (SequenceType(TensorType(self.config.dtype)),)

    def emit(self, e: Emitter) -> Emission:
        return List(())


class SequenceInsert(Plain):
    """The sequence with a tensor before a position, at the end by default."""

    since, static = (11,), (2,)

    def infer(self) -> tuple[Type, ...]:
        return (SequenceType(join(_element(self.type(0)), _tensor(self.type(1)))),)

    def emit(self, e: Emitter) -> Emission:
        if not self.has(2):
            return Binary("+", e.x(0), List((e.x(1),)))
        return e.call("sequence_insert", e.x(0), e.x(1), e.integer(2))


class SequenceErase(Plain):
    """The sequence without the element at a position, the last one by default."""

    since, static = (11,), (1,)

    def infer(self) -> tuple[Type, ...]:
        return (SequenceType(_element(self.type(0))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("sequence_erase", e.x(0), *([e.integer(1)] if self.has(1) else []))


class SequenceAt(Plain):
    since, static = (11,), (1,)

    def infer(self) -> tuple[Type, ...]:
        return (_element(self.type(0)),)

    def emit(self, e: Emitter) -> Emission:
        return e.index(e.x(0), e.integer(1))


class SequenceLength(Plain):
    since = (11,)

    def infer(self) -> tuple[Type, ...]:
        _element(self.type(0))
        return (ScalarType(dtypes.int64, None, True),)

    def emit(self, e: Emitter) -> Emission:
        return e.builtin("len", e.x(0))


@dataclass(frozen=True)
class SplitToSequenceConfig:
    axis: int = 0
    keepdims: bool = True


class SplitToSequence(Node[SplitToSequenceConfig]):
    """Parts of a tensor: of given lengths, of one length, or single elements."""

    since, static = (11, 24), (1,)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (SequenceType(TensorType(x.dtype)),)
        axis = axis_of(self.config.axis, len(x.shape))
        if not self.has(1):
            one = (1,) if self.config.keepdims else ()
            return (SequenceType(TensorType(x.dtype, (*x.shape[:axis], *one, *x.shape[axis + 1 :]))),)
        lengths = set(self.ints(1) or ())
        same = lengths.pop() if len(lengths) == 1 and self.shape(1) != () else None
        return (SequenceType(TensorType(x.dtype, (*x.shape[:axis], same, *x.shape[axis + 1 :]))),)

    def emit(self, e: Emitter) -> Emission:
        split: Expr | None = None
        if self.has(1):
            split = e.integer(1) if self.rank(1) == 0 else e.ints(1)
        return e.call(
            "split_to_sequence",
            e.x(0),
            split=default(split),
            axis=default(self.config.axis),
            keepdims=default(self.config.keepdims or self.has(1)),
        )


@dataclass(frozen=True)
class ConcatFromSequenceConfig:
    axis: int
    new_axis: bool = False


class ConcatFromSequence(Node[ConcatFromSequenceConfig]):
    """The sequence's tensors joined along an axis, or stacked along a new one."""

    since = (11,)

    def infer(self) -> tuple[Type, ...]:
        t = as_tensor(_element(self.type(0)))
        if t.shape is None:
            return (TensorType(t.dtype),)
        if self.config.new_axis:
            axis = axis_of(self.config.axis, len(t.shape) + 1)
            return (TensorType(t.dtype, (*t.shape[:axis], None, *t.shape[axis:])),)
        axis = axis_of(self.config.axis, len(t.shape))
        return (TensorType(t.dtype, (*t.shape[:axis], None, *t.shape[axis + 1 :])),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("stack" if self.config.new_axis else "concat", e.x(0), axis=default(self.config.axis))


@dataclass(frozen=True)
class OptionalConfig:
    element: Type | None


class Optional(Node[OptionalConfig]):
    """The input, or None if there is none."""

    since = (15, 28)

    @classmethod
    def read(cls, a: Attributes) -> OptionalConfig:
        return OptionalConfig(a.type("type") if a.has("type") else None)

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        if isinstance(t, AbsentType):
            if self.config.element is None:
                raise Problem("an empty optional needs the attribute 'type'")
            return (OptionalType(self.config.element),)
        return (OptionalType(_tensor(t)),)

    def emit(self, e: Emitter) -> Emission:
        return e.x(0) if self.has(0) else Literal("None")


class OptionalGetElement(Plain):
    """The value of an optional that is not None; from opset 18 on also of a plain value."""

    since = (15, 18, 28)

    def infer(self) -> tuple[Type, ...]:
        t = self.type(0)
        return (t.element if isinstance(t, OptionalType) else t,)

    def emit(self, e: Emitter) -> Emission:
        return e.held(0) if isinstance(self.type(0), ScalarType | ShapeType) else e.x(0)


class OptionalHasElement(Plain):
    since = (15, 18, 28)

    def infer(self) -> tuple[Type, ...]:
        return (ScalarType(dtypes.bool),)

    def emit(self, e: Emitter) -> Emission:
        if not self.has(0):
            return lift(False)
        if not isinstance(self.type(0), OptionalType):
            return lift(True)
        return Binary("is not", e.x(0), Literal("None"))


@dataclass(frozen=True)
class ImageDecoderConfig:
    pixel_format: PixelFormat = PixelFormat.RGB


class ImageDecoder(Node[ImageDecoderConfig]):
    """Pixels from the bytes of an image file, decoded by Pillow on the host."""

    since = (20,)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.uint8, (None, None, 1 if self.config.pixel_format == "Grayscale" else 3)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("decode_image", e.x(0), pixel_format=default(self.config.pixel_format))
