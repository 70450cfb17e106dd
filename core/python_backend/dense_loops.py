"""The dense layer as plain loops over buffers, for interpreters without C-speed list operations (MicroPython).

The right operand, the weights, may be in flash: it is read by rows, never copied as a whole.
"""

from ..shapes import size
from .buffers import Borrowed, allocate, flat, is_narrow, run, store, wrapper


def dot(a, i, b, j, step, count):
    """The sum of a[i + p] * b[j + p * step] for p below count."""
    total = 0
    for p in range(i, i + count):
        total += a[p] * b[j]
        j += step
    return total


def product(left, row, right, start, streamed, k, n, out, at):
    """out[at …] += left[row …] (k) @ right[start …] (k, n)."""
    if streamed:  # row by row, each copied from flash separately
        for p in range(k):
            v = left[row + p]
            weights = run(right, start + p * n, n)
            for j in range(n):
                out[at + j] += v * weights[j]
    else:
        for j in range(n):
            out[at + j] += dot(left, row, right, start + j, n, k)


def right_of(b):
    """(buffer, offset of b in it, whether it must be read by rows)."""
    buffer, start, strides = b.data
    if strides is None and isinstance(buffer, Borrowed):
        return buffer, start, True
    return flat(b), 0, False


def numbers(dtype, count):
    """Zeros to accumulate products in: Python numbers, if sums may exceed the buffer's type."""
    return allocate(dtype, count) if dtype.is_float and not is_narrow(dtype) else [0] * count


def stored(out, dtype, count):
    if not isinstance(out, list):
        return out
    return store(dtype, map(wrapper(dtype), out) if dtype.is_integer else out, count)


def linear(backend, x, weight, bias):
    k, n = weight.shape
    left = flat(x)
    right, start, streamed = right_of(weight)
    rows = size(x.shape[:-1])
    out = numbers(x.dtype, rows * n)
    shifts = None if bias is None else flat(bias)
    for i in range(rows):
        if bias is not None:
            for j in range(n):
                out[i * n + j] = shifts[j]
        product(left, i * k, right, start, streamed, k, n, out, i * n)
    return backend.new(stored(out, x.dtype, rows * n), x.dtype, x.shape[:-1] + (n,))
