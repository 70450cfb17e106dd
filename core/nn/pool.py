"""Pooling over 1, 2 and 3 spatial axes of x (n, c, *spatial).

kernel_size, stride (by default the kernel's), dilation: an int or one per axis; padding: an int, or one entry per axis
(an int or a (low, high) pair). Inputs of the wrong shape raise ShapeError.
"""

from ..functional.convolution import padding_pairs, per_axis
from ..functional.max_pooling import max_pool
from ..functional.windows.pooling import adaptive_avg_pool, adaptive_max_pool, avg_pool
from ..module import Module
from ..shapes import size


class _Pool(Module):
    RANK = 0

    def _windows(self, kernel_size, stride, padding, dilation=1):
        n = self.RANK
        self.kernel_size = per_axis(kernel_size, n, "kernel_size")
        self.stride = self.kernel_size if stride is None else per_axis(stride, n, "stride")
        self.dilation = per_axis(dilation, n, "dilation")
        self.padding = padding_pairs(padding, n, self.kernel_size, self.dilation)

    def forward(self, x):
        """x (n, c, *spatial) -> (n, c, *windows), or both without n. Raises ShapeError for another rank."""
        if len(x.shape) != self.RANK + 2:
            from .unbatched import windows

            return windows(self, x)
        return self._pooled(x)


class MaxPool(_Pool):
    """The largest element of each window."""

    SHOWN = "kernel_size stride padding dilation ceil_mode"

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        self._windows(kernel_size, stride, padding, dilation)
        self.ceil_mode = ceil_mode

    def _pooled(self, x):
        """x (n, c, *spatial) -> (n, c, *windows), the dtype of x."""
        return max_pool(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool(_Pool):
    """The mean of each window; count_include_pad: include padding, as zeros."""

    SHOWN = "kernel_size stride padding count_include_pad ceil_mode"

    def __init__(self, kernel_size, stride=None, padding=0, count_include_pad=True, ceil_mode=False, dilation=1):
        self._windows(kernel_size, stride, padding, dilation)
        self.count_include_pad = count_include_pad
        self.ceil_mode = ceil_mode

    def _pooled(self, x):
        """x (n, c, *spatial), floats -> (n, c, *windows)."""
        return avg_pool(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class AdaptiveAvgPool(_Pool):
    """Means of windows that divide each spatial axis as evenly as possible into output_size parts: a number, or one
    for each axis, where None keeps the length."""

    SHOWN = "output_size"

    def __init__(self, output_size):
        # per_axis takes numbers.
        several = isinstance(output_size, (tuple, list))
        known = per_axis([s or 0 for s in output_size] if several else output_size, self.RANK, "output_size")
        self.output_size = tuple(output_size) if several and None in output_size else known

    def _parts(self, x):
        return tuple([x.shape[i + 2] if s is None else s for i, s in enumerate(self.output_size)])

    def _pooled(self, x):
        """x (n, c, *spatial), floats -> (n, c, *output_size)."""
        return adaptive_avg_pool(x, self._parts(x))


class AdaptiveMaxPool(AdaptiveAvgPool):
    """Largest elements of windows that divide each spatial axis as evenly as possible into output_size parts."""

    def _pooled(self, x):
        """x (n, c, *spatial) -> (n, c, *output_size)."""
        return adaptive_max_pool(x, self._parts(x))


class MaxPool1d(MaxPool):
    """The largest element of each window of x (n, c, length)."""

    RANK = 1


class MaxPool2d(MaxPool):
    """The largest element of each window of x (n, c, height, width)."""

    RANK = 2


class MaxPool3d(MaxPool):
    """The largest element of each window of x (n, c, depth, height, width)."""

    RANK = 3


class AvgPool1d(AvgPool):
    """The mean of each window of x (n, c, length)."""

    RANK = 1


class AvgPool2d(AvgPool):
    """The mean of each window of x (n, c, height, width)."""

    RANK = 2


class AvgPool3d(AvgPool):
    """The mean of each window of x (n, c, depth, height, width)."""

    RANK = 3


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """x (n, c, length) -> (n, c, output_size): means of windows of nearly equal size."""

    RANK = 1


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """x (n, c, height, width) -> (n, c, *output_size): means of windows of nearly equal size."""

    RANK = 2


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """x (n, c, depth, height, width) -> (n, c, *output_size): means of windows of nearly equal size."""

    RANK = 3


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """x (n, c, length) -> (n, c, output_size): largest elements of windows of nearly equal size."""

    RANK = 1


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """x (n, c, height, width) -> (n, c, *output_size): largest elements of windows of nearly equal size."""

    RANK = 2


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """x (n, c, depth, height, width) -> (n, c, *output_size): largest elements of windows of nearly equal size."""

    RANK = 3


class LPPool(_Pool):
    """The sum of the p-th powers of each window, to the power 1 / p; p: norm_type. Powers of x, not of |x|, as in
    PyTorch."""

    SHOWN = "norm_type kernel_size stride ceil_mode"

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        self._windows(kernel_size, stride, 0)
        self.norm_type = norm_type
        self.ceil_mode = ceil_mode

    def _pooled(self, x):
        """x (n, c, *spatial), floats -> (n, c, *windows)."""
        powers = x**self.norm_type
        total = avg_pool(powers, self.kernel_size, self.stride, ceil_mode=self.ceil_mode)
        taps = size(self.kernel_size)
        return (total * taps) ** (1 / self.norm_type)


class LPPool1d(LPPool):
    """LPPool of x (n, c, length)."""

    RANK = 1


class LPPool2d(LPPool):
    """LPPool of x (n, c, height, width)."""

    RANK = 2


class LPPool3d(LPPool):
    """LPPool of x (n, c, depth, height, width)."""

    RANK = 3
