"""Normalization by statistics, either learned or of the input itself."""

from ...backend import operation
from ...errors import ShapeError
from ...shapes import assume_equal, axis_of, broadcast
from ..operands import astype, like
from ..overriding import composite, one_backend
from ..promotion import widened


def _per_channel(value, x):
    """One value per channel of x, in x's dtype. Raises ShapeError unless there is exactly one per channel."""
    value = like(value, x)
    if value.shape != x.shape[1:2]:
        raise ShapeError("expected one value per channel of {}, found shape {}".format(x.shape, value.shape))
    return value


def _channels(value, x):
    """A value per channel, shaped to broadcast along axis 1 of x."""
    value = _per_channel(value, x)
    return value.backend.reshape(value, value.shape + (1,) * (x.ndim - 2))


#: function; ONNX BatchNormalization; PyTorch batch_norm
@one_backend
def batch_norm(x, mean, var, weight=None, bias=None, epsilon=1e-5):
    """(x - mean) / sqrt(var + epsilon) * weight + bias per channel (axis 1), with the given running statistics."""
    x, dtype = widened(x)
    backend = x.backend
    if x.ndim < 2:
        raise ShapeError("batch_norm needs an input of (n, channels, …), found shape {}".format(x.shape))
    mean, var, weight, bias = [None if v is None else _per_channel(v, x) for v in (mean, var, weight, bias)]
    fast = operation(backend, "batch_norm")
    if fast:
        return astype(fast(x, mean, var, weight, bias, epsilon), dtype)
    scale = backend.binary(
        "div",
        backend.full((), 1, x.dtype),
        backend.unary("sqrt", backend.binary("add", like(var, x), backend.full((), epsilon, x.dtype))),
    )
    if weight is not None:
        scale = backend.binary("mul", scale, like(weight, x))
    shift = backend.binary("mul", backend.unary("neg", like(mean, x)), scale)
    if bias is not None:
        shift = backend.binary("add", shift, like(bias, x))
    return astype(backend.binary("add", backend.binary("mul", x, _channels(scale, x)), _channels(shift, x)), dtype)


def _standardized(x, axes, epsilon):
    backend = x.backend
    n = 1
    for a in axes:
        n *= x.shape[a]
    count = backend.full((), n, x.dtype)
    centered = backend.binary("sub", x, backend.binary("div", backend.reduce("sum", x, axes, True), count))
    var = backend.binary("div", backend.reduce("sum", backend.binary("mul", centered, centered), axes, True), count)
    return backend.binary(
        "div", centered, backend.unary("sqrt", backend.binary("add", var, backend.full((), epsilon, x.dtype)))
    )


def _fitting(value, x):
    """A weight or bias in x's dtype. Raises ShapeError unless it broadcasts to x."""
    if value is None:
        return None
    value = like(value, x)
    whole = assume_equal(value.shape, x.shape, "normalization")
    if not (whole or assume_equal(broadcast(value.shape, x.shape), x.shape, "normalization")):
        raise ShapeError("a weight or bias of shape {} does not fit an input of {}".format(value.shape, x.shape))
    return value


def _affine(x, weight, bias):
    backend = x.backend
    if weight is not None:
        x = backend.binary("mul", x, like(weight, x))
    if bias is not None:
        x = backend.binary("add", x, like(bias, x))
    return x


#: function; ONNX LayerNormalization; PyTorch layer_norm
@one_backend
def layer_norm(x, weight=None, bias=None, epsilon=1e-5, axis=-1):
    """Zero mean and unit variance over the axes from `axis` to the last, then * weight + bias (of their shape)."""
    x, dtype = widened(x)
    axis = axis_of(axis, x.ndim)
    weight, bias = _fitting(weight, x), _fitting(bias, x)
    fast = operation(x.backend, "layer_norm")
    if fast:
        return astype(fast(x, weight, bias, epsilon, axis), dtype)
    return astype(_affine(_standardized(x, tuple(range(axis, x.ndim)), epsilon), weight, bias), dtype)


#: function; ONNX RMSNormalization; PyTorch rms_norm
@one_backend
def rms_norm(x, weight=None, epsilon=1e-5, axis=-1):
    """x divided by its root mean square over the axes from `axis` to the last, then * weight."""
    x, dtype = widened(x)
    axis = axis_of(axis, x.ndim)
    weight = _fitting(weight, x)
    backend = x.backend
    fast = operation(backend, "rms_norm")
    if fast:
        return astype(fast(x, weight, epsilon, axis), dtype)
    axes = tuple(range(axis, x.ndim))
    n = 1
    for a in axes:
        n *= x.shape[a]
    square = backend.binary(
        "div", backend.reduce("sum", backend.binary("mul", x, x), axes, True), backend.full((), n, x.dtype)
    )
    root = backend.unary("sqrt", backend.binary("add", square, backend.full((), epsilon, x.dtype)))
    return astype(_affine(backend.binary("div", x, root), weight, None), dtype)


