"""Draws that depend on a tensor: dropout in training mode, and classes by their probability."""

from ... import dtypes
from ...backend import operation
from ..operands import alias, floating
from ..overriding import composite


#: function; ONNX Dropout; ratio: float -> tuple[Tensor, Tensor]
@composite
def dropout_with_mask(x, ratio=0.5, *, seed=None, training=True):
    """(x with each element zeroed with probability `ratio` and the rest scaled by 1 / (1 - ratio), bool mask of those
    kept).

    Outside training: x itself and an all-True mask. On NumPy a seed gives the stream of numpy.random.RandomState, as
    ONNX's test cases expect; elsewhere, and without a seed, this library's own generator is used.
    """
    from .draws import uniform

    x = floating(x)
    backend = x.backend
    if not training or ratio == 0:
        return alias(x), backend.full(x.shape, True, dtypes.bool)
    legacy = operation(backend, "legacy_uniform") if seed is not None else None
    draw = legacy(x.shape, seed) if legacy else uniform(x.shape, seed=seed, backend=backend)
    mask = backend.binary("ge", draw, backend.full((), ratio, draw.dtype))
    kept = backend.binary("mul", x, backend.full((), 1 / (1 - ratio) if ratio < 1 else 0.0, x.dtype))
    return backend.where(mask, kept, backend.full((), 0, x.dtype)), mask


#: function; ONNX Multinomial; PyTorch multinomial
@composite
def multinomial(x, count=1, *, dtype=None, seed=None):
    """int64 (batch, count): class indices drawn by the unnormalized log-probabilities x (batch, classes)."""
    from ..elementwise.activations import softmax
    from ..reductions.over_axes import cumulative_sum
    from .draws import uniform

    x = floating(x)
    backend = x.backend
    reached = cumulative_sum(softmax(x, -1), axis=-1).expand_dims(1)
    draw = uniform((x.shape[0], count), dtype=reached.dtype, seed=seed, backend=backend).expand_dims(-1)
    passed = backend.cast(backend.binary("le", reached, draw), dtypes.int64)
    chosen = backend.reduce("sum", passed, (2,), False).clip(0, x.shape[1] - 1)
    return backend.cast(chosen, dtypes.dtype(dtype)) if dtype is not None else chosen
