"""Layers that only move elements: Identity, Flatten, Upsample and paddings, as in PyTorch."""

from ..errors import ArgumentError, ShapeError
from ..functional.movement.rearranging import pad
from ..functional.reshaping import flatten, reshape
from ..functional.windows.interpolation import interpolate
from ..module import Module
from ..shapes import axis_of


class Identity(Module):
    """x itself, whatever the arguments."""

    def __init__(self, *arguments, **options):
        pass

    def forward(self, x):
        """x -> x."""
        return x


class Flatten(Module):
    """Axes start_dim to end_dim (inclusive) merged into one."""

    SHOWN = "start_dim end_dim"

    def __init__(self, start_dim=1, end_dim=-1):
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x):
        """x (a, …, b, …, c) -> (a, product of …, c)."""
        return flatten(x, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Axis `dim` as several axes of the sizes `unflattened_size`."""

    SHOWN = "dim unflattened_size"

    def __init__(self, dim, unflattened_size):
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, x):
        """x (…, n, …) -> (…, *unflattened_size, …)."""
        axis = axis_of(self.dim, len(x.shape))
        return reshape(x, x.shape[:axis] + self.unflattened_size + x.shape[axis + 1 :])


class Upsample(Module):
    """x (n, c, *spatial) resized to `size` or by `scale_factor`. mode: "nearest", "linear", "bilinear", "bicubic" or
    "trilinear"; align_corners: the corners keep their values (not for nearest)."""

    SHOWN = "size scale_factor mode align_corners"

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None):
        if (size is None) == (scale_factor is None):
            raise ArgumentError("Upsample needs size or scale_factor, and not both")
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x):
        """x (n, c, *spatial) -> (n, c, *resized)."""
        return interpolate(x, self.size, self.scale_factor, self.mode, bool(self.align_corners))


class _Pad(Module):
    """padding: an int for every side, or (low, high) of each spatial axis, the last axis first, as in PyTorch; a
    negative number removes elements."""

    SHOWN = "padding"
    RANK, MODE = 0, "constant"
    value = 0.0

    def __init__(self, padding):
        whole = isinstance(padding, int)
        self.padding = (padding,) * (2 * self.RANK) if whole else tuple(padding)
        if len(self.padding) != 2 * self.RANK:
            name = type(self).__name__
            raise ArgumentError("{} takes an int or {} of them, found {}".format(name, 2 * self.RANK, self.padding))

    def forward(self, x):
        """x (n, c, *spatial), or without the batch -> the same, with padded spatial axes."""
        lead = len(x.shape) - self.RANK
        if lead not in (1, 2):
            raise ShapeError(
                "{} needs {} spatial axes and 1 or 2 before them, found shape {}".format(
                    type(self).__name__, self.RANK, x.shape
                )
            )
        sides = [self.padding[2 * i : 2 * i + 2] for i in range(self.RANK - 1, -1, -1)]
        return pad(x, [(0, 0)] * lead + sides, self.value, mode=self.MODE)


class ZeroPad1d(_Pad):
    """Zeros around the last axis."""

    RANK = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes."""

    RANK = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three axes."""

    RANK = 3


class _ConstantPad(_Pad):
    SHOWN = "padding value"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(_ConstantPad):
    """`value` around the last axis."""

    RANK = 1


class ConstantPad2d(_ConstantPad):
    """`value` around the last two axes."""

    RANK = 2


class ConstantPad3d(_ConstantPad):
    """`value` around the last three axes."""

    RANK = 3


class ReflectionPad1d(_Pad):
    """The last axis mirrored at its ends, which are not repeated."""

    RANK, MODE = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The last two axes mirrored at their ends, which are not repeated."""

    RANK, MODE = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of the last axis repeated."""

    RANK, MODE = 1, "edge"


class ReplicationPad2d(_Pad):
    """The ends of the last two axes repeated."""

    RANK, MODE = 2, "edge"


class ReplicationPad3d(_Pad):
    """The ends of the last three axes repeated."""

    RANK, MODE = 3, "edge"


class CircularPad1d(_Pad):
    """The last axis continued from its other end."""

    RANK, MODE = 1, "wrap"


class CircularPad2d(_Pad):
    """The last two axes continued from their other ends."""

    RANK, MODE = 2, "wrap"


class CircularPad3d(_Pad):
    """The last three axes continued from their other ends."""

    RANK, MODE = 3, "wrap"


class ReflectionPad3d(_Pad):
    """The last three axes mirrored at their ends, which are not repeated."""

    RANK, MODE = 3, "reflect"
