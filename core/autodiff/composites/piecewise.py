"""Activations of several pieces: relu6, hardtanh, leaky_relu, prelu, elu, selu, hard_sigmoid and hard_swish.

Their primitives would share the gradient where two pieces meet. PyTorch takes that of one piece, and zeros, which
padding and dead units give exactly, are common points.
"""

from ...tensor import Tensor
from ..arithmetic import add, call, compare, mul, number, undo_broadcast, where


def _times(g, factor):
    return mul(g, number(factor, g))


def relu6(x):
    return _within(x, call("relu6", x), 0, 6)


def hardtanh(x, min_value=-1.0, max_value=1.0):
    return _within(x, call("hardtanh", x, min_value, max_value), min_value, max_value)


def _within(x, y, low, high):
    """The gradient is kept between the bounds and not at them. Here as below, NaN passes it on, as in PyTorch."""

    def pull(g):
        outside = compare("logical_or", compare("le", x, number(low, x)), compare("ge", x, number(high, x)))
        return (where(outside, number(0, g), g),)

    return y, pull


def leaky_relu(x, negative_slope=0.01):
    y = call("leaky_relu", x, negative_slope)
    return y, lambda g: (where(compare("gt", x, number(0, x)), g, _times(g, negative_slope)),)


def prelu(x, alpha):
    y = call("prelu", x, alpha)

    def pull(g):
        slope = alpha
        if not isinstance(alpha, Tensor):
            slope = call("asarray", alpha, dtype=x.dtype, backend=x.backend)
        if len(slope.shape) == 1 and slope.size > 1 and len(x.shape) > 1:  # one for each channel
            slope = slope.backend.reshape(slope, (slope.size,) + (1,) * (len(x.shape) - 2))
        above, zero = compare("gt", x, number(0, x)), number(0, g)
        found = [where(above, g, mul(g, slope))]
        if isinstance(alpha, Tensor):
            of_alpha = undo_broadcast(where(above, zero, mul(g, x)), slope.shape)
            found.append(of_alpha.backend.reshape(of_alpha, alpha.shape))
        return found

    return y, pull


def elu(x, alpha=1.0):
    y = call("elu", x, alpha)
    return y, lambda g: (where(compare("le", x, number(0, x)), mul(g, add(y, number(alpha, y))), g),)


def selu(x, alpha=1.6732632423543772, gamma=1.0507009873554805):
    y = call("selu", x, alpha, gamma)

    def pull(g):
        low = mul(g, add(y, number(alpha * gamma, y)))  # below 0, y is alpha * gamma * (exp(x) - 1)
        return (where(compare("le", x, number(0, x)), low, _times(g, gamma)),)

    return y, pull


def hard_sigmoid(x, alpha=0.2, beta=0.5):
    y = call("hard_sigmoid", x, alpha, beta)

    def pull(g):
        inside = compare("logical_and", compare("gt", y, number(0, y)), compare("lt", y, number(1, y)))
        return (where(inside, _times(g, alpha), number(0, g)),)

    return y, pull


def hard_swish(x):
    y = call("hard_swish", x)

    def pull(g):
        slope = mul(g, add(mul(x, number(1 / 3, x)), number(0.5, x)))
        out = where(compare("lt", x, number(3, x)), slope, g)
        return (where(compare("le", x, number(-3, x)), number(0, g), out),)

    return y, pull
