"""Layers that move elements between channels and pixels, or between channels: PixelShuffle and its kin, and folding."""

from ..errors import ArgumentError, ShapeError
from ..functional.convolution import padding_pairs, per_axis
from ..functional.movement.rearranging import depth_to_space, permute_dims
from ..functional.reshaping import reshape
from ..functional.windows.patches import col2im
from ..module import Module


class PixelShuffle(Module):
    """x (n, c * r², h, w) -> (n, c, h * r, w * r): channels become pixels (Shi et al. 2016). r: upscale_factor."""

    SHOWN = "upscale_factor"

    def __init__(self, upscale_factor):
        self.upscale_factor = upscale_factor

    def forward(self, x):
        """Raises ShapeError unless r² divides the channels."""
        return depth_to_space(x, self.upscale_factor, "CRD")


class PixelUnshuffle(Module):
    """x (n, c, h * r, w * r) -> (n, c * r², h, w): the inverse of PixelShuffle. r: downscale_factor."""

    SHOWN = "downscale_factor"

    def __init__(self, downscale_factor):
        self.downscale_factor = downscale_factor

    def forward(self, x):
        """Raises ShapeError unless r divides the height and the width."""
        r = self.downscale_factor
        if r < 1 or len(x.shape) != 4 or x.shape[2] % r or x.shape[3] % r:
            raise ShapeError("PixelUnshuffle: {} do not divide into {} × {} pixels".format(x.shape, r, r))
        n, c, h, w = x.shape
        parts = permute_dims(reshape(x, (n, c, h // r, r, w // r, r)), (0, 1, 3, 5, 2, 4))
        return reshape(parts, (n, c * r * r, h // r, w // r))


class ChannelShuffle(Module):
    """x (n, c, *spatial) -> the same shape: channel i of group g becomes channel g of group i (Zhang et al. 2018)."""

    SHOWN = "groups"

    def __init__(self, groups):
        self.groups = groups

    def forward(self, x):
        """Raises ShapeError unless `groups` divides the channels."""
        if len(x.shape) < 3 or self.groups < 1 or x.shape[1] % self.groups:
            raise ShapeError("ChannelShuffle: {} groups do not divide the channels of {}".format(self.groups, x.shape))
        n, c = x.shape[:2]
        rest = x.shape[2:]
        parts = reshape(x, (n, self.groups, c // self.groups) + rest)
        return reshape(permute_dims(parts, (0, 2, 1) + tuple(range(3, 3 + len(rest)))), x.shape)


class Fold4d(Module):
    """x (n, c * taps, positions) -> (n, c, *output_size): windows summed back into an image, as Unfold4d made them."""

    SHOWN = "output_size kernel_size stride dilation padding"

    def __init__(self, output_size, kernel_size, stride=1, padding=0, dilation=1):
        self.output_size = per_axis(output_size, 2, "output_size")
        self.kernel_size = per_axis(kernel_size, 2, "kernel_size")
        self.stride = per_axis(stride, 2, "stride")
        self.dilation = per_axis(dilation, 2, "dilation")
        self.padding = padding_pairs(padding, 2, self.kernel_size, self.dilation)

    def forward(self, x):
        """Raises ShapeError if the columns do not fit."""
        return col2im(x, self.output_size, self.kernel_size, self.stride, self.padding, self.dilation)


class Softmax2d(Module):
    """softmax over the channels of x (n, c, h, w) or (c, h, w)."""

    def forward(self, x):
        """x -> the same shape. Raises ShapeError for another rank."""
        if len(x.shape) not in (3, 4):
            raise ShapeError("Softmax2d takes (n, c, h, w) or (c, h, w), found {}".format(x.shape))
        from ..functional.elementwise.activations import softmax

        return softmax(x, -3)


class LocalResponseNorm(Module):
    """x (n, c, *spatial) divided by (k + alpha / size * the sum of squares over `size` neighboring channels) ** beta
    (Krizhevsky et al. 2012)."""

    SHOWN = "size alpha beta k"

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        if size < 1:
            raise ArgumentError("LocalResponseNorm: size is {}, expected at least 1".format(size))
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x):
        """x -> the same shape."""
        from ..functional.reductions.normalization import local_response_norm

        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)
