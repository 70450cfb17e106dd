"""Operators that read images between or beyond their pixels, and boxes on them."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("GridSample")
def grid_sample(c: Call) -> Any:
    mode = c.get("mode", "linear")
    return F.grid_sample(
        c.tensor(0),
        c.tensor(1),
        mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        padding_mode=c.get("padding_mode", "zeros"),
        align_corners=bool(c.get("align_corners", 0)),
    )


@handles("AffineGrid")
def affine_grid(c: Call) -> Any:
    return F.affine_grid(c.tensor(0), c.values(1), bool(c.get("align_corners", 0)))


@handles("RoiAlign")
def roi_align(c: Call) -> Any:
    return F.roi_align(
        *c.tensors(),
        (c.get("output_height", 1), c.get("output_width", 1)),
        c.get("spatial_scale", 1.0),
        c.get("sampling_ratio", 0),
        c.get("mode", "avg"),
        c.get("coordinate_transformation_mode", "half_pixel") == "half_pixel",
    )


@handles("DeformConv")
def deform_conv(c: Call) -> Any:
    x, weight, offset, bias, mask = (c.tensor(i) for i in range(5))
    return F.deform_conv(
        x,
        weight,
        offset,
        bias,
        mask,
        tuple(c.get("strides", (1, 1))),
        c.pads(2),
        tuple(c.get("dilations", (1, 1))),
        c.get("group", 1),
        c.get("offset_group", 1),
    )


@handles("NonMaxSuppression")
def non_max_suppression(c: Call) -> Any:
    return F.non_max_suppression(
        c.tensor(0), c.tensor(1), c.value(2, 0), c.value(3, 0.0), c.value(4), c.get("center_point_box", 0)
    )


@handles("Col2Im")
def col2im(c: Call) -> Any:
    image, block = c.values(1), c.values(2)
    d = len(image)
    strides, dilations = (tuple(c.get(name, [1] * d)) for name in ("strides", "dilations"))
    return F.col2im(c.tensor(0), image, block, strides, c.pads(d), dilations)


@handles("MaxUnpool")
def max_unpool(c: Call) -> Any:
    x = c.tensor(0)
    size = c.values(2)
    pads = c.pads(x.ndim - 2)
    return F.max_unpool(x, c.tensor(1), c.get("kernel_shape"), c.get("strides") or 1, pads, size[2:] if size else None)


@handles("CenterCropPad")
def center_crop_pad(c: Call) -> Any:
    return F.center_crop_pad(c.tensor(0), c.values(1), c.get("axes"))
