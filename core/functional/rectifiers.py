"""The rectifier: the activation that most networks need, by itself."""

from ..backend import operation
from .operands import numeric


#: method; ONNX Relu; Burn relu
def relu(x):
    """max(x, 0)."""
    x = numeric(x, "relu")
    fast = operation(x.backend, "relu")
    return fast(x) if fast else x.backend.binary("maximum", x, x.backend.full((), 0, x.dtype))
