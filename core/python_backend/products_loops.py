"""Matrix products as plain loops over buffers, for interpreters without C-speed list operations (MicroPython)."""

from ..shapes import broadcast, size
from .buffers import flat
from .dense_loops import numbers, product, right_of, stored


def matmul(backend, a, b):
    m, k = a.shape[-2:]
    n = b.shape[-1]
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    if a.shape[:-2] != lead:
        a = backend.expand(a, lead + (m, k))
    if b.shape[:-2] != lead:
        b = backend.expand(b, lead + (k, n))
    left = flat(a)
    right, start, streamed = right_of(b)
    count = size(lead) * m * n
    out = numbers(b.dtype, count)
    for i in range(size(lead) * m):
        product(left, i * k, right, start + i // m * k * n, streamed, k, n, out, i * n)
    return backend.new(stored(out, b.dtype, count), b.dtype, lead + (m, n))
