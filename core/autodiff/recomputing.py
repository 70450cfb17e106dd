"""The strategy "memory": results of elementwise primitives are not kept for the backward pass, but computed again there
from the operands at the beginning of their chain."""

from ..tensor import Tensor
from .tape import Node, Value

LONGEST = 8  # operations of a chain; the result after them is kept, so that the work stays linear


def _kept(value):
    """(a function that gives the elements of a Value, the length of the chain that it computes)."""
    if value.again is not None and value.again[1] < LONGEST:
        return value.again
    inner = value.inner
    return (lambda: inner), 0


def unary(backend, op, x, out, rule):
    """`out`, the result of a unary primitive of x, whose operand and result are computed again."""
    source, length = _kept(x.data)
    compute = backend.inner.unary

    def pull(g):
        again = source()
        return rule(again, compute(op, again))(g)

    return _noted(backend, out, (x.data.node,), pull, lambda: compute(op, source()), length + 1)


def binary(backend, op, a, b, out, rule):
    """`out`, the result of a binary primitive of a and b, whose operands and result are computed again."""
    (first, m), (second, n) = _kept(a.data), _kept(b.data)
    parents = (a.data.node, b.data.node)
    compute = backend.inner.binary

    def pull(g):
        x, y = first(), second()
        return rule(op, x, y, compute(op, x, y), parents[0] is not None, parents[1] is not None)(g)

    # Each operand may be a chain, so that lengths add up.
    return _noted(backend, out, parents, pull, lambda: compute(op, first(), second()), m + n + 1)


def _noted(backend, out, parents, pull, again, length):
    value = Value(out, Node(parents, pull))
    value.again = (again, length)
    return Tensor(value, out.dtype, out.shape, backend)
