"""Resizing along 1 and 2 spatial axes."""

from ..errors import ArgumentError, ShapeError, refuse
from ..functional.convolution import per_axis
from ..functional.windows.interpolation import interpolate
from ..module import Module


class _Interpolate(Module):
    SHOWN = "output_size scale_factor mode align_corners"
    RANK = 0

    def __init__(self, output_size=None, scale_factor=None, mode="nearest", align_corners=False):
        name = type(self).__name__
        if (output_size is None) == (scale_factor is None):
            raise ShapeError("{} needs output_size or scale_factor, and not both".format(name))
        if mode not in ("nearest", "linear", "cubic", "nearest-exact", "area"):
            known = "nearest, linear, cubic, nearest-exact or area"
            raise ArgumentError("{}: mode is {}, found {!r}".format(name, known, mode))
        if scale_factor is not None:
            one = isinstance(scale_factor, (int, float))
            scale_factor = (scale_factor,) * self.RANK if one else tuple(scale_factor)
            if len(scale_factor) != self.RANK:
                refuse("per axis", "scale_factor", len(scale_factor), self.RANK)
        self.output_size = None if output_size is None else per_axis(output_size, self.RANK, "output_size")
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x):
        if len(x.shape) != self.RANK + 2:
            raise ShapeError(
                "{} needs (n, c) and {} spatial axes, found shape {}".format(type(self).__name__, self.RANK, x.shape)
            )
        return interpolate(x, self.output_size, self.scale_factor, self.mode, self.align_corners)


class Interpolate1d(_Interpolate):
    """x (n, c, length) resized to output_size or by scale_factor. mode: "nearest", "linear" or "cubic"; align_corners:
    the first and last elements keep their values (not for nearest)."""

    RANK = 1


class Interpolate2d(_Interpolate):
    """x (n, c, height, width) resized to output_size or by scale_factor, a number or one per axis. mode: "nearest",
    "linear" (along both axes) or "cubic"; align_corners: the corners keep their values (not for nearest)."""

    RANK = 2
