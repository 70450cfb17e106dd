"""Determinants of batches of square matrices."""

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError
from ..movement.rearranging import broadcast_to, narrow, reshape
from ..operands import astype, floating


#: function; ONNX Det
def det(x):
    """The determinant of each matrix of x (…, n, n) -> (…), by elimination with the largest pivot of each column.

    Raises ShapeError unless the last two axes have the same length.
    """
    x = floating(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("det wants square matrices (…, n, n), found shape {}".format(x.shape))
    fast = operation(x.backend, "det")
    if fast:
        return fast(x)
    lead, n = x.shape[:-2], x.shape[-1]
    k = x.backend
    wide = x.dtype if x.dtype.bits >= 32 else dtypes.float32
    rest = reshape(astype(x, wide), (x.size // (n * n) if n else 1, n, n))
    out = k.full((rest.shape[0], 1), 1, wide)
    one = k.full((), 1, wide)
    for m in range(n, 0, -1):
        # rest (batch, m, m): its best row divides the others, whose first column vanishes.
        column = reshape(narrow(rest, 2, 0, 1), (rest.shape[0], m))
        best = k.argreduce("max", k.unary("abs", column), 1, True)
        row = k.gather(rest, broadcast_to(reshape(best, (rest.shape[0], 1, 1)), (rest.shape[0], 1, m)), 1)
        pivot = reshape(narrow(row, 2, 0, 1), (rest.shape[0], 1))
        out = k.binary("mul", out, pivot)
        if m == 1:
            break
        # The row changes places with the first one, which turns the sign.
        moved = k.binary("ne", best, k.full((), 0, best.dtype))
        out = k.where(moved, k.unary("neg", out), out)
        place = k.reshape(k.arange(0, 1, m, best.dtype), (1, m, 1))
        taken = k.binary("eq", place, reshape(best, (rest.shape[0], 1, 1)))
        rest = narrow(k.where(taken, narrow(rest, 1, 0, 1), rest), 1, 1, m - 1)
        divisor = k.where(k.binary("eq", pivot, k.full((), 0, wide)), one, pivot)
        factor = k.binary("div", narrow(rest, 2, 0, 1), reshape(divisor, (rest.shape[0], 1, 1)))
        rest = k.binary("sub", narrow(rest, 2, 1, m - 1), k.binary("mul", factor, narrow(row, 2, 1, m - 1)))
    return astype(reshape(out, lead), x.dtype)
