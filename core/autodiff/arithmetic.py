"""Short names for the primitives, for rules: all take and return tensors of the inner backend."""

from ..shapes import assume_equal


def add(a, b):
    return a.backend.binary("add", a, b)


def sub(a, b):
    return a.backend.binary("sub", a, b)


def mul(a, b):
    return a.backend.binary("mul", a, b)


def div(a, b):
    return a.backend.binary("div", a, b)


def power(a, b):
    return a.backend.binary("pow", a, b)


def compare(op, a, b):
    return a.backend.binary(op, a, b)


def unary(op, x):
    return x.backend.unary(op, x)


def neg(x):
    return x.backend.unary("neg", x)


def number(value, like):
    """A 0-D tensor of like's dtype."""
    return like.backend.full((), value, like.dtype)


def zeros(like):
    return like.backend.full(like.shape, 0, like.dtype)


def where(condition, a, b):
    return condition.backend.where(condition, a, b)


def total(x, axes, keepdims=True):
    return x.backend.reduce("sum", x, axes, keepdims)


def reshaped(x, shape):
    return x if assume_equal(x.shape, shape, "reshaped") else x.backend.reshape(x, shape)


def expanded(x, shape):
    return x if assume_equal(x.shape, shape, "expanded") else x.backend.expand(x, shape)


def undo_broadcast(g, shape):
    """g summed to the shape of an operand that was broadcast to g's shape."""
    if assume_equal(g.shape, shape, "undo_broadcast"):
        return g
    lead = len(g.shape) - len(shape)
    axes = list(range(lead))
    for i in range(len(shape)):
        if not assume_equal(shape[i], g.shape[i + lead], "undo_broadcast"):
            axes.append(i + lead)
    return reshaped(total(g, tuple(axes)), shape)


def flipped(x, axis):
    """x in the reverse order along an axis."""
    n = len(x.shape)
    length = x.shape[axis]
    if length < 2:
        return x
    starts = tuple([length - 1 if i == axis else 0 for i in range(n)])
    return x.backend.slice(x, starts, x.shape, tuple([-1 if i == axis else 1 for i in range(n)]))


def cut(x, axis, start, length):
    """Elements start to start + length along an axis."""
    n = len(x.shape)
    starts = tuple([start if i == axis else 0 for i in range(n)])
    sizes = tuple([length if i == axis else x.shape[i] for i in range(n)])
    return x.backend.slice(x, starts, sizes, (1,) * n)


def own(name, x):
    """What x's backend has for this part of a backward pass, None if nothing. Its result must have no gradient itself,
    and sums of 16-bit floats are wider elsewhere."""
    backend = x.backend
    return None if hasattr(backend, "from_inner") or x.dtype.bits < 32 else getattr(backend, name, None)


def call(name, *args, **kwargs):
    """The function called `name` of emberlet.functional."""
    from ..lookup import function

    return function(name)(*args, **kwargs)
