"""Operators of vision models besides convolution: sampling between pixels, regions of interest, boxes, patches."""

from __future__ import annotations

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Expr, Index, SliceKey, lift
from ..ir.choices import GridPadding, Interpolation, RoiMode
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type, product
from ..records import dataclass
from .attributes import Attributes
from .base import axes_of, dim_at
from .windows import Window, short, short_padding, spatial_of


@dataclass(frozen=True)
class GridSampleConfig:
    mode: Interpolation
    padding_mode: GridPadding
    align_corners: bool


class GridSample(Node[GridSampleConfig]):
    """The input sampled at the positions of a grid, with coordinates in [-1, 1]. Opset 20 renamed bilinear and
    bicubic."""

    since = (16, 20, 22)

    @classmethod
    def read(cls, a: Attributes) -> GridSampleConfig:
        mode = a.string("mode", "linear", ("linear", "nearest", "cubic", "bilinear", "bicubic"))
        return GridSampleConfig(
            Interpolation(mode.removeprefix("bi")),
            a.choice("padding_mode", GridPadding, GridPadding.ZEROS),
            a.flag("align_corners"),
        )

    def infer(self) -> tuple[Type, ...]:
        x, grid = self.tensor(0), self.shape(1)
        if grid is None:
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, (grid[0], dim_at(x.shape, 1), *grid[1:-1])),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "grid_sample",
            e.x(0),
            e.x(1),
            mode=default(c.mode),
            padding_mode=default(c.padding_mode),
            align_corners=default(c.align_corners),
        )


@dataclass(frozen=True)
class AffineGridConfig:
    align_corners: bool = False


class AffineGrid(Node[AffineGridConfig]):
    """The sampling grid of an affine map, theta (n, d, d + 1), for an output of a given size."""

    since, static = (20,), (1,)

    def infer(self) -> tuple[Type, ...]:
        theta, size = self.tensor(0), self.dims(1)
        if size is None:
            return (TensorType(theta.dtype),)
        if len(size) < 3:
            raise Problem(f"size is (n, c, *spatial), found {len(size)} lengths")
        return (TensorType(theta.dtype, (size[0], *size[2:], len(size) - 2)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("affine_grid", e.x(0), e.ints(1), align_corners=default(self.config.align_corners))


@dataclass(frozen=True)
class RoiAlignConfig:
    output_size: tuple[int, int]
    spatial_scale: float
    sampling_ratio: int
    mode: RoiMode
    half_pixel: bool


class RoiAlign(Node[RoiAlignConfig]):
    """Regions of the input, resampled to one size. Before opset 16 coordinates were not shifted by half a pixel."""

    since, loops = (10, 16, 22), True

    @classmethod
    def read(cls, a: Attributes) -> RoiAlignConfig:
        half = "half_pixel" if a.opset >= 16 else "output_half_pixel"
        transform = a.string("coordinate_transformation_mode", half, ("half_pixel", "output_half_pixel"))
        return RoiAlignConfig(
            (a.int("output_height", 1), a.int("output_width", 1)),
            a.float("spatial_scale", 1.0),
            a.int("sampling_ratio", 0),
            a.choice("mode", RoiMode, RoiMode.AVG),
            transform == "half_pixel",
        )

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, (dim_at(self.shape(1), 0), dim_at(x.shape, 1), *self.config.output_size)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "roi_align",
            e.x(0),
            e.x(1),
            e.x(2),
            c.output_size,
            spatial_scale=default(c.spatial_scale),
            sampling_ratio=default(c.sampling_ratio),
            mode=default(c.mode),
            half_pixel=default(c.half_pixel),
        )


@dataclass(frozen=True)
class MaxRoiPoolConfig:
    output_size: tuple[int, ...]
    spatial_scale: float


class MaxRoiPool(Node[MaxRoiPoolConfig]):
    """The largest element of each bin of each region."""

    since, loops = (1, 22), True

    @classmethod
    def read(cls, a: Attributes) -> MaxRoiPoolConfig:
        return MaxRoiPoolConfig(a.ints("pooled_shape"), a.float("spatial_scale", 1.0))

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, (dim_at(self.shape(1), 0), dim_at(x.shape, 1), *self.config.output_size)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call("max_roi_pool", e.x(0), e.x(1), c.output_size, spatial_scale=default(c.spatial_scale))


@dataclass(frozen=True)
class DeformConvConfig:
    window: Window
    groups: int
    offset_groups: int


class DeformConv(Node[DeformConvConfig]):
    """Convolution whose taps are each moved by an offset and scaled by a mask; inputs x, weight, offset, bias, mask."""

    since = (19, 22)

    @classmethod
    def read(cls, a: Attributes) -> DeformConvConfig:
        return DeformConvConfig(Window.read(a), a.int("group", 1), a.int("offset_group", 1))

    def window(self) -> Window:
        weight = self.shape(1)
        kernel = tuple(d for d in weight[2:] if isinstance(d, int)) if weight is not None else ()
        return self.config.window.of(2, kernel)

    def infer(self) -> tuple[Type, ...]:
        x, offset = self.tensor(0), self.shape(2)
        if x.shape is not None and len(x.shape) != 4:
            raise Problem(f"a deformable convolution takes (n, c, h, w), found rank {len(x.shape)}")
        sizes: tuple[Dim, ...] = (None, None) if offset is None else offset[2:]
        return (TensorType(x.dtype, (dim_at(x.shape, 0), dim_at(self.shape(1), 0), *sizes)),)

    def emit(self, e: Emitter) -> Emission:
        window = self.window()
        return e.call(
            "deform_conv",
            e.x(0),
            e.x(1),
            e.x(2),
            bias=default(e.optional(3)),
            mask=default(e.optional(4)),
            **window.keywords(window.padding(None)),
            groups=default(self.config.groups),
            offset_groups=default(self.config.offset_groups),
        )


@dataclass(frozen=True)
class NonMaxSuppressionConfig:
    center_point_box: bool = False


class NonMaxSuppression(Node[NonMaxSuppressionConfig]):
    """The boxes not overlapped by a better one: int64 (kept, 3) of batch, class and box index."""

    since, static, loops = (10, 11), (2, 3, 4), True

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.int64, (None, 3)),)

    def emit(self, e: Emitter) -> Emission:
        def number(i: int) -> Expr | None:
            value = self.value(i)
            return None if not self.has(i) or (value is not None and value.size == 0) else e.number(i)

        options = {"max_output_boxes_per_class": number(2), "iou_threshold": number(3), "score_threshold": number(4)}
        return e.call(
            "non_max_suppression",
            e.x(0),
            e.x(1),
            **{k: v for k, v in options.items() if v is not None},
            center_point_box=default(self.config.center_point_box),
        )


