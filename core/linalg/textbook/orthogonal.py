"""Orthogonal decompositions: QR by Householder reflections, eigenvalues and singular values by Jacobi rotations."""

from math import sqrt

from . import matrix

SWEEPS = 60  # more than any matrix needs: convergence is quadratic


def _precision():
    """The relative distance of two floats: 2 ** -52, or 2 ** -23 where floats have 32 bits."""
    eps = 1.0
    while 1.0 + eps / 2 > 1.0:
        eps /= 2
    return eps


def _dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def _transposed(rows, columns):
    return [[row[c] for row in rows] for c in range(columns)]


def qr(a, columns, complete):
    """(Q, R) with Q @ R = a (m, columns); Q is (m, k) for k = min(m, columns), or (m, m) if `complete`. The signs are
    LAPACK's."""
    m = len(a)
    k = min(m, columns)
    r = [list(row) for row in a]
    reflections = []
    for j in range(k):
        v = [r[i][j] for i in range(j, m)]
        rest = _dot(v[1:], v[1:])
        if rest:
            length = sqrt(v[0] * v[0] + rest)
            v[0] += length if v[0] >= 0 else -length
            _reflect(r, v, j, columns)
        else:
            v = None
        reflections.append(v)
    wide = m if complete else k
    q = [[1.0 if row == c else 0.0 for c in range(wide)] for row in range(m)]
    for j in range(k - 1, -1, -1):
        if reflections[j] is not None:
            _reflect(q, reflections[j], j, wide)
    upper = [[r[i][c] if c >= i else 0.0 for c in range(columns)] for i in range(wide)]
    return matrix(q, wide), matrix(upper, columns)


def _reflect(rows, v, first, columns):
    """Apply the reflection along v to the rows from `first` on."""
    scale = 2.0 / _dot(v, v)
    for c in range(columns):
        total = 0.0
        for i in range(len(v)):
            total += v[i] * rows[first + i][c]
        total *= scale
        if total:
            for i in range(len(v)):
                rows[first + i][c] -= total * v[i]


def _rotation(p, q, off):
    """(cosine, sine) of the rotation that makes the symmetric [[p, off], [off, q]] diagonal."""
    ratio = (q - p) / (2.0 * off)
    t = (1.0 if ratio >= 0 else -1.0) / (abs(ratio) + sqrt(1.0 + ratio * ratio))
    c = 1.0 / sqrt(1.0 + t * t)
    return c, t * c


def eigh(a):
    """(eigenvalues in ascending order, eigenvectors as columns) of the symmetric a, of which the lower triangle is
    read."""
    n = len(a)
    a = [[a[r][c] if c <= r else a[c][r] for c in range(n)] for r in range(n)]
    vectors = [[1.0 if r == c else 0.0 for c in range(n)] for r in range(n)]  # a row is an eigenvector
    limit = 0.0
    for row in a:
        for v in row:
            limit = max(limit, abs(v))
    limit *= _precision() / 4
    for _ in range(SWEEPS):
        done = True
        for p in range(n - 1):
            for q in range(p + 1, n):
                off = a[p][q]
                if abs(off) <= limit:
                    continue
                done = False
                c, s = _rotation(a[p][p], a[q][q], off)
                for i in range(n):
                    a[i][p], a[i][q] = c * a[i][p] - s * a[i][q], s * a[i][p] + c * a[i][q]
                for rows in (a, vectors):
                    x, y = rows[p], rows[q]
                    rows[p] = [c * x[i] - s * y[i] for i in range(n)]
                    rows[q] = [s * x[i] + c * y[i] for i in range(n)]
                a[p][q] = a[q][p] = 0.0
        if done:
            break
    order = sorted(range(n), key=lambda i: a[i][i])
    return [a[i][i] for i in order], matrix(_transposed([vectors[i] for i in order], n), n)


def eigvalsh(a):
    """(eigenvalues in ascending order,) of the symmetric a."""
    return (eigh(a)[0],)


def svd(a, columns, full):
    """(U, singular values in descending order, V.T) of a (m, columns). full: U is (m, m) and V.T (columns, columns)."""
    m = len(a)
    if m < columns:
        u, values, vt = svd(matrix(_transposed(a, columns), m), m, full)
        return matrix(_transposed(vt, m), m), values, matrix(_transposed(u, u.columns), columns)
    work = _transposed(a, columns)  # a row is a column of a, and becomes one of U times its singular value
    right = [[1.0 if r == c else 0.0 for c in range(columns)] for r in range(columns)]
    limit = _precision()
    nothing = 0.0  # the squared length up to which a column is rounding error
    for row in work:
        nothing = max(nothing, _dot(row, row) * limit * limit / 16)
    for _ in range(SWEEPS):
        done = True
        for p in range(columns - 1):
            for q in range(p + 1, columns):
                x, y = work[p], work[q]
                xx, yy, off = _dot(x, x), _dot(y, y), _dot(x, y)
                if xx <= nothing or yy <= nothing or abs(off) <= limit * sqrt(xx) * sqrt(yy):
                    continue
                done = False
                c, s = _rotation(xx, yy, off)
                for rows in (work, right):
                    x, y = rows[p], rows[q]
                    rows[p] = [c * x[i] - s * y[i] for i in range(len(x))]
                    rows[q] = [s * x[i] + c * y[i] for i in range(len(x))]
        if done:
            break
    lengths = [sqrt(_dot(row, row)) for row in work]
    order = sorted(range(columns), key=lambda i: -lengths[i])
    values = [lengths[i] for i in order]
    smallest = values[0] * limit * m if values else 0.0
    left = [[x / lengths[i] for x in work[i]] for i in order if lengths[i] > smallest]
    _complete(left, m, m if full else columns)
    wide = len(left)
    return matrix(_transposed(left, m), wide), values, matrix([right[i] for i in order], columns)


def _complete(vectors, m, count):
    """Add orthonormal vectors of m numbers to `vectors` until there are `count`."""
    while len(vectors) < count:
        best = None
        for i in range(m):
            v = [1.0 if j == i else 0.0 for j in range(m)]
            for _ in range(2):  # the second time for what rounding left over
                for u in vectors:
                    along = _dot(u, v)
                    v = [v[j] - along * u[j] for j in range(m)]
            length = sqrt(_dot(v, v))
            if best is None or length > best[0]:
                best = (length, v)
        vectors.append([x / best[0] for x in best[1]])


def svdvals(a, columns):
    """(singular values in descending order,) of a (m, columns)."""
    return (svd(a, columns, False)[1],)
