"""Convolution and its transpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr
from ..ir.choices import AutoPad
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at
from .windows import Window, short, spatial_of


@dataclass(frozen=True)
class ConvConfig:
    """channels_in, channels_out: those of input and output, None if the weight's shape is unknown."""

    window: Window
    groups: int
    channels_in: Dim = None
    channels_out: Dim = None


class Conv(Node[ConvConfig]):
    """Cross-correlation with any number of spatial axes; a layer if the weights are constants."""

    since, static = (1, 11, 22), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> ConvConfig:
        return ConvConfig(Window.read(a), a.int("group", 1))

    def window(self) -> Window:
        weight = self.shape(1)
        rank = len(weight) if weight is not None else self.rank(0)
        kernel = tuple(d for d in weight[2:] if isinstance(d, int)) if weight is not None else ()
        if weight is not None and self.config.window.kernel and kernel and len(kernel) == rank - 2:
            if kernel != self.config.window.kernel:
                raise Problem(f"kernel_shape is {self.config.window.kernel}, the weight's is {kernel}")
        return self.config.window.of(rank - 2, kernel)

    def infer(self) -> tuple[Type, ...]:
        x, weight = self.tensor(0), self.tensor(1)
        window = self.window()
        rank = len(window.kernel) + 2
        if x.shape is not None and len(x.shape) != rank:
            raise Problem(f"the input has rank {len(x.shape)}, the weight {rank}")
        channels, wanted = dim_at(x.shape, 1), dim_at(weight.shape, 1)
        if isinstance(channels, int) and isinstance(wanted, int) and channels != wanted * self.config.groups:
            raise Problem(
                f"the input has {channels} channels, a weight of shape {weight.shape} with {self.config.groups} groups "
                f"wants {wanted * self.config.groups}"
            )
        batch: Dim = x.shape[0] if x.shape is not None else None
        sizes = window.sizes(spatial_of(x.shape, rank))
        return (TensorType(x.dtype, (batch, dim_at(weight.shape, 0), *sizes)),)

    def settled(self) -> Self:
        window, weight, c = self.window(), self.shape(1), self.config
        if not window.kernel:
            return self
        wanted = dim_at(weight, 1)
        channels = wanted * c.groups if isinstance(wanted, int) else dim_at(self.shape(0), 1)
        whole = window.explicit(spatial_of(self.shape(0), len(window.kernel) + 2))
        config = ConvConfig(whole, c.groups, channels, dim_at(weight, 0))
        return replace(self, config=config)  # type: ignore[arg-type]

    def emit(self, e: Emitter) -> Emission:
        return self.of(e, e.x(0))

    def of(self, e: Emitter, x: Expr) -> Expr:
        """The convolution of x, with this node's weights."""
        window, shape = self.window(), self.shape(0)
        n = len(window.kernel)
        options = window.keywords(window.amounts(spatial_of(shape, n + 2)))
        weight, bias = self.value(1), self.value(2)
        options["groups"] = default(self.config.groups)
        if weight is None or (self.has(2) and bias is None) or n > 3 or not weight.dtype.is_float:
            return e.call("conv", x, e.x(1), *([e.x(2)] if self.has(2) else []), **options)
        layer = e.layer(
            f"Conv{n}d",
            weight.shape[1] * self.config.groups,
            weight.shape[0],
            short(window.kernel),
            weights={"weight": weight, "bias": bias},
            **options,
            bias=default(bias is not None),
        )
        return e.apply(layer, x)


@dataclass(frozen=True)
class ConvTransposeConfig:
    """output_shape: as in the file; () once resolved into the window's pads. channels_in, channels_out: None if the
    weight's shape is unknown."""

    window: Window
    groups: int
    output_padding: tuple[int, ...]
    output_shape: tuple[int, ...]
    channels_in: Dim = None
    channels_out: Dim = None


