"""Root mean square normalization (Zhang and Sennrich 2019)."""

from ..functional.reductions.normalization import rms_norm
from ..module import Module
from .params import constant


class RmsNorm(Module):
    """x / sqrt(mean(x²) + epsilon) * weight over the last axis, of length d_model. weight: (d_model,)."""

    BURN_NAMES = {"weight": "gamma"}
    SHOWN = "d_model epsilon"

    def __init__(self, d_model, epsilon=1e-5, dtype=None, backend=None):
        self.d_model = d_model
        self.epsilon = epsilon
        self.weight = constant((d_model,), 1, dtype, backend)

    def forward(self, x):
        """x (…, d_model) -> the same shape and dtype. Raises ShapeError for another last axis."""
        return rms_norm(x, self.weight.val(), self.epsilon)
