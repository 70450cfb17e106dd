"""Normalization by statistics, learnt or taken from the input itself."""

from ...backend import operation
from ...errors import ShapeError
from ...shapes import axis_of, broadcast
from ..operands import astype, like
from ..overriding import composite, one_backend
from ..promotion import widened


def _per_channel(value, x):
    """A value per channel of x in x's dtype. Raises ShapeError where there are more or fewer."""
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
    k = x.backend
    if x.ndim < 2:
        raise ShapeError("batch_norm wants an input of (n, channels, …), found shape {}".format(x.shape))
    mean, var, weight, bias = [None if v is None else _per_channel(v, x) for v in (mean, var, weight, bias)]
    fast = operation(k, "batch_norm")
    if fast:
        return astype(fast(x, mean, var, weight, bias, epsilon), dtype)
    scale = k.binary(
        "div", k.full((), 1, x.dtype), k.unary("sqrt", k.binary("add", like(var, x), k.full((), epsilon, x.dtype)))
    )
    if weight is not None:
        scale = k.binary("mul", scale, like(weight, x))
    shift = k.binary("mul", k.unary("neg", like(mean, x)), scale)
    if bias is not None:
        shift = k.binary("add", shift, like(bias, x))
    return astype(k.binary("add", k.binary("mul", x, _channels(scale, x)), _channels(shift, x)), dtype)


def _standardised(x, axes, epsilon):
    k = x.backend
    n = 1
    for a in axes:
        n *= x.shape[a]
    count = k.full((), n, x.dtype)
    centred = k.binary("sub", x, k.binary("div", k.reduce("sum", x, axes, True), count))
    var = k.binary("div", k.reduce("sum", k.binary("mul", centred, centred), axes, True), count)
    return k.binary("div", centred, k.unary("sqrt", k.binary("add", var, k.full((), epsilon, x.dtype))))


def _fitting(value, x):
    """A weight or bias in x's dtype. Raises ShapeError unless it broadcasts to x."""
    if value is None:
        return None
    value = like(value, x)
    if value.shape != x.shape and broadcast(value.shape, x.shape) != x.shape:
        raise ShapeError("a weight or bias of shape {} does not fit an input of {}".format(value.shape, x.shape))
    return value


def _affine(x, weight, bias):
    k = x.backend
    if weight is not None:
        x = k.binary("mul", x, like(weight, x))
    if bias is not None:
        x = k.binary("add", x, like(bias, x))
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
    return astype(_affine(_standardised(x, tuple(range(axis, x.ndim)), epsilon), weight, bias), dtype)


#: function; ONNX RMSNormalization; PyTorch rms_norm
@one_backend
def rms_norm(x, weight=None, epsilon=1e-5, axis=-1):
    """x over the root of its mean square over the axes from `axis` to the last, then * weight."""
    x, dtype = widened(x)
    axis = axis_of(axis, x.ndim)
    weight = _fitting(weight, x)
    k = x.backend
    fast = operation(k, "rms_norm")
    if fast:
        return astype(fast(x, weight, epsilon, axis), dtype)
    axes = tuple(range(axis, x.ndim))
    n = 1
    for a in axes:
        n *= x.shape[a]
    square = k.binary("div", k.reduce("sum", k.binary("mul", x, x), axes, True), k.full((), n, x.dtype))
    root = k.unary("sqrt", k.binary("add", square, k.full((), epsilon, x.dtype)))
    return astype(_affine(k.binary("div", x, root), weight, None), dtype)


#: function; ONNX GroupNormalization; PyTorch group_norm; num_groups: int
@composite
def group_norm(x, num_groups, weight=None, bias=None, epsilon=1e-5):
    """Zero mean and unit variance over each group of channels of x (n, c, …), then * weight + bias per channel."""
    x, dtype = widened(x)
    if x.ndim < 2 or x.shape[1] % num_groups:
        raise ShapeError("group_norm: the channels of {} do not divide into {} groups".format(x.shape, num_groups))
    k = x.backend
    n = 1
    for d in x.shape[1:]:
        n *= d
    grouped = k.reshape(x, (x.shape[0], num_groups, n // num_groups))
    out = k.reshape(_standardised(grouped, (2,), epsilon), x.shape)
    if weight is not None:
        out = k.binary("mul", out, _channels(weight, x))
    if bias is not None:
        out = k.binary("add", out, _channels(bias, x))
    return astype(out, dtype)


#: function; ONNX InstanceNormalization; PyTorch instance_norm
@composite
def instance_norm(x, weight=None, bias=None, epsilon=1e-5):
    """Zero mean and unit variance over the spatial axes of each channel, then * weight + bias per channel."""
    return group_norm(x, x.shape[1], weight, bias, epsilon)


#: function; ONNX LRN; PyTorch local_response_norm
@composite
def local_response_norm(x, size, alpha=1e-4, beta=0.75, bias=1.0):
    """x / (bias + alpha / size * sum of squares of `size` neighboring channels) ** beta."""
    from ..movement.rearranging import narrow, pad

    x, dtype = widened(x)
    k = x.backend
    before = (size - 1) // 2
    margin = [(before, size - 1 - before) if i == 1 else (0, 0) for i in range(x.ndim)]
    square = pad(k.binary("mul", x, x), margin)
    total = narrow(square, 1, 0, x.shape[1])
    for i in range(1, size):
        total = k.binary("add", total, narrow(square, 1, i, x.shape[1]))
    scale = k.binary("add", k.binary("mul", total, k.full((), alpha / size, x.dtype)), k.full((), bias, x.dtype))
    return astype(k.binary("div", x, k.binary("pow", scale, k.full((), beta, x.dtype))), dtype)


#: function; ONNX LpNormalization
@composite
def lp_normalize(x, p=2, axis=-1, epsilon=0.0):
    """x over its p-norm along axis (at least epsilon; where both are 0 the result is 0)."""
    from .over_axes import norm

    x, dtype = widened(x)
    k = x.backend
    length = norm(x, p, axis, keepdims=True)
    if epsilon:
        return astype(k.binary("div", x, k.binary("maximum", length, k.full((), epsilon, x.dtype))), dtype)
    zero = k.full((), 0, x.dtype)
    return astype(k.binary("div", x, k.where(k.binary("eq", length, zero), k.full((), 1, x.dtype), length)), dtype)


#: function; ONNX MeanVarianceNormalization
@composite
def mean_variance_norm(x, axes=(0, 2, 3), epsilon=1e-9):
    """Zero mean and unit variance over `axes` (ONNX MeanVarianceNormalization)."""
    from ...shapes import axes_of

    x, dtype = widened(x)
    k = x.backend
    axes = axes_of(tuple(axes), x.ndim)
    n = 1
    for a in axes:
        n *= x.shape[a]
    count = k.full((), n, x.dtype)
    centred = k.binary("sub", x, k.binary("div", k.reduce("sum", x, axes, True), count))
    var = k.binary("div", k.reduce("sum", k.binary("mul", centred, centred), axes, True), count)
    return astype(k.binary("div", centred, k.binary("add", k.unary("sqrt", var), k.full((), epsilon, x.dtype))), dtype)