@dataclass(frozen=True)
class Col2ImConfig:
    window: Window


class Col2Im(Node[Col2ImConfig]):
    """Columns summed back into the image they were cut from."""

    since, static = (18,), (1, 2)

    @classmethod
    def read(cls, a: Attributes) -> Col2ImConfig:
        return Col2ImConfig(Window.read(a))

    def infer(self) -> tuple[Type, ...]:
        x, image, block = self.tensor(0), self.dims(1), self.ints(2)
        if image is None:
            return (TensorType(x.dtype),)
        columns, taps = dim_at(x.shape, 1), product(block) if block is not None else None
        channels = columns // taps if isinstance(columns, int) and taps else None
        return (TensorType(x.dtype, (dim_at(x.shape, 0), channels, *image)),)

    def emit(self, e: Emitter) -> Emission:
        dims = self.dims(2)
        if dims is None:
            raise Problem("the number of spatial axes is not known")
        window = self.config.window.of(len(dims), (1,) * len(dims))
        return e.call("col2im", e.x(0), e.ints(1), e.ints(2), **window.keywords(window.padding(None)))


@dataclass(frozen=True)
class MaxUnpoolConfig:
    window: Window


class MaxUnpool(Node[MaxUnpoolConfig]):
    """Pooled elements put back at the positions in MaxPool's second output."""

    since, static = (9, 11, 22), (2,)

    @classmethod
    def read(cls, a: Attributes) -> MaxUnpoolConfig:
        return MaxUnpoolConfig(Window.read(a))

    def window(self) -> Window:
        return self.config.window.of(len(self.config.window.kernel))

    def infer(self) -> tuple[Type, ...]:
        x, window = self.tensor(0), self.window()
        rank = len(window.kernel) + 2
        if x.shape is not None and len(x.shape) != rank:
            raise Problem(f"the input has rank {len(x.shape)}, the kernel {window.kernel} {rank - 2} spatial axes")
        wanted = self.dims(2) if self.has(2) else None
        if wanted is not None:
            return (TensorType(x.dtype, wanted),)
        padding = window.padding(None)
        sizes: list[Dim] = []
        for i, size in enumerate(spatial_of(x.shape, rank)):
            known = isinstance(size, int) and not self.has(2)
            grown = (
                (size - 1) * window.stride[i] - sum(padding[i]) + window.kernel[i] if isinstance(size, int) else None
            )
            sizes.append(grown if known else None)
        return (TensorType(x.dtype, (dim_at(x.shape, 0), dim_at(x.shape, 1), *sizes)),)

    def emit(self, e: Emitter) -> Emission:
        window = self.window()
        size = Index(e.ints(2), SliceKey(lift(2))) if self.has(2) else None
        known = self.ints(2) if self.has(2) else None
        return e.call(
            "max_unpool",
            e.x(0),
            e.x(1),
            short(window.kernel),
            stride=default(short(window.stride)),
            padding=default(short_padding(window.padding(None))),
            output_size=default(lift(known[2:]) if known is not None else size),
        )


@dataclass(frozen=True)
class CenterCropPadConfig:
    axes: tuple[int, ...] | None = None


class CenterCropPad(Node[CenterCropPadConfig]):
    """The input cut or padded with zeros around its center."""

    since, static = (18,), (1,)

    def infer(self) -> tuple[Type, ...]:
        x, wanted = self.tensor(0), self.dims(1)
        if x.shape is None or wanted is None:
            return (TensorType(x.dtype, None if x.shape is None else (None,) * len(x.shape)),)
        shape = list(x.shape)
        axes = axes_of(self.config.axes or range(len(shape)), len(shape))
        if len(axes) != len(wanted):
            raise Problem(f"{len(wanted)} sizes for {len(axes)} axes")
        for axis, size in zip(axes, wanted, strict=True):
            shape[axis] = size
        return (TensorType(x.dtype, tuple(shape)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("center_crop_pad", e.x(0), e.ints(1), axes=default(self.config.axes))
