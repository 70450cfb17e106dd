"""The rules of running sums, products and extremes."""

from ... import dtypes
from ..arithmetic import add, compare, cut, flipped, mul, where, zeros


def cumulative(op, x, y, axis):
    if op == "sum":
        return lambda g: (flipped(g.backend.cumulative("sum", flipped(g, axis), axis), axis),)
    if op == "prod":
        return lambda g: (_product(x, g, axis),)
    return lambda g: (_extreme(op, x, y, g, axis),)


def _product(x, g, axis):
    """The product in front of each element, times s[i] = g[i] + x[i + 1] * s[i + 1]: no division, so that zeros need
    no care."""
    backend = x.backend
    n = x.shape[axis]
    if not n:
        return g
    parts = [cut(g, axis, n - 1, 1)]
    for i in range(n - 2, -1, -1):
        parts.append(add(cut(g, axis, i, 1), mul(cut(x, axis, i + 1, 1), parts[-1])))
    parts.reverse()
    behind = backend.concat(parts, axis) if n > 1 else parts[0]
    if n == 1:
        return behind
    shape = tuple([1 if i == axis else x.shape[i] for i in range(len(x.shape))])
    before = backend.cumulative("prod", cut(x, axis, 0, n - 1), axis)
    return mul(behind, backend.concat((backend.full(shape, 1, x.dtype), before), axis))


def _extreme(op, x, y, g, axis):
    """Each gradient goes to the last element that set the running extreme."""
    backend = x.backend
    n = x.shape[axis]
    along = tuple([n if i == axis else 1 for i in range(len(x.shape))])
    index = backend.reshape(backend.arange(0, 1, n, dtypes.int64), along)
    record = compare("eq", x, y)
    setter = where(record, index, backend.full((), 0, dtypes.int64))
    return backend.scatter(zeros(x), backend.cumulative("max", setter, axis), g, axis, "add")
