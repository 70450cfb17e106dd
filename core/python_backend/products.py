"""Matrix products as dot products of lists, which CPython sums at C speed."""

from ..shapes import broadcast, size
from .buffers import Borrowed, build, listed
from .dots import dot


def matmul(backend, a, b):
    if isinstance(a.data[0], Borrowed) and b.ndim == 2:
        from .level_products import dense

        found = dense(backend, a, b, None)
        if found is not None:
            return found
    m, k = a.shape[-2:]
    n = b.shape[-1]
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    if a.shape[:-2] != lead:
        a = backend.expand(a, lead + (m, k))
    if b.shape[:-2] != lead:
        b = backend.expand(b, lead + (k, n))
    axes = tuple(range(len(lead)))
    left = listed(a)
    right = listed(backend.permute(b, axes + (len(lead) + 1, len(lead))))  # its columns are contiguous
    out = []
    for batch in range(size(lead)):
        first, second = batch * m * k, batch * k * n
        columns = [right[i : i + k] for i in range(second, second + k * n, k)] if k else [()] * n
        for i in range(m):
            row = left[first + i * k : first + (i + 1) * k]
            out += [dot(row, column) for column in columns]
    shape = lead + (m, n)
    return backend.new(build(a.dtype, out, len(out)), a.dtype, shape)
