"""Resize, and Upsample, which was its name before opset 10."""

from __future__ import annotations

from math import floor
from typing import ClassVar

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr
from ..ir.choices import AspectRatio, Coordinates, Interpolation, NearestMode
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import axes_of

LISTED_WEIGHTS = 1 << 18  # the most weights of an axis to compute when folding: some tenths of a second


@dataclass(frozen=True)
class ResizeConfig:
    """scales: the attribute of opset 7 and older."""

    mode: Interpolation
    coordinates: Coordinates
    nearest_mode: NearestMode
    cubic_coeff_a: float
    exclude_outside: bool
    extrapolation_value: float
    antialias: bool
    keep_aspect_ratio_policy: AspectRatio
    axes: tuple[int, ...] | None
    scales: tuple[float, ...] | None = None


def older(mode: Interpolation, scales: tuple[float, ...] | None = None) -> ResizeConfig:
    """The config of a Resize before opset 11, and of Upsample."""
    places = (mode, Coordinates.ASYMMETRIC, NearestMode.FLOOR)
    return ResizeConfig(*places, -0.75, False, 0.0, False, AspectRatio.STRETCH, None, scales)


class Resize(Node[ResizeConfig]):
    """Inputs x, roi, scales, sizes (x and scales before opset 11)."""

    since: ClassVar[tuple[int, ...]] = (10, 11, 13, 18, 19)
    static: ClassVar[tuple[int, ...]] = (1, 2, 3)

    @property
    def unbounded(self) -> bool:
        """The weights of an axis are computed in Python: a few per output, or a whole matrix with antialiasing."""
        old, t = self.shape(0), self.outputs[0].type
        new = t.shape if isinstance(t, TensorType) else None
        if old is None or new is None:
            return True
        sizes = [(n, m) for n, m in zip(old, new, strict=True) if n != m]
        known = [(n, m) for n, m in sizes if isinstance(n, int) and isinstance(m, int)]
        most = max((n * m if self.config.antialias else m for n, m in known), default=0)
        return len(known) < len(sizes) or most > LISTED_WEIGHTS

    @classmethod
    def read(cls, a: Attributes) -> ResizeConfig:
        mode = a.choice("mode", Interpolation, Interpolation.NEAREST)
        if a.opset < 11:
            return older(mode)
        return ResizeConfig(
            mode,
            a.choice("coordinate_transformation_mode", Coordinates, Coordinates.HALF_PIXEL),
            a.choice("nearest_mode", NearestMode, NearestMode.ROUND_PREFER_FLOOR),
            a.float("cubic_coeff_a", -0.75),
            a.flag("exclude_outside"),
            a.float("extrapolation_value", 0.0),
            a.flag("antialias"),
            a.choice("keep_aspect_ratio_policy", AspectRatio, AspectRatio.STRETCH),
            a.ints("axes") if a.has("axes") else None,
        )

    def _scales(self) -> int | None:
        """The index of the input with the scales."""
        old = len(self.inputs) == 2
        i = 1 if old else 2
        return i if self.has(i) and self._nonempty(i) else None

    def _sizes(self) -> int | None:
        return 3 if self.has(3) and self._nonempty(3) else None

    def _nonempty(self, i: int) -> bool:
        shape = self.shape(i)
        return shape is None or shape != (0,)

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        if x.shape is None:
            return (TensorType(x.dtype),)
        shape: list[Dim] = list(x.shape)
        axes = axes_of(self.config.axes, len(shape)) if self.config.axes is not None else tuple(range(len(shape)))
        scales, sizes = self._scales(), self._sizes()
        stretched = self.config.keep_aspect_ratio_policy == "stretch"
        wanted = self.dims(sizes) if sizes is not None and stretched else None
        factors = self.config.scales
        if scales is not None and (value := self.value(scales)) is not None:
            factors = tuple(float(v) for v in value.list())
        for i, axis in enumerate(axes):
            size = shape[axis]
            if wanted is not None and i < len(wanted):
                shape[axis] = wanted[i]
            elif factors is not None and i < len(factors):
                grown = floor(size * factors[i]) if isinstance(size, int) else None
                shape[axis] = size if factors[i] == 1 else grown
            else:
                shape[axis] = None
        return (TensorType(x.dtype, tuple(shape)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        given, sizes = self._scales(), self._sizes()
        for i in range(1, len(self.inputs)):
            shape = self.shape(i) if self.has(i) else None
            if shape is not None and len(shape) != 1:
                raise Problem(f"input {i} has shape {shape}, expected one row")
        scales: Expr | tuple[float, ...] | None = c.scales
        if given is not None and sizes is None:
            value = self.value(given)
            scales = tuple(float(v) for v in value.list()) if value is not None else e.method(e.x(given), "tolist")
        if scales is None and sizes is None:
            raise Problem("neither scales nor sizes are given")
        roi: Expr | tuple[float, ...] | None = None
        if c.coordinates == "tf_crop_and_resize":
            value = self.value(1)
            roi = tuple(float(v) for v in value.list()) if value is not None else e.method(e.x(1), "tolist")
        return e.call(
            "resize",
            e.x(0),
            scales=default(scales),
            sizes=default(e.ints(sizes) if sizes is not None else None),
            axes=default(c.axes),
            mode=default(c.mode),
            coordinates=default(c.coordinates),
            nearest_mode=default(c.nearest_mode if c.mode is Interpolation.NEAREST else NearestMode.ROUND_PREFER_FLOOR),
            cubic_coeff_a=default(c.cubic_coeff_a),
            exclude_outside=default(c.exclude_outside),
            antialias=default(c.antialias),
            roi=default(roi),
            extrapolation_value=default(c.extrapolation_value),
            keep_aspect_ratio_policy=default(c.keep_aspect_ratio_policy),
        )


class Upsample(Resize):
    """The former Resize: inputs x and, from opset 9 on, scales."""

    since, static = (1, 7, 9, 10), (1,)

    @classmethod
    def read(cls, a: Attributes) -> ResizeConfig:
        mode = a.string("mode", "nearest", ("nearest", "linear", "bilinear"))
        scales: tuple[float, ...] | None = None
        if a.opset < 7:
            scales = (1.0, 1.0, a.float("height_scale"), a.float("width_scale"))
        elif a.opset < 9:
            scales = a.floats("scales")
        return older(Interpolation.NEAREST if mode == "nearest" else Interpolation.LINEAR, scales)
