"""Fourier transforms, window functions and mel filters."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axis_of


@dataclass(frozen=True)
class DFTConfig:
    axis: int | None
    inverse: bool
    onesided: bool


class DFT(Node[DFTConfig]):
    """Discrete Fourier transform; complex numbers are a last axis of 2. From opset 20 on the axis is an input."""

    since, static, loops = (17, 20), (1, 2), True

    @classmethod
    def read(cls, a: Attributes) -> DFTConfig:
        return DFTConfig(a.int("axis", 1) if a.opset < 20 else None, a.flag("inverse"), a.flag("onesided"))

    def axis(self) -> int | None:
        """The axis, if it is known."""
        if self.config.axis is not None:
            return self.config.axis
        known = self.ints(2) if self.has(2) else (-2,)
        return known[0] if known else None

    def length(self) -> Dim:
        """The length of the transform, if it is known."""
        if self.has(1):
            known = self.dims(1)
            return known[0] if known else None
        shape, axis = self.shape(0), self.axis()
        if shape is None or axis is None:
            return None
        size = shape[axis_of(axis, len(shape))]
        if self.config.inverse and self.config.onesided:
            return 2 * (size - 1) if isinstance(size, int) else None
        return size

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        shape, length, axis = list(x.shape), self.length(), self.axis()
        if axis is None:
            if self.has(1) or self.config.onesided:  # else every axis keeps its length
                shape = [None] * len(shape)
        elif self.config.onesided and not self.config.inverse:
            shape[axis_of(axis, len(shape))] = length // 2 + 1 if isinstance(length, int) else None
        else:
            shape[axis_of(axis, len(shape))] = length
        shape[-1] = 1 if self.config.inverse and self.config.onesided else 2
        return (TensorType(x.dtype, tuple(shape)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call(
            "dft",
            e.x(0),
            length=default(e.integer(1) if self.has(1) else None),
            axis=e.integer(2) if self.axis() is None else default(self.axis()),
            inverse=default(self.config.inverse),
            onesided=default(self.config.onesided),
        )


@dataclass(frozen=True)
class STFTConfig:
    onesided: bool = True


class STFT(Node[STFTConfig]):
    """Short-time Fourier transform: inputs signal, frame_step, window, frame_length.

    Without window and frame_length a frame is the whole signal, as in ONNX's reference.
    """

    since, static, loops = (17,), (1, 3), True

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        step, length = self.ints(1), self.ints(3) if self.has(3) else None
        if step and step[0] < 1:
            raise Problem(f"frame_step is {step[0]}; expected 1 or more")
        window = self.shape(2) if self.has(2) else None
        size: Dim = length[0] if length else window[0] if window else None
        if not self.has(2) and not self.has(3) and x.shape is not None:
            size = x.shape[1]
        frames: Dim = None
        bins: Dim = None
        if isinstance(size, int):
            bins = size // 2 + 1 if self.config.onesided else size
            samples = x.shape[1] if x.shape is not None else None
            if step and isinstance(samples, int):
                frames = 1 + (samples - size) // step[0]
        return (TensorType(x.dtype, (x.shape[0] if x.shape is not None else None, frames, bins, 2)),)

    def emit(self, e: Emitter) -> Emission:
        length: Expr | None = e.integer(3) if self.has(3) else None
        if not self.has(2) and not self.has(3):
            length = e.index(e.shape_of(e.x(0)), 1)
        return e.call(
            "stft",
            e.x(0),
            e.integer(1),
            window=default(e.optional(2)),
            frame_length=default(length),
            onesided=default(self.config.onesided),
        )


@dataclass(frozen=True)
class WindowConfig:
    dtype: DType
    periodic: bool


@dataclass(frozen=True)
class WindowFunction(Node[WindowConfig], ABC):
    """The samples of a window function; the input is their number."""

    function: ClassVar[str]
    static: ClassVar[tuple[int, ...]] = (0,)

    @classmethod
    def read(cls, a: Attributes) -> WindowConfig:
        dtype = a.dtype("output_datatype") if a.has("output_datatype") else dtypes.float32
        return WindowConfig(dtype, a.flag("periodic", True))

    def infer(self) -> tuple[Type, ...]:
        size = self.dims(0)
        return (TensorType(self.config.dtype, (size[0] if size else None,)),)

    def emit(self, e: Emitter) -> Emission:
        return e.create(
            self.function,
            e.number(0),
            periodic=default(self.config.periodic),
            dtype=default(None if self.config.dtype is dtypes.float32 else self.config.dtype),
        )


class HannWindow(WindowFunction):
    since, function = (17,), "hann_window"


class HammingWindow(WindowFunction):
    since, function = (17,), "hamming_window"


class BlackmanWindow(WindowFunction):
    since, function = (17,), "blackman_window"


@dataclass(frozen=True)
class MelWeightMatrixConfig:
    dtype: DType


class MelWeightMatrix(Node[MelWeightMatrixConfig]):
    """Triangular mel filters: inputs number of bands, transform length, sample rate, lowest and highest frequency."""

    since, static = (17,), (0, 1, 2, 3, 4)

    @classmethod
    def read(cls, a: Attributes) -> MelWeightMatrixConfig:
        return MelWeightMatrixConfig(a.dtype("output_datatype") if a.has("output_datatype") else dtypes.float32)

    def infer(self) -> tuple[Type, ...]:
        bands, length = self.ints(0), self.ints(1)
        return (TensorType(self.config.dtype, (length[0] // 2 + 1 if length else None, bands[0] if bands else None)),)

    def emit(self, e: Emitter) -> Emission:
        return e.create(
            "mel_weight_matrix",
            *(e.number(i) for i in range(5)),
            dtype=default(None if self.config.dtype is dtypes.float32 else self.config.dtype),
        )
