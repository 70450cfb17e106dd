"""The rules of decompositions (emberlet.linalg), each for the matrices of a batch. A gradient is that of a matrix
without structure, as in PyTorch: symmetric ones are those whose two triangles change together.

Formulas: Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008); QR
of wide matrices and LU: Walter and Lehmann (2018), PyTorch's FunctionsManual.cpp; pseudo-inverse: Golub and Pereyra
(1973).
"""

from ...errors import UnsupportedError
from ...linalg.dispatch import computed
from ..arithmetic import add, call, cut, div, expanded, mul, neg, number, reshaped, sub


def linear_algebra(what, x, *more):
    """(results, pull) of a function that `linalg.dispatch.computed` knows."""
    if what == "pinv":
        from ...linalg.solving import pinv

        out = (pinv(x, rtol=more[0]),)
    else:
        out = tuple(computed(what, x, *more))
    rule = _RULES[what]
    return out, lambda g: rule(x, out, g, *more)


def _turned(x):
    n = len(x.shape)
    return x.backend.permute(x, tuple(range(n - 2)) + (n - 1, n - 2))


def _times(*factors):
    out = factors[0]
    for x in factors[1:]:
        out = out.backend.matmul(out, x)
    return out


def _inverse(x):
    return computed("inv", x)[0]


def _eye(n, like):
    return call("eye", n, dtype=like.dtype, backend=like.backend)


def _diagonal(x):
    """Matrices with the vectors x on their diagonals."""
    n = x.shape[-1]
    return mul(_row(x), _eye(n, x))


def _row(x):
    return reshaped(x, x.shape[:-1] + (1, x.shape[-1]))


def _column(x):
    return reshaped(x, x.shape + (1,))


def _given(g, i, like):
    """The gradient of result i, or zeros."""
    return like.backend.full(like.shape, 0, like.dtype) if g.get(i) is None else g[i]


def _left(x, count):
    """The first columns."""
    return x if x.shape[-1] == count else cut(x, len(x.shape) - 1, 0, count)


def _right(x, count):
    """The columns after the first `count`."""
    return cut(x, len(x.shape) - 1, count, x.shape[-1] - count)


def _cholesky(x, out, g):
    lower = out[0]
    inverse = _inverse(lower)
    inside = call("tril", _times(_turned(lower), g[0]))
    half = sub(inside, mul(mul(inside, _eye(x.shape[-1], x)), number(0.5, x)))
    found = _times(_turned(inverse), half, inverse)
    return (mul(add(found, _turned(found)), number(0.5, x)),)


def _gaps(values, of_diagonal):
    """values[j] - values[i] at (i, j), and `of_diagonal` where i is j."""
    gaps = sub(_row(values), _column(values))
    return add(gaps, mul(_eye(values.shape[-1], values), number(of_diagonal, values)))


def _eigh(x, out, g):
    values, vectors = out
    inside = _diagonal(_given(g, 0, values))
    if g.get(1) is not None:
        turned = _times(_turned(vectors), g[1])
        off = sub(number(1, x), _eye(x.shape[-1], x))
        inside = add(inside, mul(off, div(turned, _gaps(values, 1))))
    return (_times(vectors, inside, _turned(vectors)),)


def _eigvalsh(x, out, g):
    vectors = computed("eigh", x)[1]
    return (_times(mul(vectors, _row(g[0])), _turned(vectors)),)


def _inv(x, out, g):
    turned = _turned(out[0])
    return (neg(_times(turned, g[0], turned)),)


def _solve(x, out, g, right, columns):
    of_right = computed("solve", _turned(x), g[0], columns)[0]
    return neg(_times(of_right, _turned(out[0]))), of_right


def _slogdet(x, out, g):
    if g.get(1) is None:
        return (None,)
    inverse = _turned(_inverse(x))
    return (mul(inverse, expanded(reshaped(g[1], g[1].shape + (1, 1)), inverse.shape)),)