#: function; ONNX GroupNormalization; PyTorch group_norm; num_groups: int
@composite
def group_norm(x, num_groups, weight=None, bias=None, epsilon=1e-5):
    """Zero mean and unit variance over each group of channels of x (n, c, …), then * weight + bias per channel."""
    x, dtype = widened(x)
    if x.ndim >= 2 and num_groups > 0 and not x.size:
        return astype(x, dtype)
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError("group_norm: the channels of {} do not divide into {} groups".format(x.shape, num_groups))
    backend = x.backend
    n = 1
    for d in x.shape[1:]:
        n *= d
    grouped = backend.reshape(x, (x.shape[0], num_groups, n // num_groups))
    out = backend.reshape(_standardized(grouped, (2,), epsilon), x.shape)
    if weight is not None:
        out = backend.binary("mul", out, _channels(weight, x))
    if bias is not None:
        out = backend.binary("add", out, _channels(bias, x))
    return astype(out, dtype)


#: function; ONNX InstanceNormalization; PyTorch instance_norm
@composite
def instance_norm(x, weight=None, bias=None, epsilon=1e-5):
    """Zero mean and unit variance over the spatial axes of each channel, then * weight + bias per channel."""
    if len(x.shape) < 2:
        raise ShapeError("instance_norm: an input (n, c, …) has 2 axes or more, found shape {}".format(x.shape))
    return group_norm(x, max(1, x.shape[1]), weight, bias, epsilon)


#: function; ONNX LRN; PyTorch local_response_norm; before: int
@composite
def local_response_norm(x, size, alpha=1e-4, beta=0.75, bias=1.0, *, before=None):
    """x / (bias + alpha / size * sum of squares of `size` neighboring channels) ** beta.

    before: how many of these channels precede a channel, by default size // 2 as in PyTorch; of an even size, ONNX
    takes one fewer.
    """
    from ..movement.rearranging import narrow, pad

    x, dtype = widened(x)
    backend = x.backend
    if x.ndim < 2 or size < 1:
        raise ShapeError(
            "local_response_norm: an input (n, c, …) has 2 axes or more and size is positive, found shape {} and "
            "size {}".format(x.shape, size)
        )
    before = size // 2 if before is None else before
    margin = [(before, size - 1 - before) if i == 1 else (0, 0) for i in range(x.ndim)]
    square = pad(backend.binary("mul", x, x), margin)
    total = narrow(square, 1, 0, x.shape[1])
    for i in range(1, size):
        total = backend.binary("add", total, narrow(square, 1, i, x.shape[1]))
    scale = backend.binary(
        "add", backend.binary("mul", total, backend.full((), alpha / size, x.dtype)), backend.full((), bias, x.dtype)
    )
    return astype(backend.binary("div", x, backend.binary("pow", scale, backend.full((), beta, x.dtype))), dtype)


#: function; ONNX LpNormalization
@composite
def lp_normalize(x, p=2, axis=-1, epsilon=0.0):
    """x divided by its p-norm along axis (at least epsilon); 0 if both are 0."""
    from .over_axes import norm

    x, dtype = widened(x)
    backend = x.backend
    length = norm(x, p, axis, keepdims=True)
    if epsilon:
        return astype(
            backend.binary("div", x, backend.binary("maximum", length, backend.full((), epsilon, x.dtype))), dtype
        )
    zero = backend.full((), 0, x.dtype)
    return astype(
        backend.binary(
            "div", x, backend.where(backend.binary("eq", length, zero), backend.full((), 1, x.dtype), length)
        ),
        dtype,
    )


#: function; ONNX MeanVarianceNormalization
@composite
def mean_variance_norm(x, axes=(0, 2, 3), epsilon=1e-9):
    """Zero mean and unit variance over `axes` (ONNX MeanVarianceNormalization)."""
    from ...shapes import axes_of

    x, dtype = widened(x)
    backend = x.backend
    axes = axes_of(tuple(axes), x.ndim)
    n = 1
    for a in axes:
        n *= x.shape[a]
    count = backend.full((), n, x.dtype)
    centered = backend.binary("sub", x, backend.binary("div", backend.reduce("sum", x, axes, True), count))
    var = backend.binary("div", backend.reduce("sum", backend.binary("mul", centered, centered), axes, True), count)
    return astype(
        backend.binary(
            "div", centered, backend.binary("add", backend.unary("sqrt", var), backend.full((), epsilon, x.dtype))
        ),
        dtype,
    )
