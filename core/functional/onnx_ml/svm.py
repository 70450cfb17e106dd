"""Support vector machines (ai.onnx.ml, after libsvm): kernels, one-against-one votes, probabilities."""

import math

from ...errors import ArgumentError, ShapeError
from ..linear_algebra.products import matmul
from ..operands import floating
from ..overriding import composite


#: function; ai.onnx.ml SVMClassifier
@composite
def svm_kernel(x, vectors, kind="linear", gamma=0.0, coef0=0.0, degree=0):
    """(rows, n): the kernel of each row of x (rows, features) with each of vectors (n, features).

    kind: "linear" x·v, "poly" (gamma x·v + coef0)^degree, "sigmoid" tanh(gamma x·v + coef0), "rbf" exp(-gamma |x-v|²).
    Raises ShapeError unless both have as many features.
    """
    if kind not in ("linear", "poly", "rbf", "sigmoid"):
        raise ArgumentError("svm_kernel: kind is 'linear', 'poly', 'rbf' or 'sigmoid', found {!r}".format(kind))
    x = floating(x)
    if x.ndim != 2 or len(vectors.shape) != 2 or x.shape[1] != vectors.shape[1]:
        raise ShapeError("svm_kernel: {} and vectors {} do not match".format(x.shape, vectors.shape))
    backend = x.backend
    if kind == "rbf":
        rows, n, features = x.shape[0], vectors.shape[0], x.shape[1]
        differences = backend.binary(
            "sub", backend.reshape(x, (rows, 1, features)), backend.reshape(vectors, (1, n, features))
        )
        squares = backend.reduce("sum", backend.binary("mul", differences, differences), (2,), False)
        return backend.unary("exp", backend.binary("mul", squares, backend.full((), -gamma, x.dtype)))
    products = matmul(x, vectors.permute_dims((1, 0)))
    if kind == "linear":
        return products
    products = products * gamma + coef0
    if kind == "sigmoid":
        return backend.unary("tanh", products)
    return products**degree


def _decisions(decisions, classes):
    """The decisions as floats, where there is one for each pair of classes."""
    decisions = floating(decisions)
    if classes < 1 or decisions.ndim != 2 or decisions.shape[1] != classes * (classes - 1) // 2:
        raise ShapeError(
            "{} classes want decisions of shape (rows, {}), found {}".format(
                classes, max(classes * (classes - 1) // 2, 0), decisions.shape
            )
        )
    return decisions


#: function; ai.onnx.ml SVMClassifier
@composite
def one_against_one(decisions, classes):
    """(rows, classes): the number of votes for each class. A decision (rows, pairs) above 0 votes for the first class
    of its pair, else for the second.

    The pairs are (0, 1), (0, 2), …, (1, 2), ….
    """
    decisions = _decisions(decisions, classes)
    backend = decisions.backend
    first = []
    for i in range(classes):
        for j in range(i + 1, classes):
            first += [1.0 if c == i else -1.0 if c == j else 0.0 for c in range(classes)]
    start = [float(j) for j in range(classes)]  # class j is the second of j pairs
    won = backend.cast(backend.binary("gt", decisions, backend.full((), 0, decisions.dtype)), decisions.dtype)
    table = backend.from_list(first, decisions.dtype, (decisions.shape[1], classes))
    return matmul(won, table) + backend.from_list(start, decisions.dtype, (classes,))


#: function; ai.onnx.ml SVMClassifier; prob_a: Sequence[float]; prob_b: Sequence[float]
@composite
def pairwise_coupling(decisions, prob_a, prob_b, classes):
    """(rows, classes): probabilities from decisions (rows, pairs), by Platt scaling and Wu's pairwise coupling.

    prob_a, prob_b: Platt's parameters, one per pair. Reads its input. As in libsvm, iterates at most 100 times, until
    no change exceeds 0.005 / classes.
    """
    decisions = _decisions(decisions, classes)
    out = []
    for row in decisions.tolist():
        pairs = [[0.0] * classes for _ in range(classes)]
        at = 0
        for i in range(classes):
            for j in range(i + 1, classes):
                p = 1 - _logistic(row[at] * prob_a[at] + prob_b[at])
                pairs[i][j] = min(max(p, 1e-7), 1 - 1e-7)
                pairs[j][i] = 1 - pairs[i][j]
                at += 1
        out += _coupled(pairs, classes)
    return decisions.backend.from_list(out, decisions.dtype, (decisions.shape[0], classes))


def _logistic(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _coupled(r, n):
    """The probabilities p that come closest to p_i r_ji = p_j r_ij (Wu, Lin, Weng 2004, the second method)."""
    q = [[-r[j][t] * r[t][j] if j != t else 0.0 for j in range(n)] for t in range(n)]
    for t in range(n):
        q[t][t] = sum([r[j][t] * r[j][t] for j in range(n) if j != t])
    p = [1.0 / n] * n
    for _ in range(max(100, n)):
        qp = [sum([q[t][j] * p[j] for j in range(n)]) for t in range(n)]
        pqp = sum([p[t] * qp[t] for t in range(n)])
        if max([abs(v - pqp) for v in qp]) < 0.005 / n:
            break
        for t in range(n):
            move = (pqp - qp[t]) / q[t][t]
            p[t] += move
            pqp = (pqp + move * (move * q[t][t] + 2 * qp[t])) / (1 + move) / (1 + move)
            for j in range(n):
                qp[j] = (qp[j] + move * q[t][j]) / (1 + move)
                p[j] /= 1 + move
    return p
