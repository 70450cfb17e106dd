"""Determinants of batches of square matrices."""

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError
from ..movement.rearranging import broadcast_to, narrow, reshape
from ..operands import astype, floating


#: function; ONNX Det
def det(x):
    """The determinant of each matrix of x (…, n, n) -> (…), by Gaussian elimination with partial pivoting.

    Raises ShapeError unless the last two axes have the same length.
    """
    x = floating(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("det needs square matrices (…, n, n), found shape {}".format(x.shape))
    fast = operation(x.backend, "det")
    if fast:
        return fast(x)
    lead, n = x.shape[:-2], x.shape[-1]
    backend = x.backend
    wide = x.dtype if x.dtype.bits >= 32 else dtypes.float32
    rest = reshape(astype(x, wide), (x.size // (n * n) if n else 1, n, n))
    out = backend.full((rest.shape[0], 1), 1, wide)
    one = backend.full((), 1, wide)
    for m in range(n, 0, -1):
        # rest (batch, m, m): the pivot row eliminates the first column of the others.
        column = reshape(narrow(rest, 2, 0, 1), (rest.shape[0], m))
        best = backend.argreduce("max", backend.unary("abs", column), 1, True)
        row = backend.gather(rest, broadcast_to(reshape(best, (rest.shape[0], 1, 1)), (rest.shape[0], 1, m)), 1)
        pivot = reshape(narrow(row, 2, 0, 1), (rest.shape[0], 1))
        out = backend.binary("mul", out, pivot)
        if m == 1:
            break
        # Swapping the pivot row with the first flips the sign.
        moved = backend.binary("ne", best, backend.full((), 0, best.dtype))
        out = backend.where(moved, backend.unary("neg", out), out)
        place = backend.reshape(backend.arange(0, 1, m, best.dtype), (1, m, 1))
        taken = backend.binary("eq", place, reshape(best, (rest.shape[0], 1, 1)))
        rest = narrow(backend.where(taken, narrow(rest, 1, 0, 1), rest), 1, 1, m - 1)
        divisor = backend.where(backend.binary("eq", pivot, backend.full((), 0, wide)), one, pivot)
        factor = backend.binary("div", narrow(rest, 2, 0, 1), reshape(divisor, (rest.shape[0], 1, 1)))
        rest = backend.binary("sub", narrow(rest, 2, 1, m - 1), backend.binary("mul", factor, narrow(row, 2, 1, m - 1)))
    return astype(reshape(out, lead), x.dtype)
