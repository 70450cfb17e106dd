"""Activation functions as layers, for models that keep them in fields."""

from ..functional.elementwise.activations import (
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    log_softmax,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from ..functional.rectifiers import relu
from ..module import Module


class Relu(Module):
    """max(x, 0)."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return relu(x)


class LeakyRelu(Module):
    """x where it is >= 0, negative_slope * x elsewhere."""

    SHOWN = "negative_slope"

    def __init__(self, negative_slope=0.01):
        self.negative_slope = negative_slope

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return leaky_relu(x, self.negative_slope)


class Gelu(Module):
    """x times the standard normal distribution function at x; approximate: "none" or "tanh"."""

    SHOWN = "approximate"

    def __init__(self, approximate="none"):
        self.approximate = approximate

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return gelu(x, self.approximate)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return sigmoid(x)


class HardSigmoid(Module):
    """alpha * x + beta, clamped to [0, 1] (PyTorch's alpha is 1/6)."""

    SHOWN = "alpha beta"

    def __init__(self, alpha=0.2, beta=0.5):
        self.alpha = alpha
        self.beta = beta

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return hard_sigmoid(x, self.alpha, self.beta)


class HardSwish(Module):
    """x * min(max(x + 3, 0), 6) / 6."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return hard_swish(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return x.tanh()


class Silu(Module):
    """x * sigmoid(x)."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return silu(x)


class Elu(Module):
    """x where it is >= 0, alpha * (exp(x) - 1) elsewhere."""

    SHOWN = "alpha"

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return elu(x, self.alpha)


class Selu(Module):
    """The self-normalizing exponential linear unit."""

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return selu(x)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta."""

    SHOWN = "beta"

    def __init__(self, beta=1.0):
        self.beta = beta

    def forward(self, x):
        """x of any shape and a float dtype -> the same shape and dtype, element by element."""
        return softplus(x, self.beta)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along axis."""

    SHOWN = "axis"

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        """x of any shape with `axis` -> the same shape; the elements along `axis` sum to 1."""
        return softmax(x, self.axis)


class LogSoftmax(Module):
    """log(softmax(x))."""

    SHOWN = "axis"

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        """x of any shape with `axis` -> the same shape."""
        return log_softmax(x, self.axis)


class Glu(Module):
    """The first half of x along axis times the sigmoid of the second half."""

    SHOWN = "axis"

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        """x with an even length along `axis` -> that length halved. Raises ShapeError for an odd length."""
        return glu(x, self.axis)
