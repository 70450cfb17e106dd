"""Covariance and correlation of several variables."""

from ...errors import ShapeError
from ..linear_algebra.products import matmul
from ..movement.rearranging import matrix_transpose
from ..operands import astype
from ..overriding import composite
from ..promotion import widened
from ..reductions.over_axes import mean
from ..reshaping import reshape


#: method; NumPy cov; Burn cov; correction: float
@composite
def cov(x, *, correction=1.0, rowvar=True):
    """The covariance matrix (variables, variables) of x (variables, observations), divided by observations -
    correction; of one variable (1-D), its variance. rowvar=False: x is (observations, variables). Raises ShapeError for
    more axes."""
    x, dtype = widened(x)
    single = x.ndim < 2
    if x.ndim > 2:
        raise ShapeError("cov takes (variables, observations), found shape {}".format(x.shape))
    if single:
        x = reshape(x, (1, x.size))
    elif not rowvar:
        x = matrix_transpose(x)
    backend = x.backend
    gap = backend.binary("sub", x, mean(x, 1, keepdims=True))
    freedom = x.shape[1] - correction
    out = backend.binary("div", matmul(gap, matrix_transpose(gap)), backend.full((), max(freedom, 0), x.dtype))
    return astype(reshape(out, ()) if single else out, dtype)


#: method; NumPy corrcoef
@composite
def corrcoef(x, *, rowvar=True):
    """The correlation matrix of x (variables, observations): covariances divided by the standard deviations, from -1 to
    1. rowvar=False: x is (observations, variables). Raises ShapeError for more than two axes."""
    x, dtype = widened(x)
    joint = cov(x, rowvar=rowvar)
    backend, n = joint.backend, joint.shape[0] if joint.ndim else 1
    if not joint.ndim:
        return astype(backend.binary("div", joint, joint), dtype)
    from ..linear_algebra.diagonals import diag

    deviation = backend.unary("sqrt", diag(joint))
    joint = backend.binary("div", joint, reshape(deviation, (n, 1)))
    joint = backend.binary("div", joint, reshape(deviation, (1, n)))
    one = backend.full((), 1, joint.dtype)
    joint = backend.binary("maximum", backend.binary("minimum", joint, one), backend.unary("neg", one))
    return astype(joint, dtype)
