"""The rules of reductions over axes."""

from ..arithmetic import compare, cut, div, expanded, flipped, mul, number, reshaped, total, where


def reduce(op, x, y, axes, keepdims):
    shape = x.shape
    kept = tuple([1 if i in axes else shape[i] for i in range(len(shape))])
    if op == "sum":
        return lambda g: (expanded(reshaped(g, kept), shape),)
    if op == "prod":
        return lambda g: (mul(reshaped(g, kept), _products_of_others(x, axes)),)

    def pull(g):
        # Equal extremes share the gradient, as in PyTorch's amax.
        best = compare("eq", x, reshaped(y, kept))
        one, zero = number(1, g), number(0, g)
        count = total(where(best, one, zero), axes)
        return (where(best, div(reshaped(g, kept), count), zero),)

    return pull


def _products_of_others(x, axes):
    """For each element the product of the others along axes: no division, so that zeros need no care."""
    if not axes:
        return x.backend.full(x.shape, 1, x.dtype)
    backend = x.backend
    rest = [i for i in range(len(x.shape)) if i not in axes]
    order = rest + list(axes)
    moved = backend.permute(x, tuple(order))
    n = 1
    for a in axes:
        n *= x.shape[a]
    flat = backend.reshape(moved, tuple([x.shape[i] for i in rest]) + (n,))
    out = mul(_before(flat), flipped(_before(flipped(flat, len(rest))), len(rest)))
    back = [order.index(i) for i in range(len(order))]
    return backend.permute(backend.reshape(out, moved.shape), tuple(back))


def _before(x):
    """The product of the elements in front of each one, along the last axis."""
    axis = len(x.shape) - 1
    backend = x.backend
    if not x.shape[axis]:
        return x
    first = backend.full(x.shape[:-1] + (1,), 1, x.dtype)
    if x.shape[axis] == 1:
        return first
    return backend.concat((first, backend.cumulative("prod", cut(x, axis, 0, x.shape[axis] - 1), axis)), axis)
