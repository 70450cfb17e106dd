"""Strided views: the offsets of their elements, and copying them to row-major order."""

from array import array

from ..shapes import size
from ..shapes import strides as row_major
from .buffers import MICRO, Borrowed, allocate, code_of, run
from .sequences import join

LARGE = 1 << 20  # shorter lists of offsets are not checked
MOST = 1 << 48  # offsets; the bytes of a longer list exceed any address space


def offsets(shape, strides, start):
    """The offset of each element of a strided block, in row-major order.

    Raises MemoryError where the machine cannot hold the list.
    """
    count = 1 if MICRO else size(shape)
    if count > LARGE:
        if count > MOST:
            raise MemoryError("{} elements do not fit into memory".format(count))
        bytes(40 * count)  # the memory of the list at once: MemoryError comes before the machine has none left
    out = [start]
    for i in range(len(shape)):
        out = [o + j * strides[i] for o in out for j in range(shape[i])]
    return out


def merged(shape, *strides):
    """Adjacent axes merged where all of `strides` allow it: [(length, stride, stride, …), …]."""
    out = []
    for i in range(len(shape)):
        if shape[i] == 1:
            continue
        axis = (shape[i],) + tuple([s[i] for s in strides])
        if out:
            last = out[-1]
            whole = True
            for k in range(1, len(axis)):
                whole = whole and last[k] == axis[k] * axis[0]
            if whole:
                out[-1] = (last[0] * axis[0],) + axis[1:]
                continue
        out.append(axis)
    return out


def strides_of(x):
    """x's strides in elements."""
    return row_major(x.shape) if x.data[2] is None else x.data[2]


def gathered(b, x, buffer, offset, strides, count):
    """A buffer of the elements of the strided tensor x in row-major order. Found by the backend b."""
    axes = merged(x.shape, strides)
    if not axes:
        return run(buffer, offset, 1)
    length, step = axes[-1]
    starts = offsets([a[0] for a in axes[:-1]], [a[1] for a in axes[:-1]], offset)
    if isinstance(buffer, Borrowed):
        buffer = buffer.run(0, len(buffer))
    if step == 1:
        return join(x.dtype, [buffer[o : o + length] for o in starts])
    if not MICRO:
        out = []
        for o in starts:
            if step:
                stop = o + length * step
                out += buffer[o : None if stop < 0 else stop : step]
            else:
                out += [buffer[o]] * length
        code = code_of(x.dtype)
        return out if code is None else array(code, out)
    out = allocate(x.dtype, count)
    i = 0
    for o in starts:
        for _ in range(length):
            out[i] = buffer[o]
            o += step
            i += 1
    return out
