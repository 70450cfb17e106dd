"""Reductions over the elements that a mask selects."""

from ...errors import ShapeError
from ..operands import astype
from ..overriding import composite
from ..promotion import widened


#: function; mask: Tensor; least: float
@composite
def masked_mean(x, mask, least=1e-9):
    """The mean over the length of the elements of x (batch, length, …) that mask (batch, length) selects.

    sum(x * mask) / max(sum(mask), least) over axis 1, as sentence-transformers pools: a sequence without selected
    elements gives 0, and a mask of numbers weights the elements. Raises ShapeError unless mask has the first two sizes
    of x.
    """
    if x.ndim < 2 or mask.shape != x.shape[:2]:
        raise ShapeError(
            "masked_mean needs x (batch, length, ...) and mask (batch, length), found {} and {}".format(
                x.shape, mask.shape
            )
        )
    x, dtype = widened(x)
    backend = x.backend
    weights = backend.reshape(astype(mask, x.dtype), mask.shape + (1,) * (x.ndim - 2))
    total = backend.reduce("sum", backend.binary("mul", x, weights), (1,), False)
    count = backend.binary("maximum", backend.reduce("sum", weights, (1,), False), backend.full((), least, x.dtype))
    return astype(backend.binary("div", total, count), dtype)
