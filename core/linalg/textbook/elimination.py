"""Gaussian elimination: LU, solving, inverse, determinant; and Cholesky."""

from math import log, sqrt

from ...errors import ArgumentError
from . import matrix


def _eliminated(a):
    """(L and U in one list of rows, the order of a's rows, the sign of that order), with partial pivoting."""
    a = [list(row) for row in a]
    m, n = len(a), len(a[0]) if a else 0
    order, sign = list(range(m)), 1.0
    for k in range(min(m, n)):
        best = k
        for i in range(k + 1, m):
            if abs(a[i][k]) > abs(a[best][k]):
                best = i
        if best != k:
            a[k], a[best] = a[best], a[k]
            order[k], order[best] = order[best], order[k]
            sign = -sign
        pivot = a[k]
        if pivot[k] == 0:
            continue
        for i in range(k + 1, m):
            row = a[i]
            factor = row[k] / pivot[k]
            row[k] = factor
            if factor:
                for j in range(k + 1, n):
                    row[j] -= factor * pivot[j]
    return a, order, sign


def lu(a, columns):
    """(P, L, U) with P @ L @ U = a (m, columns)."""
    m, k = len(a), min(len(a), columns)
    both, order, _ = _eliminated(a)
    p = [[1.0 if order[c] == r else 0.0 for c in range(m)] for r in range(m)]
    lower = [[both[r][c] if c < r else 1.0 if c == r else 0.0 for c in range(k)] for r in range(m)]
    upper = [[both[r][c] if c >= r else 0.0 for c in range(columns)] for r in range(k)]
    return matrix(p, m), matrix(lower, k), matrix(upper, columns)


def slogdet(a):
    """(sign, log |det|) of a."""
    both, _, sign = _eliminated(a)
    total = 0.0
    for k in range(len(a)):
        pivot = both[k][k]
        if pivot == 0:
            return 0.0, float("-inf")
        if pivot < 0:
            sign = -sign
        total += log(abs(pivot))
    return sign, total


def solve(a, b, columns):
    """(x,) with a @ x = b (n, columns). Raises ArgumentError if a is singular."""
    both, order, _ = _eliminated(a)
    n = len(a)
    x = [list(b[i]) for i in order]
    for i in range(n):
        for k in range(i):
            factor = both[i][k]
            if factor:
                for j in range(columns):
                    x[i][j] -= factor * x[k][j]
    for i in range(n - 1, -1, -1):
        if both[i][i] == 0:
            raise ArgumentError("the matrix is singular; linalg.pinv and linalg.lstsq take it")
        for k in range(i + 1, n):
            factor = both[i][k]
            if factor:
                for j in range(columns):
                    x[i][j] -= factor * x[k][j]
        for j in range(columns):
            x[i][j] /= both[i][i]
    return (matrix(x, columns),)


def inv(a):
    """(the inverse of a,). Raises ArgumentError if a is singular."""
    n = len(a)
    return solve(a, [[1.0 if r == c else 0.0 for c in range(n)] for r in range(n)], n)


def cholesky(a):
    """(L,) with L @ L.T = a, from a's lower triangle. Raises ArgumentError unless a is positive definite."""
    n = len(a)
    out = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            total = a[i][j]
            for k in range(j):
                total -= out[i][k] * out[j][k]
            if i != j:
                out[i][j] = total / out[j][j]
            elif total > 0:
                out[i][i] = sqrt(total)
            else:
                raise ArgumentError("the matrix is not positive definite")
    return (matrix(out, n),)
