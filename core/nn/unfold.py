"""Sliding windows as columns."""

from ..functional.convolution import padding_pairs, per_axis
from ..functional.windows.patches import im2col
from ..module import Module


class Unfold4d(Module):
    """x (n, c, h, w) -> (n, c * taps, positions): every window as a column."""

    SHOWN = "kernel_size stride dilation padding"

    def __init__(self, kernel_size, stride=1, padding=0, dilation=1):
        self.kernel_size = per_axis(kernel_size, 2, "kernel_size")
        self.stride = per_axis(stride, 2, "stride")
        self.dilation = per_axis(dilation, 2, "dilation")
        self.padding = padding_pairs(padding, 2, self.kernel_size, self.dilation)

    def forward(self, x):
        """x (n, c, h, w) -> (n, c * taps, positions). Raises ShapeError for another rank."""
        return im2col(x, self.kernel_size, self.stride, self.padding, self.dilation)
