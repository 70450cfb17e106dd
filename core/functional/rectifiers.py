"""relu, the activation that most networks need, in a file of its own."""

from ..backend import operation
from .operands import numeric


#: method; ONNX Relu; Burn relu
def relu(x):
    """max(x, 0)."""
    x = numeric(x, "relu")
    fast = operation(x.backend, "relu")
    return fast(x) if fast else x.backend.binary("maximum", x, x.backend.full((), 0, x.dtype))
