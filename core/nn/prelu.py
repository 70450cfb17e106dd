"""A leaky ReLU with a learned slope."""

from ..functional.elementwise.activations import prelu
from ..module import Module
from .params import constant


class PRelu(Module):
    """max(0, x) + weight * min(0, x), one slope for all or one per channel (axis 1). weight: (num_parameters,)."""

    BURN_NAMES = {"weight": "alpha"}
    SHOWN = "num_parameters"

    def __init__(self, num_parameters=1, alpha=0.25, dtype=None, backend=None):
        self.num_parameters = num_parameters
        self.weight = constant((num_parameters,), alpha, dtype, backend)

    def forward(self, x):
        """x (n, c, …) -> the same shape; c is num_parameters unless there is only one slope."""
        return prelu(x, self.weight.val())
