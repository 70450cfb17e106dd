"""Floats that are functions of 8-bit levels, as the levels and a table: operations between dequantizing and quantizing
again are done for the 256 levels, and the bytes are translated at the end. CPython only."""

from array import array

from .. import dtypes
from .buffers import Borrowed, flat

LEVELS = 256


class Coded(Borrowed):
    """A buffer of floats that nobody changes. codes: bytes; of_code: an array of the floats that they stand for;
    levels: the Levels that they are, or None."""

    def __init__(self, codes, of_code, levels=None):
        self.codes = codes
        self.of_code = of_code
        self.levels = levels

    def __len__(self):
        return len(self.codes)

    def run(self, start, count):
        return self[start : start + count]

    def __getitem__(self, i):
        if not isinstance(i, slice):
            return self.of_code[self.codes[i]]
        return array(self.of_code.typecode, list(map(self.of_code.tolist().__getitem__, self.codes[i])))

    def __iter__(self):
        return map(self.of_code.__getitem__, self.codes)


def coded(x):
    """The Coded buffer that is all of x, float32; None for others."""
    buffer, offset, strides = x.data
    whole = type(buffer) is Coded and strides is None and not offset and len(buffer) == x.size
    return buffer if whole and x.dtype is dtypes.float32 else None


def table(backend, buffer):
    """The floats of all codes, as a tensor."""
    return backend.new(buffer.of_code, dtypes.float32, (LEVELS,))


def binary(backend, op, a, b):
    """An elementwise function of x and of a number, or of another function of the same levels; None for others."""
    left, right = coded(a), coded(b)
    buffer = right if left is None else left
    if buffer is None:
        return None
    if left is not None and right is not None:
        if left.codes is not right.codes or a.shape != b.shape:
            return None
        found = backend.binary(op, table(backend, left), table(backend, right))
        shape = a.shape
    else:
        x, number = (b, a) if left is None else (a, b)
        if number.size != 1 or len(number.shape) > len(x.shape):
            return None
        number = backend.reshape(number, ())
        both = (number, table(backend, buffer)) if left is None else (table(backend, buffer), number)
        found, shape = backend.binary(op, *both), x.shape
    if found.dtype is not dtypes.float32:
        return None
    return backend.new(Coded(buffer.codes, flat(found)), dtypes.float32, shape)


def largest_of_windows(backend, x, *window):
    """Max-pooling, without a border, of floats that rise with their uint8 levels; None for others."""
    buffer = coded(x)
    levels = buffer and buffer.levels
    if not levels or levels.x.dtype is not dtypes.uint8 or not buffer.of_code[1] > buffer.of_code[0]:
        return None
    found = backend.pool("max", backend.reshape(levels.x, x.shape), *window)
    return backend.from_levels(found, levels.zero, levels.scale)
