"""A product of two inputs with a tensor of weights."""

from ..functional.linear_algebra.einsum import einsum
from ..module import Module
from .params import value, weight


class Bilinear(Module):
    """y[o] = x1 · weight[o] · x2 + bias[o] for x1 (…, d_input1) and x2 (…, d_input2) -> (…, d_output).

    weight: (d_output, d_input1, d_input2); bias: (d_output,) or None; both uniform within ±1 / sqrt(d_input1).
    """

    SHOWN = "d_input1 d_input2 d_output bias"

    def __init__(self, d_input1, d_input2, d_output, bias=True, dtype=None, backend=None, initializer=None):
        self.d_input1 = d_input1
        self.d_input2 = d_input2
        self.d_output = d_output
        fans = (d_input1, d_output)
        self.weight = weight((d_output, d_input1, d_input2), fans, dtype, backend, initializer)
        self.bias = weight((d_output,), fans, dtype, backend, initializer) if bias else None

    def forward(self, x1, x2):
        """x1 (…, d_input1), x2 (…, d_input2) -> (…, d_output). Raises ShapeError for another last axis."""
        y = einsum("...i,oij,...j->...o", x1, self.weight.val(), x2)
        bias = value(self.bias)
        return y if bias is None else y + bias
