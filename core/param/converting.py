"""Conversion to another dtype that refuses integers out of range."""

from ..errors import refuse


def converted(tensor, dtype):
    """`tensor` in `dtype`. Raises DTypeError if it holds integers out of the range of an integer `dtype`."""
    if dtype.is_integer and tensor.dtype.is_integer and tensor.size:
        low, high = dtype.range
        least, most = tensor.dtype.range
        if least < low or most > high:
            least, most = int(tensor.min()), int(tensor.max())
            if least < low or most > high:
                refuse("narrowing", tensor.dtype, least, most, dtype, low, high)
    return tensor.astype(dtype)
