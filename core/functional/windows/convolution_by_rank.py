"""Convolution over a given number of spatial axes, which the input must have."""

from ...errors import ShapeError
from ..convolution import conv


def _ranked(rank):
    def convolve(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if len(x.shape) != rank + 2:
            raise ShapeError("conv{}d wants (n, c) and {} spatial axes, found {}".format(rank, rank, x.shape))
        return conv(x, weight, bias, stride, padding, dilation, groups)

    return convolve


conv1d, conv2d, conv3d = _ranked(1), _ranked(2), _ranked(3)