class ConvTranspose(Node[ConvTransposeConfig]):
    """The gradient of a convolution with regard to its input. weight: (in, out / groups, *kernel)."""

    since, static = (1, 11, 22), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> ConvTransposeConfig:
        return ConvTransposeConfig(
            Window.read(a), a.int("group", 1), a.ints("output_padding", ()), a.ints("output_shape", ())
        )

    def geometry(self) -> tuple[Window, tuple[tuple[int, int], ...], tuple[int, ...]]:
        """(window, padding, output padding), output_shape and auto_pad resolved to padding."""
        weight, c = self.shape(1), self.config
        rank = len(weight) if weight is not None else self.rank(0)
        n = rank - 2
        window = c.window.of(n, tuple(d for d in weight[2:] if isinstance(d, int)) if weight is not None else ())
        extra = c.output_padding or (0,) * n
        if len(extra) != n or len(c.output_shape) not in (0, n, n + 2):
            raise Problem(f"output_padding {extra} or output_shape {c.output_shape} does not fit {n} spatial axes")
        wanted = c.output_shape[-n:] if c.output_shape else ()
        if not wanted and window.auto_pad in ("NOTSET", "VALID"):
            return window, window.padding(None), extra
        spatial = spatial_of(self.shape(0), rank)
        pads = []
        for i in range(n):
            size, reach = spatial[i], (window.kernel[i] - 1) * window.dilation[i] + 1
            if wanted:
                if not isinstance(size, int):
                    raise Problem(f"output_shape needs a known size of axis {i + 2}")
                total = window.stride[i] * (size - 1) + extra[i] + reach - wanted[i]
            else:
                total = reach + extra[i] - window.stride[i]
            total_pad = max(0, total)
            if total < 0:
                extra = (*extra[:i], extra[i] - total, *extra[i + 1 :])
            half = total_pad // 2
            pads.append((half, total_pad - half) if window.auto_pad == "SAME_UPPER" else (total_pad - half, half))
        return window, tuple(pads), extra

    def settled(self) -> Self:
        weight, c = self.shape(1), self.config
        try:
            window, padding, extra = self.geometry()
        except Problem:  # the error will be raised when it runs
            return self
        out = dim_at(weight, 1)
        channels = out * c.groups if isinstance(out, int) else None
        pads = (*(low for low, _ in padding), *(high for _, high in padding))
        whole = replace(window, pads=pads, auto_pad=AutoPad.NOTSET)
        config = ConvTransposeConfig(whole, c.groups, extra, (), dim_at(weight, 0), channels)
        return replace(self, config=config)  # type: ignore[arg-type]

    def infer(self) -> tuple[Type, ...]:
        x, weight = self.tensor(0), self.shape(1)
        window, padding, extra = self.geometry()
        n = len(window.kernel)
        if x.shape is not None and len(x.shape) != n + 2:
            raise Problem(f"the input has rank {len(x.shape)}, the weight {n + 2}")
        sizes: list[Dim] = []
        for i, size in enumerate(spatial_of(x.shape, n + 2)):
            reach = (window.kernel[i] - 1) * window.dilation[i] + 1
            grown = (
                window.stride[i] * (size - 1) + extra[i] + reach - sum(padding[i]) if isinstance(size, int) else None
            )
            sizes.append(grown)
        out = dim_at(weight, 1)
        channels = out * self.config.groups if isinstance(out, int) else None
        return (TensorType(x.dtype, (x.shape[0] if x.shape is not None else None, channels, *sizes)),)

    def emit(self, e: Emitter) -> Emission:
        window, padding, extra = self.geometry()
        n = len(window.kernel)
        options = window.keywords(padding)
        options["output_padding"] = default(extra[0] if len(set(extra)) == 1 else extra)
        options["groups"] = default(self.config.groups)
        weight, bias = self.value(1), self.value(2)
        if weight is None or (self.has(2) and bias is None) or n > 3:
            return e.call("conv_transpose", e.x(0), e.x(1), *([e.x(2)] if self.has(2) else []), **options)
        layer = e.layer(
            f"ConvTranspose{n}d",
            weight.shape[0],
            weight.shape[1] * self.config.groups,
            short(window.kernel),
            weights={"weight": weight, "bias": bias},
            **options,
            bias=default(bias is not None),
        )
        return e.apply(layer, e.x(0))
