"""layer_norm and rms_norm: the standardized elements are kept, and their gradient takes two reductions."""

from ...shapes import size
from ..arithmetic import add, call, div, mul, number, sub, total, unary, undo_broadcast


def _mean(x, axes, count):
    return div(total(x, axes), number(count, x))


def _count(x, axis):
    return size(x.shape[axis:])


def _affine(g, standard, weight, bias):
    """The gradients of the weight and the bias, where there are any."""
    found = [] if weight is None else [undo_broadcast(mul(g, standard), weight.shape)]
    return found if bias is None else found + [undo_broadcast(g, bias.shape)]


def layer_norm(x, weight, bias, epsilon, axis):
    out = call("layer_norm", x, weight, bias, epsilon, axis)
    axes, count = tuple(range(axis, len(x.shape))), _count(x, axis)

    def pull(g):
        centered = sub(x, _mean(x, axes, count))
        deviation = unary("sqrt", add(_mean(mul(centered, centered), axes, count), number(epsilon, x)))
        standard = div(centered, deviation)
        inside = g if weight is None else mul(g, weight)
        along = mul(standard, _mean(mul(inside, standard), axes, count))
        of_x = div(sub(sub(inside, _mean(inside, axes, count)), along), deviation)
        return [of_x] + _affine(g, standard, weight, bias)

    return out, pull


def rms_norm(x, weight, epsilon, axis):
    out = call("rms_norm", x, weight, epsilon, axis)
    axes, count = tuple(range(axis, len(x.shape))), _count(x, axis)

    def pull(g):
        root = unary("sqrt", add(_mean(mul(x, x), axes, count), number(epsilon, x)))
        standard = div(x, root)
        inside = g if weight is None else mul(g, weight)
        of_x = div(sub(inside, mul(standard, _mean(mul(inside, standard), axes, count))), root)
        return [of_x] + _affine(g, standard, weight, None)

    return out, pull
