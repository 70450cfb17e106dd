"""Deformable convolution (Dai et al. 2017; with a mask, Zhu et al. 2019)."""

from ..functional.windows.sampling import deform_conv
from .conv import Conv
from .params import value


class DeformConv2d(Conv):
    """x (n, in_channels, h, w), offset (n, 2 * offset_groups * taps, h', w') in (y, x) pairs, mask (n, offset_groups *
    taps, h', w') or None -> (n, out_channels, h', w'). The rest as in Conv2d."""

    RANK = 2
    SHOWN = "stride kernel_size dilation groups offset_groups padding"

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, offset_groups=1,
        bias=True, dtype=None, backend=None, initializer=None,
    ):  # fmt: skip
        Conv.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            dtype, backend, initializer,
        )  # fmt: skip
        self.offset_groups = offset_groups

    def forward(self, x, offset, mask=None):
        """The convolution with each tap moved by `offset` and scaled by `mask`. Raises ShapeError if shapes do not
        fit."""
        return deform_conv(
            x, self.weight.val(), offset, value(self.bias), mask, self.stride, self.padding, self.dilation, self.groups,
            self.offset_groups,
        )  # fmt: skip
