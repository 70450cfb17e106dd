"""The rules of elementwise primitives of two operands: op(a, b, y, wants a, wants b) -> pull, for y = op(a, b). `pull`
sums the gradients to the shapes of operands that were broadcast."""

from ...errors import refuse
from ..arithmetic import add as plus
from ..arithmetic import compare, neg, number, power, unary, undo_broadcast, where
from ..arithmetic import div as over
from ..arithmetic import mul as times


def pull(op, a, b, y, first, second):
    """The function from y's gradient to those of a and b, None where not wanted."""
    if op not in _RULES:
        refuse("no backward", op, op)
    rule = _RULES[op](a, b, y, first, second)
    shapes = (a.shape, b.shape)

    def undone(g):
        found = rule(g)
        return [None if d is None else undo_broadcast(d, shape) for d, shape in zip(found, shapes)]

    return undone


def _add(a, b, y, first, second):
    return lambda g: (g if first else None, g if second else None)


def _sub(a, b, y, first, second):
    return lambda g: (g if first else None, neg(g) if second else None)


def _mul(a, b, y, first, second):
    b, a = b if first else None, a if second else None
    return lambda g: (None if b is None else times(g, b), None if a is None else times(g, a))


def _div(a, b, y, first, second):
    y = y if second else None

    def rule(g):
        g = over(g, b)
        return g if first else None, neg(times(g, y)) if second else None

    return rule


def _fmod(a, b, y, first, second):
    # a - b * trunc(a / b), and trunc is flat.
    if not second:
        return lambda g: (g, None)
    return lambda g: (g if first else None, neg(times(g, unary("trunc", over(a, b)))))


def _remainder(a, b, y, first, second):
    if not second:
        return lambda g: (g, None)
    return lambda g: (g if first else None, neg(times(g, unary("floor", over(a, b)))))


def _pow(a, b, y, first, second):
    # As in PyTorch, the slope in a is 0 where b is 0, and the slope in b is 0 where a is 0 and b is not negative.
    def rule(g):
        zero = number(0, y)
        of_a = of_b = None
        if first:
            slope = times(b, power(a, plus(b, number(-1, b))))
            of_a = times(g, where(compare("eq", b, zero), zero, slope))
        if second:
            still = compare("logical_and", compare("eq", a, zero), compare("ge", b, zero))
            slope = times(y, unary("log", where(still, number(1, a), a)))
            of_b = times(g, where(still, zero, slope))
        return of_a, of_b

    return rule


def _atan2(a, b, y, first, second):
    def rule(g):
        g = over(g, plus(times(a, a), times(b, b)))
        return times(g, b) if first else None, neg(times(g, a)) if second else None

    return rule


def _extreme(op):
    def make(a, b, y, first, second):
        # Equal operands share the gradient, as in PyTorch.
        def rule(g):
            zero, half = number(0, g), times(g, number(0.5, g))
            level = compare("eq", a, b)
            of_a = where(level, half, where(compare(op, a, b), g, zero)) if first else None
            return of_a, where(level, half, where(compare(op, b, a), g, zero)) if second else None

        return rule

    return make


_RULES = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "fmod": _fmod,
    "remainder": _remainder,
    "pow": _pow,
    "atan2": _atan2,
    "maximum": _extreme("gt"),
    "minimum": _extreme("lt"),
}
