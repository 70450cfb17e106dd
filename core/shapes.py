"""Arithmetic on shapes and axes that every backend and every functional family needs."""

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
    """`axis` counted from the front. Raises ShapeError outside [-ndim, ndim)."""
    if not -ndim <= axis < ndim:
        refuse("axis", axis, -ndim, ndim)
    return axis + ndim if axis < 0 else axis


def axes_of(axes, ndim):
    """Sorted non-negative axes from None (all), an int or a sequence of ints. Raises ShapeError on a repeated axis."""
    if axes is None:
        return tuple(range(ndim))
    if isinstance(axes, int):
        return (axis_of(axes, ndim),)
    out = sorted([axis_of(a, ndim) for a in axes])
    for i in range(1, len(out)):
        if out[i] == out[i - 1]:
            refuse("axis twice", out[i])
    return tuple(out)


def broadcast(*shapes):
    """The shape that all `shapes` broadcast to, by NumPy's rule. Raises ShapeError where they do not."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    ndim = 0
    for s in shapes:
        ndim = max(ndim, len(s))
    out = [1] * ndim
    for s in shapes:
        lead = ndim - len(s)
        for i in range(len(s)):
            d = s[i]
            if d != 1:
                if out[lead + i] != 1 and out[lead + i] != d:
                    refuse("broadcast", " and ".join([str(s) for s in shapes]))
                out[lead + i] = d
    return tuple(out)


def reduced(shape, axes, keepdims):
    """`shape` after reducing over `axes` (non-negative)."""
    if keepdims:
        return tuple([1 if i in axes else shape[i] for i in range(len(shape))])
    return tuple([shape[i] for i in range(len(shape)) if i not in axes])


def window(length, kernel, stride, padding, dilation):
    """Number of positions of a window of `kernel` taps along an axis of `length` with `padding` (low, high)."""
    n = (length + padding[0] + padding[1] - dilation * (kernel - 1) - 1) // stride + 1
    if n < 0:
        n = 0
    return n
