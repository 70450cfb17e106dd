"""Joining buffers, and repeating a value."""

from array import array

from .buffers import MICRO, code_of


def join(dtype, chunks):
    """A buffer of the elements of several buffers of the repeated dtype, one after the other."""
    code = code_of(dtype)
    out = [] if code is None else array(code)
    for chunk in chunks:
        out.extend(chunk)
    return out


def _repeated(value, count):
    for _ in range(count):
        yield value


if MICRO:
    repeated = _repeated
else:
    from itertools import repeat

    repeated = repeat
