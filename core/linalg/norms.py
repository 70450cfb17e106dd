"""Norms, traces and diagonals of batches of matrices, and the cosine of vectors."""

from math import inf

from ..errors import ArgumentError, ShapeError
from ..functional.linear_algebra.diagonals import diagonals
from ..functional.movement.rearranging import moveaxis
from ..functional.operands import astype, tensor
from ..functional.promotion import paired, widened
from ..functional.reductions.over_axes import sum, vector_norm
from ..functional.reshaping import reshape
from ..shapes import axes_of, reduced
from .decompositions import svdvals
from .dispatch import matrices

_BY_SUMS = {1: ("max", -2), -1: ("min", -2), inf: ("max", -1), -inf: ("min", -1)}
_BY_VALUES = {2: "max", -2: "min", "nuc": "sum"}


def matrix_norm(x, *, keepdims=False, ord="fro"):
    """The norms (…) of matrices (…, m, n). ord: "fro", the root of the sum of squares; "nuc", the sum of the singular
    values; 2 and -2, the largest and smallest of them; 1 and -1, of the sums of |x| over columns; inf and -inf, over
    rows. Raises ArgumentError for another ord."""
    x, dtype = matrices(x, "matrix_norm")
    if ord == "fro":
        out = vector_norm(x, axis=(-2, -1), keepdims=True)
    elif ord in _BY_VALUES:
        values = svdvals(x)
        out = values.backend.reduce(_BY_VALUES[ord], values, (values.ndim - 1,), True)
        out = reshape(out, out.shape + (1,))
    elif ord in _BY_SUMS:
        op, axis = _BY_SUMS[ord]
        sums = sum(x.backend.unary("abs", x), axis, keepdims=True)
        out = sums.backend.reduce(op, sums, (x.ndim - 2, x.ndim - 1), True)
    else:
        raise ArgumentError("matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, found {!r}".format(ord))
    out = astype(out, dtype)
    return out if keepdims else reshape(out, out.shape[:-2])


def norm(x, ord=None, axis=None, *, keepdims=False):
    """NumPy's linalg.norm: `vector_norm` over one axis, `matrix_norm` over two; without an axis the root of the sum of
    all squares, or, with an `ord`, the norm of the vector or matrix x. Raises ShapeError for more than two axes."""
    x = tensor(x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError("norm is over one axis or two, found {}; vector_norm takes more".format(axes))
    axes = axes if axis is None else axis  # rows first, in the caller's order
    out = matrix_norm(moveaxis(x, tuple(axes), (-2, -1)), ord="fro" if ord is None else ord)
    return reshape(out, reduced(x.shape, axes_of(axis, x.ndim), True)) if keepdims else out


def diagonal(x, *, offset=0):
    """The diagonals (…, length) of matrices (…, m, n); offset: how far to the right of the main one, negative to the
    left."""
    return diagonals(tensor(x), offset)


def trace(x, *, offset=0, dtype=None):
    """The sums (…) of the diagonals of matrices (…, m, n), in `dtype` where given. offset: see `diagonal`."""
    return sum(diagonals(tensor(x), offset), -1, dtype=dtype)


def cosine_similarity(x1, x2, axis=-1, *, epsilon=1e-8):
    """The cosines of the angles between vectors along axis; the other axes broadcast. epsilon: the least product of
    lengths, so that a vector of zeros gives 0."""
    a, b = paired(x1, x2)
    (a, dtype), (b, _) = widened(a), widened(b)
    backend = a.backend
    lengths = backend.binary("mul", vector_norm(a, axis=axis), vector_norm(b, axis=axis))
    least = backend.binary("maximum", lengths, backend.full((), epsilon, a.dtype))
    return astype(backend.binary("div", sum(backend.binary("mul", a, b), axis), least), dtype)
