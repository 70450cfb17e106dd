"""Convolutions (cross-correlations) over 1, 2 and 3 spatial axes.

x (n, in_channels, *spatial) -> (n, out_channels, *spatial'). kernel_size, stride, dilation: an int or one per spatial
axis; padding: an int, one entry per axis (an int or a (low, high) pair), "same", "valid", "same_upper" or "same_lower"
(functional/convolution.py).
weight: (out_channels, in_channels // groups, *kernel_size); bias: (out_channels,) or None; both are uniform within
±1 / sqrt(fan in) unless an `initializer` is given. x may be without n, and so is the result then. Inputs of the wrong
shape raise ShapeError.
"""

from ..errors import refuse
from ..functional.convolution import conv, padding_pairs, per_axis
from ..module import Module
from ..shapes import size
from .params import value, weight


class Conv(Module):
    """Base of the convolutions; RANK is the number of spatial axes."""

    SHOWN = "stride kernel_size dilation groups padding"
    RANK = 0

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        if in_channels % groups or out_channels % groups:
            refuse("groups", type(self).__name__, in_channels, out_channels, groups)
        n = self.RANK
        self.kernel_size = per_axis(kernel_size, n, "kernel_size")
        self.stride = per_axis(stride, n, "stride")
        self.dilation = per_axis(dilation, n, "dilation")
        self.padding = padding_pairs(padding, n, self.kernel_size, self.dilation)
        self.groups = groups
        taps = size(self.kernel_size)
        fans = (in_channels // groups * taps, out_channels // groups * taps)
        shape = self.weight_shape(in_channels, out_channels) + self.kernel_size
        self.weight = weight(shape, fans, dtype, backend, initializer)
        self.bias = weight((out_channels,), fans, dtype, backend, initializer) if bias else None

    def weight_shape(self, in_channels, out_channels):
        """The shape of `weight`: (out_channels, in_channels / groups, *kernel_size)."""
        return (out_channels, in_channels // self.groups)

    def forward(self, x):
        """x (n, in_channels, *spatial) -> (n, out_channels, *spatial'), or both without n. Raises ShapeError if x does
        not fit."""
        if len(x.shape) != self.RANK + 2:
            from .unbatched import windows

            return windows(self, x)
        return self.convolve(x, self.weight.val(), value(self.bias))

    def convolve(self, x, weight, bias):
        """The convolution of x with the values of `weight` and `bias`; transposed convolutions override it."""
        return conv(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(Conv):
    """x (n, in_channels, length)."""

    RANK = 1


class Conv2d(Conv):
    """x (n, in_channels, height, width)."""

    RANK = 2


class Conv3d(Conv):
    """x (n, in_channels, depth, height, width)."""

    RANK = 3
