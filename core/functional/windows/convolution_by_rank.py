"""Convolution over a fixed number of spatial axes."""

from ...errors import ShapeError
from ..convolution import conv


def _ranked(rank, x, *args):
    if len(x.shape) != rank + 2:
        raise ShapeError("conv{}d needs (n, c) and {} spatial axes, found {}".format(rank, rank, x.shape))
    return conv(x, *args)


#: function; PyTorch conv1d; Burn conv1d
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """`conv` of x (n, c, length). Raises ShapeError for another number of axes."""
    return _ranked(1, x, weight, bias, stride, padding, dilation, groups)


#: function; PyTorch conv2d; Burn conv2d
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """`conv` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    return _ranked(2, x, weight, bias, stride, padding, dilation, groups)


#: function; PyTorch conv3d; Burn conv3d
def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """`conv` of x (n, c, depth, height, width). Raises ShapeError for another number of axes."""
    return _ranked(3, x, weight, bias, stride, padding, dilation, groups)
