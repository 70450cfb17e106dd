"""Draws that depend on a tensor: dropout in training mode, and classes by their probability."""

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ..operands import alias, floating
from ..overriding import composite


#: function; ONNX Dropout; ratio: float -> tuple[Tensor, Tensor]
@composite
def dropout_with_mask(x, ratio=0.5, *, seed=None, training=True):
    """(x with each element zeroed with probability `ratio` and the rest scaled by 1 / (1 - ratio), bool mask of those
    kept).

    Outside training: x itself and an all-True mask. The draws are those of `uniform`, the same on every backend.
    """
    from .draws import uniform

    x = floating(x)
    backend = x.backend
    if not training or ratio == 0:
        return alias(x), backend.full(x.shape, True, dtypes.bool)
    draw = uniform(x.shape, seed=seed, backend=backend)
    mask = backend.binary("ge", draw, backend.full((), ratio, draw.dtype))
    kept = backend.binary("mul", x, backend.full((), 1 / (1 - ratio) if ratio < 1 else 0.0, x.dtype))
    return backend.where(mask, kept, backend.full((), 0, x.dtype)), mask


#: function; ONNX Multinomial; PyTorch multinomial; replacement: bool -> Tensor[int]
@composite
def multinomial(x, count=1, replacement=False, *, dtype=None, seed=None):
    """int64 (batch, count), or (count,) of a 1-D x: classes drawn by the weights x (batch, classes), which need not add
    up to 1. No class is drawn twice unless `replacement`.

    Raises ShapeError if there are fewer classes than draws without replacement, ArgumentError for a negative weight;
    weights computed on a GPU are not read back to check that.
    """
    from ..indexing.visibility import visible
    from ..reductions.over_axes import count_nonzero, cumulative_sum
    from ..reductions.sorting import topk_with_indices
    from .draws import uniform

    x = floating(x)
    backend = x.backend
    if x.ndim == 1:
        return multinomial(x.expand_dims(0), count, replacement, dtype=dtype, seed=seed)[0]
    if x.ndim != 2 or count < 1 or (count > x.shape[1] and not replacement):
        raise ShapeError(
            "multinomial: {} draws with{} replacement from weights {}, which are (batch, classes)".format(
                count, "" if replacement else "out", x.shape
            )
        )
    seen = visible(x)
    if seen is not None and seen.size:
        if seen.min().item() < 0:
            raise ArgumentError(
                "multinomial takes weights of at least 0, found {}; of log-probabilities, pass their softmax".format(
                    seen.min().item()
                )
            )
        if not replacement and count_nonzero(seen, -1).min().item() < count:
            raise ShapeError("multinomial: fewer classes have a weight than {} draws without replacement".format(count))
    if not replacement:  # the first of exponential waiting times, of rates x
        draw = uniform(x.shape, dtype=x.dtype, seed=seed, backend=backend)
        waited = backend.binary("div", backend.unary("log1p", backend.unary("neg", draw)), x)
        zero = backend.full((), 0, x.dtype)
        waited = backend.where(backend.binary("gt", x, zero), waited, backend.full((), float("-inf"), x.dtype))
        chosen = topk_with_indices(waited, count)[1]
        return backend.cast(chosen, dtypes.dtype(dtype)) if dtype is not None else chosen
    sums = cumulative_sum(x, axis=-1)
    reached = (sums / sums[:, -1:]).expand_dims(1)
    draw = uniform((x.shape[0], count), dtype=reached.dtype, seed=seed, backend=backend).expand_dims(-1)
    passed = backend.cast(backend.binary("le", reached, draw), dtypes.int64)
    chosen = backend.reduce("sum", passed, (2,), False).clip(0, x.shape[1] - 1)
    return backend.cast(chosen, dtypes.dtype(dtype)) if dtype is not None else chosen
