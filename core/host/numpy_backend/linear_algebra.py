"""What emberlet.linalg asks for, by NumPy's LAPACK; the names and results are those of core/linalg/textbook/."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError
from ...tensor import Tensor
from .storage import Array

if TYPE_CHECKING:
    from .backend import NumpyBackend

Results = tuple[Any, ...]


def _cholesky(a: Array) -> Results:
    return (np.linalg.cholesky(a),)


def _eigh(a: Array) -> Results:
    return tuple(np.linalg.eigh(a))


def _eigvalsh(a: Array) -> Results:
    return (np.linalg.eigvalsh(a),)


def _inv(a: Array) -> Results:
    return (np.linalg.inv(a),)


def _solve(a: Array, b: Array, columns: int) -> Results:
    return (np.linalg.solve(a, b),)


def _slogdet(a: Array) -> Results:
    return tuple(np.linalg.slogdet(a))


def _qr(a: Array, columns: int, complete: bool) -> Results:
    return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))


def _svd(a: Array, columns: int, full: bool) -> Results:
    return tuple(np.linalg.svd(a, full_matrices=full))


def _svdvals(a: Array, columns: int) -> Results:
    return (np.linalg.svd(a, compute_uv=False),)


def _lu(a: Array, columns: int) -> Results:
    """By columns, all matrices of the batch at once."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    both = a.reshape((-1, m, n)).copy()
    batch = np.arange(len(both))
    order = np.tile(np.arange(m), (len(both), 1))
    k = min(m, n)
    for j in range(k):
        best = j + np.abs(both[:, j:, j]).argmax(1)
        for rows in (both, order):
            rows[batch, j], rows[batch, best] = rows[batch, best].copy(), rows[batch, j].copy()
        pivot = both[:, j, j, None]
        factor = np.divide(both[:, j + 1 :, j], pivot, out=both[:, j + 1 :, j].copy(), where=pivot != 0)
        both[:, j + 1 :, j] = factor
        both[:, j + 1 :, j + 1 :] -= factor[:, :, None] * both[:, None, j, j + 1 :]
    p = (order[:, None, :] == np.arange(m)[:, None]).astype(a.dtype)
    lower = np.tril(both[:, :, :k], -1) + np.eye(m, k, dtype=a.dtype)
    return tuple(part.reshape(lead + part.shape[1:]) for part in (p, lower, np.triu(both[:, :k])))


_FUNCTIONS: dict[str, Callable[..., Results]] = {
    "cholesky": _cholesky, "eigh": _eigh, "eigvalsh": _eigvalsh, "inv": _inv, "lu": _lu, "qr": _qr,
    "slogdet": _slogdet, "solve": _solve, "svd": _svd, "svdvals": _svdvals,
}  # fmt: skip


def linear_algebra(backend: NumpyBackend, what: str, *operands: Any) -> tuple[Tensor, ...]:
    """The results of `what` for the matrices of the first operand. Raises ArgumentError where there are none."""
    arrays = [x.data if isinstance(x, Tensor) else x for x in operands]
    try:
        with np.errstate(all="ignore"):
            found = _FUNCTIONS[what](*arrays)
    except np.linalg.LinAlgError as error:
        singular = "singular" in str(error).lower()
        said = "the matrix is singular; linalg.pinv and linalg.lstsq take it" if singular else f"linalg.{what}: {error}"
        if "positive definite" in str(error):
            said = "the matrix is not positive definite"
        raise ArgumentError(said) from None
    return tuple(backend._tensor(np.asarray(part), operands[0].dtype) for part in found)
