"""Decompositions of matrices (…, m, n)."""

from ..errors import ArgumentError
from ..functional.movement.rearranging import matrix_transpose
from ..functional.operands import astype
from .dispatch import computed, matrices, rounded
from .results import EighResult, LUResult, QRResult, SVDResult


def cholesky(x, *, upper=False):
    """L (…, n, n), lower triangular, with L @ L.mT = x; `upper`: its transpose. Only the lower triangle of x is read.
    Raises ArgumentError unless every matrix is positive definite, ShapeError unless it is square."""
    x, dtype = matrices(x, "cholesky", square=True)
    (out,) = computed("cholesky", x)
    return astype(matrix_transpose(out) if upper else out, dtype)


def eigh(x):
    """(eigenvalues (…, n) in ascending order, eigenvectors (…, n, n) as columns) of symmetric matrices, of which the
    lower triangle is read. Raises ShapeError unless they are square."""
    x, dtype = matrices(x, "eigh", square=True)
    return EighResult(rounded(computed("eigh", x), dtype))


def eigvalsh(x):
    """The eigenvalues (…, n) of `eigh`."""
    x, dtype = matrices(x, "eigvalsh", square=True)
    return astype(computed("eigvalsh", x)[0], dtype)


def lu(x):
    """(P (…, m, m), L (…, m, k), U (…, k, n)) with P @ L @ U = x: a permutation, a lower triangular matrix with ones on
    the diagonal, an upper triangular one; k is the smaller of m and n."""
    x, dtype = matrices(x, "lu")
    return LUResult(rounded(computed("lu", x, x.shape[-1]), dtype))


def qr(x, *, mode="reduced"):
    """(Q, R) with Q @ R = x, Q orthonormal, R upper triangular. mode: "reduced", Q (…, m, k) and R (…, k, n) for the
    smaller k of m and n; "complete", Q (…, m, m) and R (…, m, n). Raises ArgumentError for another mode."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError("qr: mode is 'reduced' or 'complete', found {!r}".format(mode))
    x, dtype = matrices(x, "qr")
    return QRResult(rounded(computed("qr", x, x.shape[-1], mode == "complete"), dtype))


def svd(x, *, full_matrices=True):
    """(U, S, Vh) with U * S @ Vh = x; S (…, k) are the singular values in descending order, for the smaller k of m and
    n. U is (…, m, m) and Vh (…, n, n), or (…, m, k) and (…, k, n) unless `full_matrices`."""
    x, dtype = matrices(x, "svd")
    return SVDResult(rounded(computed("svd", x, x.shape[-1], bool(full_matrices)), dtype))


def svdvals(x):
    """The singular values (…, k) in descending order."""
    x, dtype = matrices(x, "svdvals")
    return astype(computed("svdvals", x, x.shape[-1])[0], dtype)
