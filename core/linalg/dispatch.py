"""Where a decomposition is computed: by the backend's own method `linear_algebra`, on the host of a GPU's backend, or
by plain Python."""

from ..backend import operation
from ..errors import ShapeError
from ..functional.operands import astype
from ..functional.promotion import widened


def matrices(x, what, square=False):
    """(x as floats of at least 32 bits, the dtype of results). Raises ShapeError unless x is (…, m, n), or (…, n, n) if
    `square`."""
    x, dtype = widened(x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        needed = "square matrices (..., n, n)" if square else "matrices (..., m, n)"
        raise ShapeError("{} takes {}, found shape {}".format(what, needed, x.shape))
    return x, dtype


def computed(what, x, *more):
    """The tensors of `what` (a function of textbook/) of the matrices x; more: tensors and settings.

    Raises ArgumentError for matrices without the result.
    """
    backend = x.backend
    own = operation(backend, "linear_algebra")
    if own:
        return own(what, x, *more)
    if getattr(getattr(backend, "host", None), "linear_algebra", None):
        return backend.on_host("linear_algebra", (what, x) + more)
    from .textbook import compute

    return compute(what, x, more)


def rounded(tensors, dtype):
    """A list of tensors in `dtype`."""
    return [astype(t, dtype) for t in tensors]
