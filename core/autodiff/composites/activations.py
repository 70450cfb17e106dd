"""relu, clip, sigmoid, softmax, log_softmax and gelu."""

import math

from ...tensor import Tensor
from ..arithmetic import add, call, compare, mul, number, sub, total, unary, undo_broadcast, where


def relu(x):
    y = call("relu", x)
    # NaN passes the gradient on, as in PyTorch.
    return y, lambda g: (where(compare("le", y, number(0, y)), number(0, g), g),)


def clip(x, low, high):
    """The gradient of x is kept at the bounds, as in PyTorch; bounds that are tensors get that of the clamped ones."""
    y = call("clip", x, low, high)

    def pull(g):
        zero = number(0, g)
        bounds = [None if b is None else b if isinstance(b, Tensor) else number(b, x) for b in (low, high)]
        below = None if bounds[0] is None else compare("lt", x, bounds[0])
        above = None if bounds[1] is None else compare("gt", x, bounds[1])
        out = g
        for op, bound in (("ge", bounds[0]), ("le", bounds[1])):  # false for NaN
            if bound is not None:
                out = where(compare(op, x, bound), out, zero)
        found = [undo_broadcast(out, x.shape)]
        if above is not None and below is not None:  # where both hold, the upper bound is the result
            crossed = compare("gt", bounds[0], bounds[1])
            above, below = (
                compare("logical_or", above, compare("logical_and", below, crossed)),
                compare("logical_and", below, unary("logical_not", crossed)),
            )
        for b, beyond in ((low, below), (high, above)):
            if isinstance(b, Tensor):
                found.append(undo_broadcast(where(beyond, g, zero), b.shape))
        return found

    return y, pull


def sigmoid(x):
    y = call("sigmoid", x)
    return y, lambda g: (mul(g, mul(y, sub(number(1, y), y))),)


def softmax(x, axis):
    y = call("softmax", x, axis)

    def pull(g):
        weighted = mul(g, y)
        return (sub(weighted, mul(y, total(weighted, (axis,)))),)

    return y, pull


def log_softmax(x, axis):
    y = call("log_softmax", x, axis)
    return y, lambda g: (sub(g, mul(unary("exp", y), total(g, (axis,)))),)


def gelu(x, approximate):
    y = call("gelu", x, approximate)

    def exact(g):
        density = mul(unary("exp", mul(mul(x, x), number(-0.5, x))), number(1 / math.sqrt(2 * math.pi), x))
        below = mul(add(unary("erf", mul(x, number(math.sqrt(0.5), x))), number(1, x)), number(0.5, x))
        return (mul(g, add(below, mul(x, density))),)

    def by_tanh(g):
        square = mul(x, x)
        scale = number(math.sqrt(2 / math.pi), x)
        t = unary("tanh", mul(scale, mul(x, add(mul(square, number(0.044715, x)), number(1, x)))))
        one = number(1, x)
        slope = mul(scale, add(mul(square, number(3 * 0.044715, x)), one))
        rest = mul(mul(x, mul(sub(one, t), add(one, t))), slope)
        return (mul(g, mul(add(add(one, t), rest), number(0.5, x))),)

    return y, by_tanh if approximate == "tanh" else exact
