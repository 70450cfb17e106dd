"""Inputs that plans take for their values, as these decide which operations a model runs."""

from emberlet.backend.axes import unfit
from emberlet.tensor import Tensor

MAX_FIXED = 16  # elements of such an input


def value_of(x):
    """A Tensor's elements, as bytes that are compared."""
    return bytes(x.backend.to_bytes(x))


def may_decide(x):
    """Whether plans may take a Tensor for its value."""
    return (x.dtype.is_integer or x.dtype.is_bool) and x.size <= MAX_FIXED


def no_plan_for(arguments, fixed):
    """Why there is no plan for these arguments, as text; None where there may be one. fixed: the positions of inputs
    that plans take for their values."""
    for i, x in enumerate(arguments):
        if i in fixed and isinstance(x, Tensor) and not may_decide(x):
            what = "input {} decides which operations run, and plans are made for values of at most {} integers"
            return what.format(i, MAX_FIXED)
    return unfit(arguments)


def kinds_of(arguments, fixed):
    """The dtype of each tensor, with the shape and value of a fixed one, and what else there is, as text."""
    kinds = []
    for i, x in enumerate(arguments):
        kind = x.dtype.name if isinstance(x, Tensor) else repr(x)
        kinds.append((kind, x.shape, value_of(x)) if i in fixed and isinstance(x, Tensor) else kind)
    return kinds


def without_value(kind, shape):
    """One of `kinds_of` and its shape, as text."""
    kind = kind[0] if isinstance(kind, tuple) else kind
    return kind if shape is None else "{} {}".format(kind, shape)
