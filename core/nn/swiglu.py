"""The gated linear unit with SiLU (Shazeer 2020)."""

from ..functional.elementwise.activations import silu
from ..module import Module
from .linear import Linear


class SwiGlu(Module):
    """silu(linear_inner(x)) * linear_outer(x) for x (…, d_input) -> (…, d_output)."""

    SHOWN = "d_input d_output bias"

    def __init__(self, d_input, d_output, bias=False, dtype=None, backend=None, initializer=None):
        self.d_input = d_input
        self.d_output = d_output
        self.bias = bias
        self.linear_inner = Linear(d_input, d_output, bias, dtype, backend, initializer)
        self.linear_outer = Linear(d_input, d_output, bias, dtype, backend, initializer)

    def forward(self, x):
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""
        return silu(self.linear_inner(x)) * self.linear_outer(x)
