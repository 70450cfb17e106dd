"""Matrix products as plain loops over buffers, for interpreters without C-speed list operations (MicroPython).

The right operand, where the weights are, may lie in flash: it is read in rows, never copied as a whole.
"""

from ..shapes import broadcast, size
from .buffers import Borrowed, allocate, flat, is_narrow, run, store, wrapper


def dot(a, i, b, j, step, count):
    """The sum of a[i + p] * b[j + p * step] for p below count."""
    total = 0
    for p in range(i, i + count):
        total += a[p] * b[j]
        j += step
    return total


def matmul(backend, a, b):
    m, k = a.shape[-2:]
    n = b.shape[-1]
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    if a.shape[:-2] != lead:
        a = backend.expand(a, lead + (m, k))
    if b.shape[:-2] != lead:
        b = backend.expand(b, lead + (k, n))
    left = flat(a)
    buffer, start, strides = b.data
    streamed = isinstance(buffer, Borrowed) and strides is None
    right = buffer if streamed else flat(b)
    if not streamed:
        start = 0
    count = size(lead) * m * n
    # Where a product may exceed the buffer's type, Python's own numbers hold it until it is wrapped.
    direct = b.dtype.is_float and not is_narrow(b.dtype)
    out = allocate(b.dtype, count) if direct else [0] * count
    at = 0
    for batch in range(size(lead)):
        base = start + batch * k * n
        for i in range(m):
            row = (batch * m + i) * k
            if streamed:
                for p in range(k):
                    v = left[row + p]
                    weights = run(right, base + p * n, n)
                    for j in range(n):
                        out[at + j] += v * weights[j]
            else:
                for j in range(n):
                    out[at + j] = dot(left, row, right, base + j, n, k)
            at += n
    if not direct:
        if b.dtype.is_integer:
            out = map(wrapper(b.dtype), out)
        out = store(b.dtype, out, count)
    return backend.new(out, b.dtype, lead + (m, n))
