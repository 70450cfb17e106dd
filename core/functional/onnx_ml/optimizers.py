"""One step of gradient descent: adagrad, adam, momentum (ai.onnx.preview.training).

Each takes a parameter x, its gradient g and its state, and returns the new parameter and state. r: the learning rate,
t: the number of steps taken so far, both scalars or tensors.
"""

from ..operands import floating
from ..overriding import composite


#: function; ONNX Adagrad -> tuple[Tensor, Tensor]
@composite
def adagrad(r, t, x, g, h, norm_coefficient=0.0, epsilon=1e-6, decay_factor=0.0):
    """(x, h) after a step of Adagrad (Duchi, Hazan and Singer 2011); h accumulates squared gradients."""
    rate = r / (t * decay_factor + 1)
    g = x * norm_coefficient + g
    h = h + g * g
    return (x - rate * g / (h.sqrt() + epsilon)).astype(x.dtype), h


#: function; ONNX Adam -> tuple[Tensor, Tensor, Tensor]
@composite
def adam(r, t, x, g, v, h, alpha=0.9, beta=0.999, norm_coefficient=0.0, norm_coefficient_post=0.0, epsilon=1e-6):
    """(x, v, h) after a step of Adam (Kingma and Ba 2015); v and h are running means of the gradient and of its
    square."""
    g = x * norm_coefficient + g
    v = v * alpha + g * (1 - alpha)
    h = h * beta + g * g * (1 - beta)
    step = floating(t).item()
    rate = r * ((1 - beta**step) ** 0.5 / (1 - alpha**step)) if step > 0 else r
    x = (x - rate * v / (h.sqrt() + epsilon)) * (1 - norm_coefficient_post)
    return x.astype(v.dtype), v, h


#: function; ONNX Momentum -> tuple[Tensor, Tensor]
@composite
def momentum(r, t, x, g, v, alpha, beta, norm_coefficient=0.0, nesterov=False):
    """(x, v) after a step of gradient descent with (Nesterov) momentum; beta scales the gradient after the first
    step."""
    g = x * norm_coefficient + g
    v = v * alpha + g * (beta if floating(t).item() > 0 else 1.0)
    return (x - r * (g + v * alpha if nesterov else v)).astype(v.dtype), v
