"""Normalizing several axes, and the shapes of reductions over them. Use these through shapes.py."""

from .errors import refuse
from .shapes import axis_of


def axes_of(axes, ndim):
    """Sorted non-negative axes from None (all), an int or a sequence of ints. Raises ShapeError on a repeated axis."""
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, (tuple, list)):
        return (axis_of(axes if isinstance(axes, int) else axes.__index__(), ndim),)
    out = sorted([axis_of(a, ndim) for a in axes])
    for i in range(1, len(out)):
        if out[i] == out[i - 1]:
            refuse("axis twice", out[i])
    return tuple(out)


def reduced(shape, axes, keepdims):
    """`shape` after reducing over `axes` (non-negative)."""
    if keepdims:
        return tuple([1 if i in axes else shape[i] for i in range(len(shape))])
    return tuple([shape[i] for i in range(len(shape)) if i not in axes])


def as_int(n):
    """n as an integer; a symbolic size of a plan is returned as it is."""
    return n if isinstance(n, int) else int(n)
