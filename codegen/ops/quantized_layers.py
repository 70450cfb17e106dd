"""Layers with packed weights, which a pass makes of the nodes that dequantize a constant and use it. Inputs are x,
the values, scale, and zero_point (or absent) of a QuantizedWeight, and a bias or absent; all but x are constants."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Default, Emission, Emitter, default
from ..ir.argument import Argument
from ..ir.types import TensorType, Type
from ..ir.value import Value
from ..records import dataclass
from .convolution import Conv, ConvConfig
from .internal import Internal
from .linear_algebra import product_shape
from .windows import short, spatial_of

FAMILY = "the compiler's own"


@dataclass(frozen=True)
class Packing:
    """bits: of a weight; block_size: how many of a channel's weights share a scale, None: all."""

    bits: int
    block_size: int | None

    def keywords(self, weights: dict[str, Value | None]) -> dict[str, Default]:
        """The arguments of a layer that say how its weight is packed."""
        return {
            "bits": default(self.bits),
            "block_size": default(self.block_size),
            "affine": default(weights["weight.zero_point"] is not None),
        }


@dataclass(frozen=True)
class Grid:
    """How 8-bit integers stand for numbers: (integer - zero) * scale."""

    scale: float
    zero: int
    dtype: DType


@dataclass(frozen=True)
class Grids:
    """input: the grid of the integers that a layer multiplies, None if each call has its own; output: that of its
    result, None for floats, of the dtype float32 for floats on a grid of uint8."""

    input: Grid | None
    output: Grid | None

    def keywords(self) -> dict[str, Default]:
        """The arguments of a layer."""
        found = {"input": default("dynamic" if self.input is None else (self.input.scale, self.input.zero))}
        if self.output is not None:
            more = () if self.output.dtype is dtypes.uint8 else (self.output.dtype.name,)
            found["output"] = default((self.output.scale, self.output.zero, *more))
        return found

    @property
    def dtype(self) -> DType:
        """That of the layer's result."""
        return dtypes.float32 if self.output is None else self.output.dtype


def grid_keywords(grids: Grids | None) -> dict[str, Default]:
    return grids.keywords() if grids is not None else {}


def weights_of(node: Internal[Any], bias: bool = True) -> dict[str, Value | None]:
    """The parameters of a layer by their names."""
    parts = ("weight.values", "weight.scale", "weight.zero_point", *(["bias"] if bias else []))
    return {name: node.value(i + 1) for i, name in enumerate(parts)}


@dataclass(frozen=True)
class QuantizedLinearConfig:
    rows: int
    columns: int
    packing: Packing
    grids: Grids | None = None


class QuantizedLinear(Internal[QuantizedLinearConfig]):
    """A dense layer: x (…, rows) -> (…, columns)."""

    static = (1, 2, 3, 4)

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        dtype = self.dtype(0) if c.grids is None else c.grids.dtype
        return (TensorType(dtype, product_shape(self.shape(0), (c.rows, c.columns))),)

    def emit(self, e: Emitter) -> Emission:
        c, weights = self.config, weights_of(self)
        layer = e.layer(
            "QuantizedLinear", c.rows, c.columns, weights=weights, bias=default(weights["bias"] is not None),
            **c.packing.keywords(weights), **grid_keywords(c.grids),
        )  # fmt: skip
        return e.apply(layer, e.x(0))


@dataclass(frozen=True)
class QuantizedConvConfig:
    """shape: that of the weight."""

    conv: ConvConfig
    shape: tuple[int, ...]
    packing: Packing
    grids: Grids | None = None


class QuantizedConv(Internal[QuantizedConvConfig]):
    """A convolution over 1, 2 or 3 spatial axes."""

    static = (1, 2, 3, 4)

    def conv(self) -> Conv:
        """The convolution with a weight of floats."""
        weight = Argument(f"{self.name}::weight", TensorType(dtypes.float32, self.config.shape))
        return Conv(self.name, (self.inputs[0], weight), self.outputs, self.config.conv)

    def infer(self) -> tuple[Type, ...]:
        (found,) = self.conv().infer()
        grids = self.config.grids
        assert isinstance(found, TensorType)
        return (found if grids is None else TensorType(grids.dtype, found.shape),)

    def emit(self, e: Emitter) -> Emission:
        c, weights, window = self.config, weights_of(self), self.conv().window()
        n = len(window.kernel)
        options = window.keywords(window.amounts(spatial_of(self.shape(0), n + 2)))
        layer = e.layer(
            f"QuantizedConv{n}d", c.shape[1] * c.conv.groups, c.shape[0], short(window.kernel), weights=weights,
            **options, groups=default(c.conv.groups), bias=default(weights["bias"] is not None),
            **c.packing.keywords(weights), **grid_keywords(c.grids),
        )  # fmt: skip
        return e.apply(layer, e.x(0))


class QuantizedEmbedding(Internal[QuantizedLinearConfig]):
    """Rows of a table, of which there are `rows`, with `columns` numbers each. Without a bias."""

    static = (1, 2, 3)

    def infer(self) -> tuple[Type, ...]:
        at = self.shape(0)
        return (TensorType(dtypes.float32, None if at is None else (*at, self.config.columns)),)

    def emit(self, e: Emitter) -> Emission:
        c, weights = self.config, weights_of(self, False)
        layer = e.layer("QuantizedEmbedding", c.rows, c.columns, weights=weights, **c.packing.keywords(weights))
        return e.apply(layer, e.x(0))
