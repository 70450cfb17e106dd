"""The rule of matrix products."""

from ...shapes import size
from ..arithmetic import reshaped, undo_broadcast


def transposed(x):
    n = len(x.shape)
    return x.backend.permute(x, tuple(range(n - 2)) + (n - 1, n - 2))


def rows_of(x):
    """x (…, rows, columns) as one matrix."""
    n = size(x.shape[:-1])
    return reshaped(x, (n, x.shape[-1]))


def matmul(a, b, first, second):
    shapes = (a.shape, b.shape)
    b, a = b if first else None, a if second else None

    def pull(g):
        of_a = of_b = None
        if first:
            of_a = undo_broadcast(g.backend.matmul(g, transposed(b)), shapes[0])
        if second:
            if len(shapes[1]) == 2 and len(shapes[0]) > 2:  # one matrix for the whole batch: one product
                of_b = g.backend.matmul(transposed(rows_of(a)), rows_of(g))
            else:
                of_b = undo_broadcast(g.backend.matmul(transposed(a), g), shapes[1])
        return of_a, of_b

    return pull