def _qr(x, out, g, columns, complete):
    q, r = out
    m, n = x.shape[-2:]
    if complete and m > n:
        raise UnsupportedError(
            "linalg.qr with mode='complete' of matrices with more rows than columns has no gradient: the columns of Q "
            "after the first {} are not unique; use mode='reduced'".format(n)
        )
    of_q, of_r = _given(g, 0, q), _given(g, 1, r)
    if m >= n:
        return (_of_tall(q, r, of_q, of_r),)
    # x is [a | b], r is [u | v]: a = q u, v = qᵀ b
    of_v = _right(of_r, m)
    of_a = _of_tall(q, _left(r, m), add(of_q, _times(_right(x, m), _turned(of_v))), _left(of_r, m))
    return (x.backend.concat([of_a, _times(q, of_v)], len(x.shape) - 1),)


def _of_tall(q, r, of_q, of_r):
    """The gradient of q r, where r is square."""
    inside = call("triu", sub(_times(of_r, _turned(r)), _times(_turned(q), of_q)))
    both = add(inside, sub(_turned(inside), mul(inside, _eye(r.shape[-1], r))))
    return _times(add(of_q, _times(q, both)), _turned(_inverse(r)))


def _svd(x, out, g, columns, full):
    k = out[1].shape[-1]
    u, values, v = _left(out[0], k), out[1], _left(_turned(out[2]), k)
    of_u = None if g.get(0) is None else _left(g[0], k)
    of_v = None if g.get(2) is None else _left(_turned(g[2]), k)
    inside = _diagonal(_given(g, 1, values))
    gaps = _gaps(mul(values, values), 1)
    rest = None
    if of_u is not None:
        turned = _times(_turned(u), of_u)
        inside = add(inside, mul(div(sub(turned, _turned(turned)), gaps), _row(values)))
        if x.shape[-2] > k:
            rest = _times(div(sub(of_u, _times(u, turned)), _row(values)), _turned(v))
    if of_v is not None:
        turned = _times(_turned(v), of_v)
        inside = add(inside, mul(_column(values), div(sub(turned, _turned(turned)), gaps)))
        if x.shape[-1] > k:
            outside = _times(div(u, _row(values)), _turned(sub(of_v, _times(v, turned))))
            rest = outside if rest is None else add(rest, outside)
    found = _times(u, inside, _turned(v))
    return (found if rest is None else add(found, rest),)


def _svdvals(x, out, g, columns):
    u, _, vh = computed("svd", x, columns, False)
    return (_times(mul(u, _row(g[0])), vh),)


def _lu(x, out, g, columns):
    p, lower, upper = out
    m, n = x.shape[-2:]
    of_lower, of_upper = _given(g, 1, lower), _given(g, 2, upper)
    k = min(m, n)
    rows = len(x.shape) - 2
    top = lower if m == k else cut(lower, rows, 0, k)
    of_top = of_lower if m == k else cut(of_lower, rows, 0, k)
    left, of_left = _left(upper, k), _left(of_upper, k)
    of_l, of_u = _times(_turned(top), of_top), _times(of_left, _turned(left))
    back, across = _turned(_inverse(top)), _turned(_inverse(left))
    if n > k:
        of_l = sub(of_l, _times(_right(of_upper, k), _turned(_right(upper, k))))
    if m > k:
        below, of_below = cut(lower, rows, k, m - k), cut(of_lower, rows, k, m - k)
        of_u = sub(of_u, _times(_turned(below), of_below))
    found = _times(back, add(call("tril", of_l, k=-1), call("triu", of_u)), across)
    if n > k:
        found = x.backend.concat([found, _times(back, _right(of_upper, k))], rows + 1)
    if m > k:
        found = x.backend.concat([found, _times(of_below, across)], rows)
    return (_times(p, found),)


def _pinv(x, out, g, rtol):
    inverse, g = out[0], g[0]
    turned, g_turned = _turned(inverse), _turned(g)
    found = neg(_times(turned, g, turned))
    beside = sub(_eye(x.shape[-2], x), _times(x, inverse))
    found = add(found, _times(beside, g_turned, inverse, turned))
    beside = sub(_eye(x.shape[-1], x), _times(inverse, x))
    return (add(found, _times(turned, inverse, g_turned, beside)),)


_RULES = {
    "cholesky": _cholesky, "eigh": _eigh, "eigvalsh": _eigvalsh, "inv": _inv, "lu": _lu, "pinv": _pinv, "qr": _qr,
    "slogdet": _slogdet, "solve": _solve, "svd": _svd, "svdvals": _svdvals,
}  # fmt: skip
