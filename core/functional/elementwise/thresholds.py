"""Activations that cut at a threshold."""

from ..operands import floating, like, numeric
from ..overriding import composite
from .activations import shrink


#: method; Burn hard_shrink
@composite
def hard_shrink(x, lambd=0.5):
    """x where |x| > lambd, 0 elsewhere."""
    return shrink(x, lambd)


#: method; Burn soft_shrink
@composite
def soft_shrink(x, lambd=0.5):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""
    return shrink(x, lambd, lambd)


#: method; Burn tanhshrink
@composite
def tanhshrink(x):
    """x - tanh(x)."""
    x = floating(x)
    return x.backend.binary("sub", x, x.backend.unary("tanh", x))


#: method; Burn threshold; threshold: float; value: float
@composite
def threshold(x, threshold, value):
    """x where x > threshold, `value` elsewhere."""
    x = numeric(x, "threshold")
    backend = x.backend
    return backend.where(backend.binary("gt", x, like(threshold, x)), x, like(value, x))
