"""Typed buffers: storing elements, reading them in row-major order, and writing results.

Floats narrower than 32 bits live in array('f') rounded to their dtype, integers narrower than 8 bits in array('b') or
array('B'), bools in array('B') as 0 and 1, strings in a list.
"""

from array import array

from ..errors import refuse
from ..shapes import size

MICRO = not hasattr(memoryview, "cast")  # MicroPython: no stepped slices, no operator module, costly calls
WIDTH = {"d": 8, "f": 4, "q": 8, "Q": 8, "i": 4, "I": 4, "h": 2, "H": 2, "b": 1, "B": 1}


def code_of(dtype):
    """The array type code that holds `dtype`; None for string."""
    if dtype.kind == "float":
        return "d" if dtype.bits == 64 else "f"
    if dtype.bits < 8:
        return None if dtype.kind == "string" else "b" if dtype.kind == "int" else "B"
    return dtype.code


def is_narrow(dtype):
    """Whether values must be rounded or wrapped to `dtype` before its buffer takes them."""
    return dtype.bits < 32 and (dtype.is_float or 0 < dtype.bits < 8)


def allocate(dtype, count):
    """A buffer of `count` zeros (empty strings)."""
    code = code_of(dtype)
    return [""] * count if code is None else array(code, bytes(count * WIDTH[code]))


def wrapper(dtype):
    """A function that wraps an integer to the range of `dtype`."""
    mask = (1 << dtype.bits) - 1
    if dtype.kind != "int":
        return lambda v: v & mask
    half = 1 << (dtype.bits - 1)
    return lambda v: ((v + half) & mask) - half


def fit(dtype):
    """A function from any number to a value that the buffer of a narrow `dtype` can hold."""
    if dtype.is_float:
        from ..dtypes.narrow import rounder

        return rounder(dtype)
    return wrapper(dtype)


def store(dtype, values, count):
    """A buffer of `count` values from an iterable. Raises OverflowError if an integer does not fit."""
    code = code_of(dtype)
    if code is None:
        return list(values)
    if is_narrow(dtype):
        values = map(fit(dtype), values)
    if not MICRO:
        return array(code, values if isinstance(values, list) else list(values))
    out = array(code, bytes(count * WIDTH[code]))
    i = 0
    for v in values:
        out[i] = v
        i += 1
    return out


def build(dtype, values, count):
    """A buffer of `count` values from a list or tuple; integers wrap, and for bool any nonzero value is true."""
    if dtype.is_bool:
        return store(dtype, [1 if v else 0 for v in values], count)
    if not dtype.is_integer:
        return store(dtype, values, count)
    try:
        return store(dtype, values, count)
    except (OverflowError, TypeError):
        return store(dtype, map(wrapper(dtype), map(int, values)), count)


class Borrowed:
    """Typed elements inside bytes that stay where they are (flash, a file): MicroPython cannot cast a memoryview."""

    def __init__(self, data, code):
        self.data = memoryview(data)
        self.code = code

    def __len__(self):
        return len(self.data) // WIDTH[self.code]

    def run(self, start, count):
        """A copy of `count` elements."""
        width = WIDTH[self.code]
        return array(self.code, bytes(self.data[start * width : (start + count) * width]))

    def __getitem__(self, i):
        return self.run(i, 1)[0]

    def __iter__(self):
        for start in range(0, len(self), 64):
            yield from self.run(start, min(64, len(self) - start))


def borrow(data, dtype, shape):
    """A buffer over little-endian bytes, not copied where the dtype allows. Raises FormatError on a wrong length."""
    count = size(shape)
    view = memoryview(data) if MICRO else memoryview(data).cast("B")
    if len(view) != dtype.nbytes(count):
        refuse("bytes", dtype, tuple(shape), dtype.nbytes(count), len(view))
    if dtype.bits <= 16 and (dtype.is_float or dtype.bits < 8):
        from ..dtypes.narrow import unpack

        code = code_of(dtype)
        return array(code, unpack(view, dtype, count))
    code = code_of(dtype)
    if not MICRO:
        return view.cast(code)
    return view if code == "B" else Borrowed(data, code)


def run(buffer, start, count):
    """`count` elements from `start` on, as an array or list that can be joined or assigned to a slice."""
    if isinstance(buffer, Borrowed):
        return buffer.run(start, count)
    part = buffer[start : start + count]
    if isinstance(part, memoryview):
        return array("B" if MICRO else part.format, bytes(part))
    return part


def flat(x):
    """The elements of x in row-major order: its own buffer if they already are, else a copy."""
    buffer, offset, strides = x.data
    count = x.size
    if strides is None or not count:
        if not offset and len(buffer) == count and not isinstance(buffer, Borrowed):
            return buffer
        return run(buffer, offset, count)
    return x.backend.gathered(x, buffer, offset, strides, count)


def listed(x):
    """x's elements in the form the interpreter reads fastest: a list on CPython, a buffer on MicroPython."""
    values = flat(x)
    return values if MICRO or isinstance(values, list) else values.tolist()
