"""The rules of scatter, for each way of combining elements."""

from ... import dtypes
from ...shapes import size
from ..arithmetic import add, compare, div, mul, number, reshaped, where, zeros


def scatter(x, indices, updates, axis, op, y, wants):
    rule = {"none": _replace, "add": _add, "mul": _product}.get(op, _extreme)
    return rule(x, indices, updates, axis, y, wants)


def _replace(x, indices, updates, axis, y, wants):
    shape = indices.shape

    def pull(g):
        of_x = of_updates = None
        backend = g.backend
        if wants[0]:
            of_x = backend.scatter(g, indices, backend.full(shape, 0, g.dtype), axis, "none")
        if wants[1]:
            # Of several updates of one element only the last one counts.
            n = size(shape)
            number_of = reshaped(backend.arange(0, 1, n, dtypes.int64), shape)
            last = backend.scatter(backend.full(g.shape, -1, dtypes.int64), indices, number_of, axis, "none")
            counts = compare("eq", backend.gather(_room(last, shape, axis), indices, axis), number_of)
            of_updates = where(counts, backend.gather(_room(g, shape, axis), indices, axis), number(0, g))
        return of_x, of_updates

    return pull


def _room(x, shape, axis):
    """x cut to `shape` along every axis but `axis`, for gather."""
    sizes = tuple([x.shape[i] if i == axis else shape[i] for i in range(len(shape))])
    return x if sizes == x.shape else x.backend.slice(x, (0,) * len(sizes), sizes, (1,) * len(sizes))


def _at(x, indices, axis):
    return x.backend.gather(_room(x, indices.shape, axis), indices, axis)


def _add(x, indices, updates, axis, y, wants):
    return lambda g: (g if wants[0] else None, _at(g, indices, axis) if wants[1] else None)


def _product(x, indices, updates, axis, y, wants):
    def pull(g):
        backend = g.backend
        of_x = mul(g, backend.scatter(backend.full(x.shape, 1, x.dtype), indices, updates, axis, "mul"))
        if not wants[1]:
            return of_x, None
        # The product of the others: without the zeros, and 0 where another factor is 0.
        zero, one = number(0, x), number(1, x)
        gone = compare("eq", updates, zero)
        kept = where(gone, one, updates)
        whole = backend.scatter(x, indices, kept, axis, "mul")
        none = where(gone, one, zero)
        count = backend.scatter(zeros(x), indices, none, axis, "add")
        others = add(_at(count, indices, axis), backend.unary("neg", none))
        share = where(compare("gt", others, zero), zero, div(_at(whole, indices, axis), kept))
        return of_x if wants[0] else None, mul(_at(g, indices, axis), share)

    return pull


def _extreme(x, indices, updates, axis, y, wants):
    # Equal extremes share the gradient.
    def pull(g):
        backend = g.backend
        zero, one = number(0, g), number(1, g)
        own = where(compare("eq", x, y), one, zero)
        hits = where(compare("eq", updates, _at(y, indices, axis)), one, zero)
        g = div(g, backend.scatter(own, indices, hits, axis, "add"))
        return mul(g, own) if wants[0] else None, mul(_at(g, indices, axis), hits) if wants[1] else None

    return pull
