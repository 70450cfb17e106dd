"""Kernels, strides and dilations of the windows that small models do not have."""

from ...errors import refuse
from ..convolution import per_axis


def steps(value, n, what):
    """`per_axis` of a kernel, stride or dilation. Raises ShapeError for an entry below 1."""
    value = per_axis(value, n, what)
    if [v for v in value if v < 1]:
        refuse("least", what, 1, value)
    return value
