"""A dense layer."""

from ..functional.dense import linear
from ..module import Module
from .params import value, weight


class Linear(Module):
    """y = x @ weight + bias for x of shape (…, d_input) -> (…, d_output).

    weight: (d_input, d_output), Burn's layout and the transpose of PyTorch's; bias: (d_output,) or None.
    Both are uniform within ±1 / sqrt(d_input) unless an `initializer` is given (emberlet.nn.initializer).
    """

    SHOWN = "d_input d_output bias"
    TRANSPOSED_IN_PYTORCH = True  # the weight: see Module.load_record

    def __init__(self, d_input, d_output, bias=True, dtype=None, backend=None, initializer=None):
        self.d_input = d_input
        self.d_output = d_output
        fans = (d_input, d_output)
        self.weight = weight(fans, fans, dtype, backend, initializer)
        self.bias = weight((d_output,), fans, dtype, backend, initializer) if bias else None

    def forward(self, x):
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""
        return linear(x, self.weight.val(), value(self.bias))
