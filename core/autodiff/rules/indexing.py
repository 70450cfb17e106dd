"""The rules of take, gather and sort: the gradients are added where the elements came from."""

from ...shapes import size
from ..arithmetic import expanded, reshaped


def _nothing(shape, g):
    return g.backend.full(shape, 0, g.dtype)


def take(x, y, indices, axis):
    shape = x.shape

    def pull(g):
        n = size(indices.shape)
        rows = reshaped(g, shape[:axis] + (n,) + shape[axis + 1 :])
        along = tuple([n if i == axis else 1 for i in range(len(shape))])
        where = expanded(reshaped(indices, along), rows.shape)
        return (g.backend.scatter(_nothing(shape, g), where, rows, axis, "add"),)

    return pull


def gather(x, y, indices, axis):
    shape = x.shape
    return lambda g: (g.backend.scatter(_nothing(shape, g), indices, g, axis, "add"),)


def sort(x, indices, axis):
    shape = x.shape
    return lambda g: (g.backend.scatter(_nothing(shape, g), indices, g, axis, "none"),)
