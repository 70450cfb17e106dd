"""Systems of equations, inverses, ranks and powers of matrices."""

from ..errors import ArgumentError, ShapeError
from ..functional.creation.fills import eye
from ..functional.creation.inspection import finfo
from ..functional.linear_algebra.products import matmul
from ..functional.movement.rearranging import broadcast_to, matrix_transpose
from ..functional.operands import alias, astype, like, tensor
from ..functional.promotion import together, widened
from ..functional.reshaping import reshape
from ..shapes import broadcast
from .decompositions import svd, svdvals
from .dispatch import computed, matrices, rounded
from .results import LstsqResult, SlogdetResult


def inv(x):
    """The inverses of the matrices x (…, n, n). Raises ArgumentError for a singular one."""
    x, dtype = matrices(x, "inv", square=True)
    return astype(computed("inv", x)[0], dtype)


def solve(x1, x2):
    """X with x1 @ X = x2, for x1 (…, n, n) and x2 (…, n, k), or (n,) for a single right side; the axes in front
    broadcast. Raises ArgumentError for a singular matrix, ShapeError if the sizes differ."""
    a, b = together(x1, x2)
    a, dtype = matrices(a, "solve", square=True)
    b = widened(b)[0]
    single = b.ndim == 1
    if single:
        b = reshape(b, b.shape + (1,))
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError("solve: {} equations of {} and right sides {}".format(a.shape[-1], a.shape, b.shape))
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    a, b = broadcast_to(a, lead + a.shape[-2:]), broadcast_to(b, lead + b.shape[-2:])
    out = astype(computed("solve", a, b, b.shape[-1])[0], dtype)
    return reshape(out, out.shape[:-1]) if single else out


def slogdet(x):
    """(sign, logabsdet), each (…): the determinants of x (…, n, n) are sign * exp(logabsdet)."""
    x, dtype = matrices(x, "slogdet", square=True)
    return SlogdetResult(rounded(computed("slogdet", x), dtype))


def _bound(x, values, rtol):
    """The singular value (…, 1) up to which the others count as zero."""
    backend = values.backend
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    rtol = like(rtol, values)
    if rtol.ndim:
        rtol = reshape(rtol, rtol.shape + (1,))
    return backend.binary("mul", rtol, backend.reduce("max", values, (values.ndim - 1,), True))


def matrix_rank(x, *, rtol=None):
    """int64 (…): how many singular values of each matrix are larger than `rtol` times the largest; by default the
    larger size times the dtype's epsilon."""
    x, _ = matrices(x, "matrix_rank")
    values = svdvals(x)
    if not values.shape[-1]:
        return values.sum(axis=-1).astype("int64")
    large = values.backend.binary("gt", values, _bound(x, values, rtol))
    return large.astype("int64").sum(axis=-1)


def pinv(x, *, rtol=None):
    """The pseudo-inverses (…, n, m) of x (…, m, n). rtol: see `matrix_rank`."""
    x, dtype = matrices(x, "pinv")
    if hasattr(x.backend, "from_inner"):  # its gradient is that of the whole: equal singular values have none
        return astype(computed("pinv", x, rtol)[0], dtype)
    u, values, vh = svd(x, full_matrices=False)
    backend = x.backend
    if values.shape[-1]:
        large = backend.binary("gt", values, _bound(x, values, rtol))
        one, zero = backend.full((), 1, x.dtype), backend.full((), 0, x.dtype)
        values = backend.where(large, backend.binary("div", one, backend.where(large, values, one)), zero)
    scaled = backend.binary("mul", matrix_transpose(vh), reshape(values, values.shape[:-1] + (1, values.shape[-1])))
    return astype(matmul(scaled, matrix_transpose(u)), dtype)


def lstsq(x1, x2, *, rtol=None):
    """The X that makes x1 @ X closest to x2, the shortest of several: (solution (n, k), residuals (k,), rank,
    singular_values) for x1 (m, n) and x2 (m, k), or (m,) for a single right side. rtol: see `matrix_rank`.

    residuals: the sums of squared differences. Raises ShapeError for batches, and if the sizes differ.
    """
    a, b = together(x1, x2)
    a, dtype = matrices(a, "lstsq")
    b = widened(b)[0]
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError("lstsq takes (m, n) and (m, k) or (m,), found shapes {} and {}".format(a.shape, b.shape))
    solution = matmul(pinv(a, rtol=rtol), b)
    gap = a.backend.binary("sub", matmul(a, solution), b)
    residuals = a.backend.reduce("sum", a.backend.binary("mul", gap, gap), (0,), False)
    solution, residuals, values = rounded((solution, residuals, svdvals(a)), dtype)
    return LstsqResult((solution, residuals, matrix_rank(a, rtol=rtol), values))


def matrix_power(x, n):
    """x (…, m, m) multiplied by itself n times; a negative n inverts it first. Raises ArgumentError if n is not an
    integer, or if a matrix to invert is singular."""
    x = tensor(x)
    if not isinstance(n, int):
        raise ArgumentError("matrix_power: n is an int, found {!r}".format(n))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("matrix_power takes square matrices (..., n, n), found shape {}".format(x.shape))
    if n < 0:
        x, n = inv(x), -n
    if not n:
        return alias(broadcast_to(eye(x.shape[-1], dtype=x.dtype, backend=x.backend), x.shape))
    out = None
    while n:  # by squaring
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return alias(out)
