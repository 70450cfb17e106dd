"""Layer normalization."""

from ..functional.reductions.normalization import layer_norm
from ..module import Module
from .params import constant, value


class LayerNorm(Module):
    """Zero mean and unit variance over the last axes, those of `normalized_shape` (an int or a tuple), then * weight
    + bias. weight, bias: of that shape; bias is None if `bias` is False, both are None if `affine` is False."""

    BURN_NAMES = {"weight": "gamma", "bias": "beta"}
    SHOWN = "normalized_shape epsilon"

    def __init__(self, normalized_shape, epsilon=1e-5, affine=True, bias=True, dtype=None, backend=None):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.epsilon = epsilon
        self.weight = constant(shape, 1, dtype, backend) if affine else None
        self.bias = constant(shape, 0, dtype, backend) if affine and bias else None

    def forward(self, x):
        """x (…, *normalized_shape) -> the same shape and dtype. Raises ShapeError for other last axes."""
        n = len(self.normalized_shape)
        if x.shape[len(x.shape) - n :] != self.normalized_shape:
            from ..errors import ShapeError

            raise ShapeError("LayerNorm over {} does not fit shape {}".format(self.normalized_shape, x.shape))
        return layer_norm(x, value(self.weight), value(self.bias), self.epsilon, -n)
