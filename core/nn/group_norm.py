"""Normalization over groups of channels, and over each channel."""

from ..errors import ShapeError
from ..functional.reductions.normalization import group_norm
from ..module import Module
from .params import constant, value


class GroupNorm(Module):
    """Zero mean and unit variance over each of num_groups groups of channels of x (n, num_channels, …), then * weight +
    bias per channel. weight, bias: (num_channels,), None if affine is False."""

    BURN_NAMES = {"weight": "gamma", "bias": "beta"}
    SHOWN = "num_groups num_channels epsilon"

    def __init__(self, num_groups, num_channels, epsilon=1e-5, affine=True, dtype=None, backend=None):
        if num_channels % num_groups:
            raise ShapeError("GroupNorm: {} channels do not divide into {} groups".format(num_channels, num_groups))
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.epsilon = epsilon
        self.weight = constant((num_channels,), 1, dtype, backend) if affine else None
        self.bias = constant((num_channels,), 0, dtype, backend) if affine else None

    def forward(self, x):
        """x (n, num_channels, …) -> the same shape and dtype. Raises ShapeError for other channels."""
        return group_norm(x, self.num_groups, value(self.weight), value(self.bias), self.epsilon)


class InstanceNorm(GroupNorm):
    """Zero mean and unit variance over the spatial axes of each channel, then * weight + bias per channel."""

    SHOWN = "num_channels epsilon"

    def __init__(self, num_channels, epsilon=1e-5, affine=True, dtype=None, backend=None):
        GroupNorm.__init__(self, num_channels, num_channels, epsilon, affine, dtype, backend)
