"""What Dropout, GaussianNoise, BatchNorm and fake quantization do while a model is trained: where its input is on an
Autodiff backend."""

from ..errors import ShapeError
from ..functional.operands import astype
from ..functional.promotion import widened
from .arithmetic import call


def train_dropout(layer, x):
    """x with each element zeroed with probability layer.prob, and the rest scaled by 1 / (1 - prob)."""
    return call("dropout_with_mask", x, layer.prob)[0]


def train_gaussian_noise(layer, x):
    """x plus noise of standard deviation layer.std."""
    if not layer.std:
        return x.backend.binary("add", x, x.backend.full((), 0, x.dtype))
    wide, dtype = widened(x)
    return astype(wide + call("normal", x.shape, std=layer.std, dtype=wide.dtype, backend=x.backend), dtype)


def train_batch_norm(layer, x):
    """x normalized by the mean and the variance of the batch, per channel; the running statistics move toward these by
    layer.momentum, with the unbiased variance, as in PyTorch. With one value per channel there is no such variance, and
    the running one stays."""
    wide, dtype = widened(x)
    axes = (0,) + tuple(range(2, x.ndim))
    count = 1
    for a in axes:
        count *= x.shape[a]
    var, mean = call("var_mean", wide, axes)
    if not x.backend.replaying:
        _follow(layer.running_mean, mean, layer.momentum, 1)
        if count > 1 and type(count) is int:
            _follow(layer.running_var, var, layer.momentum, count / (count - 1))
        elif count > 1:  # an open size
            all_of, less = [x.backend.full((), n, var.dtype) for n in (count, count - 1)]
            _follow(layer.running_var, var * (all_of / less), layer.momentum, 1)
    weight, bias = [None if p is None else p.val() for p in (layer.weight, layer.bias)]
    return astype(call("batch_norm", wide, mean, var, weight, bias, layer.epsilon), dtype)


def _follow(param, value, momentum, scale):
    old = param.val().detach()
    param.set(old * (1 - momentum) + astype(value.detach(), old.dtype) * (momentum * scale))


def straight_through(f):
    """A function that computes f(x) and passes the gradient of the result to x as it is, as if f were the identity: for
    rounding, and for quantization-aware training (Bengio, Léonard and Courville 2013). f takes a tensor on the
    inner backend and gives one of the same shape."""

    def call(x):
        return train_quantized(x, f) if hasattr(x.backend, "from_inner") else f(x)

    return call


def train_quantized(x, f):
    """f of x's elements, with x's gradient that of the result."""
    node, found = x.data.node, f(x.data.inner)
    if found.shape != x.shape:
        raise ShapeError("straight_through: f gives shape {} for {}".format(found.shape, x.shape))
    return x.backend.from_inner(found) if node is None else x.backend._noted(found, (node,), lambda g: (g,))
