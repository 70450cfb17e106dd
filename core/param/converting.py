"""Conversion to another dtype that refuses what would change the numbers for no reason."""

from ..errors import refuse


def converted(tensor, dtype):
    """`tensor` in `dtype`. Raises DTypeError if it holds integers out of the range of an integer `dtype`, or if both
    are floats of 8 bits or fewer, which are numbers only together with their scales."""
    if dtype.is_float and tensor.dtype.is_float and dtype.bits <= 8 and tensor.dtype.bits <= 8:
        refuse("kind", tensor.dtype, dtype)
    if dtype.is_integer and tensor.dtype.is_integer and tensor.size:
        low, high = dtype.range
        least, most = tensor.dtype.range
        if least < low or most > high:
            least, most = int(tensor.min()), int(tensor.max())
            if least < low or most > high:
                refuse("narrowing", tensor.dtype, least, most, dtype, low, high)
    return tensor.astype(dtype)
