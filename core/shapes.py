"""Arithmetic on shapes and axes that every backend and every functional family needs.

`axes_of`, `reduced` and `as_int` are loaded from reduced_shapes.py on first use.
"""

from .errors import refuse


def size(shape):
    """Number of elements of `shape`."""
    n = 1
    for d in shape:
        n *= d
    return n


def strides(shape):
    """Row-major strides of `shape`, in elements."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return tuple(out)


def axis_of(axis, ndim):
    """`axis` as a non-negative number. Raises ShapeError outside [-ndim, ndim)."""
    if not -ndim <= axis < ndim:
        refuse("axis", axis, -ndim, ndim)
    return axis + ndim if axis < 0 else axis


compare_open = None  # that of sizes/questions.py, once there are open lengths


def assume_equal(a, b, why):
    """Whether two lengths or shapes are equal. A plan for many lengths takes those that may differ to differ, always.

    So this is only for shortcuts to the same result, and to refuse what no length allows. Compare with == what a plan
    has to decide. why: the function that compares, for the message of a plan that assumed two lengths to be equal.
    """
    return a == b if compare_open is None else compare_open(a, b, why)


def broadcast(*shapes):
    """The shape that all `shapes` broadcast to, by NumPy's rule. Raises ShapeError if they do not broadcast."""
    why = "broadcast"
    if len(shapes) == 2 and assume_equal(*shapes, why):
        return shapes[0]
    out = list(max(shapes, key=len, default=()))
    for s in shapes:
        for i in range(-len(s), 0):
            d, other = s[i], out[i]
            if d is not other and not assume_equal(d, 1, why):
                if not assume_equal(other, 1, why) and not assume_equal(other, d, why):
                    refuse(why, *shapes)
                out[i] = d
    return tuple(out)


def window(length, kernel, stride, padding, dilation):
    """Number of positions of a window of `kernel` taps along an axis of `length` with `padding` (low, high)."""
    n = (length + padding[0] + padding[1] - dilation * (kernel - 1) - 1) // stride + 1
    if n < 0:
        n = 0
    return n


def __getattr__(name):
    if name[0] == "_":
        raise AttributeError(name)
    return getattr(__import__("emberlet.reduced_shapes", None, None, ("*",)), name)
