"""Transposed convolutions over 1, 2 and 3 spatial axes.

x (n, in_channels, *spatial) -> (n, out_channels, *spatial') with, along each axis, spatial' =
(spatial - 1) * stride - padding + dilation * (kernel_size - 1) + output_padding + 1. weight: (in_channels,
out_channels // groups, *kernel_size); everything else as in conv.py.
"""

from ..functional.convolution import per_axis
from ..functional.windows.transposed_convolution import conv_transpose
from .conv import Conv


class ConvTranspose(Conv):
    """Base of the transposed convolutions."""

    SHOWN = "stride kernel_size dilation groups padding output_padding"

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
        bias=True, dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        Conv.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype, backend, initializer,
        )  # fmt: skip
        self.output_padding = per_axis(output_padding, self.RANK, "output_padding")

    def weight_shape(self, in_channels, out_channels):
        """The shape of `weight`: (in_channels, out_channels / groups, *kernel_size)."""
        return (in_channels, out_channels // self.groups)

    def convolve(self, x, weight, bias):
        """The transposed convolution of x with the values of `weight` and `bias`."""
        return conv_transpose(
            x, weight, bias, self.stride, self.padding, self.output_padding, self.dilation, self.groups
        )  # fmt: skip


class ConvTranspose1d(ConvTranspose):
    """x (n, in_channels, length)."""

    RANK = 1


class ConvTranspose2d(ConvTranspose):
    """x (n, in_channels, height, width)."""

    RANK = 2


class ConvTranspose3d(ConvTranspose):
    """x (n, in_channels, depth, height, width)."""

    RANK = 3
