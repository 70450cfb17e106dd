"""Diagonals of matrices, and the cross product."""

from ... import dtypes
from ...errors import ShapeError
from ...shapes import axis_of
from ..movement.rearranging import narrow, pad, roll
from ..operands import alias, tensor
from ..overriding import composite
from ..promotion import paired
from ..reductions.over_axes import sum
from ..reshaping import reshape


def diagonals(x, k):
    """The diagonals k of the matrices x (…, m, n) -> (…, length)."""
    if x.ndim < 2:
        raise ShapeError("a matrix needs at least 2 axes, found shape {}".format(x.shape))
    lead, (m, n) = x.shape[:-2], x.shape[-2:]
    length = max(0, min(m + min(k, 0), n - max(k, 0)))
    start = (k if k >= 0 else -k * n) if length else 0
    flat = reshape(x, lead + (m * n,))
    if not length:
        return narrow(flat, -1, 0, 0)
    zeros, ones = (0,) * len(lead), (1,) * len(lead)
    return x.backend.slice(flat, zeros + (start,), lead + (length,), ones + (n + 1,))


#: method; NumPy diag; Burn diag; k: int
@composite
def diag(x, k=0):
    """Diagonal k of a matrix (m, n); of a vector (n,), the square matrix with the vector on its diagonal k. Raises
    ShapeError for more axes: `linalg.diagonal` takes batches."""
    x = alias(tensor(x))
    if x.ndim == 2:
        return diagonals(x, k)
    if x.ndim != 1:
        raise ShapeError(
            "diag takes a vector or a matrix, found shape {}; linalg.diagonal takes batches".format(x.shape)
        )
    backend, n = x.backend, x.size
    place = backend.arange(0, 1, n, dtypes.int64)
    on = backend.binary("eq", reshape(place, (n, 1)), reshape(place, (1, n)))
    square = backend.where(on, reshape(x, (n, 1)), backend.full((), 0, x.dtype))
    below, above = max(-k, 0), max(k, 0)
    return pad(square, ((below, above), (above, below))) if k else square


#: method; NumPy trace; Burn trace; k: int
@composite
def trace(x, k=0, *, dtype=None):
    """The sum of diagonal k of a matrix (m, n). Raises ShapeError for another number of axes: `linalg.trace` takes
    batches."""
    x = tensor(x)
    if x.ndim != 2:
        raise ShapeError("trace takes a matrix, found shape {}; linalg.trace takes batches".format(x.shape))
    return sum(diagonals(x, k), dtype=dtype)


#: method; array API; Burn cross
@composite
def cross(x1, x2, *, axis=-1):
    """The cross product of vectors of 3 elements along axis; the other axes broadcast. Raises ShapeError for another
    length."""
    a, b = paired(x1, x2)
    for x in (a, b):
        if x.shape[axis_of(axis, x.ndim)] != 3:
            raise ShapeError("cross takes vectors of 3 elements along axis {}, found shape {}".format(axis, x.shape))
    binary = a.backend.binary
    first = binary("mul", roll(a, -1, axis), roll(b, -2, axis))
    return binary("sub", first, binary("mul", roll(a, -2, axis), roll(b, -1, axis)))
