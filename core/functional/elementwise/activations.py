"""Activation functions, elementwise on floats unless an axis is named.

Narrow floats are computed in float32 and rounded once: 1 + erf(-2.8) is 0 in float16.
"""

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError, refuse
from ...shapes import axis_of, broadcast
from ..operands import astype, floating, like, numeric
from ..overriding import composite
from ..promotion import widened


#: method; PyTorch relu6
@composite
def relu6(x):
    """min(max(x, 0), 6)."""
    from .arithmetic import clip

    return clip(x, 0, 6)


#: method; ONNX LeakyRelu; PyTorch leaky_relu; Burn leaky_relu
@composite
def leaky_relu(x, negative_slope=0.01):
    """x where it is >= 0, negative_slope * x elsewhere."""
    x = floating(x)
    backend = x.backend
    low = backend.binary("mul", x, backend.full((), negative_slope, x.dtype))
    if 0 < negative_slope <= 1:
        return backend.binary("maximum", x, low)
    return backend.where(backend.binary("lt", x, backend.full((), 0, x.dtype)), low, x)


#: method; ONNX PRelu; PyTorch prelu; Burn prelu; alpha: TensorLike
@composite
def prelu(x, alpha):
    """x where it is >= 0, alpha * x elsewhere; a 1-D alpha of several values broadcasts along axis 1 (the channels).

    Raises ShapeError if alpha does not broadcast to x's shape.
    """
    x = floating(x)
    backend = x.backend
    alpha = like(alpha, x)
    if alpha.ndim == 1 and alpha.size > 1 and x.ndim > 1:
        alpha = backend.reshape(alpha, (alpha.size,) + (1,) * (x.ndim - 2))
    if broadcast(x.shape, alpha.shape) != x.shape:
        raise ShapeError("prelu: alpha of shape {} does not broadcast to x's shape, {}".format(alpha.shape, x.shape))
    return backend.where(backend.binary("lt", x, backend.full((), 0, x.dtype)), backend.binary("mul", x, alpha), x)


#: method; ONNX Sigmoid; Burn sigmoid
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow for any x."""
    x = floating(x)
    backend = x.backend
    fast = operation(backend, "sigmoid")
    if fast:
        return fast(x)
    x, dtype = widened(x)
    one = backend.full((), 1, x.dtype)
    return astype(
        backend.binary("div", one, backend.binary("add", one, backend.unary("exp", backend.unary("neg", x)))), dtype
    )


#: method; ONNX HardSigmoid; Burn hard_sigmoid
@composite
def hard_sigmoid(x, alpha=0.2, beta=0.5):
    """alpha * x + beta, clamped to [0, 1]. Defaults are Burn's and ONNX's; PyTorch's alpha is 1/6."""
    from .arithmetic import clip

    x, dtype = widened(x)
    backend = x.backend
    line = backend.binary(
        "add", backend.binary("mul", x, backend.full((), alpha, x.dtype)), backend.full((), beta, x.dtype)
    )
    return astype(clip(line, 0, 1), dtype)


#: method; PyTorch silu; Burn silu
@composite
def silu(x):
    """x * sigmoid(x)."""
    x, dtype = widened(x)
    return astype(x.backend.binary("mul", x, sigmoid(x)), dtype)


#: method; ONNX Swish
@composite
def swish(x, alpha=1.0):
    """x * sigmoid(alpha * x)."""
    x, dtype = widened(x)
    backend = x.backend
    return astype(backend.binary("mul", x, sigmoid(backend.binary("mul", x, backend.full((), alpha, x.dtype)))), dtype)


#: method; ONNX HardSwish
@composite
def hard_swish(x):
    """x * hard_sigmoid(x, 1/6, 1/2)."""
    x, dtype = widened(x)
    return astype(x.backend.binary("mul", x, hard_sigmoid(x, 1 / 6, 0.5)), dtype)


#: method; ONNX Gelu; Burn gelu
def gelu(x, approximate="none"):
    """x times the standard normal distribution function at x; approximate="tanh" uses the tanh approximation."""
    if approximate not in ("none", "tanh"):
        refuse("choice", "gelu: approximate", "'none' or 'tanh'", approximate)
    x = floating(x)
    backend = x.backend
    fast = operation(backend, "gelu")
    if fast:
        return fast(x, approximate)
    x, dtype = widened(x)
    half, one = backend.full((), 0.5, x.dtype), backend.full((), 1, x.dtype)
    if approximate == "tanh":
        cube = backend.binary("mul", backend.binary("mul", x, x), x)
        inner = backend.binary("add", x, backend.binary("mul", cube, backend.full((), 0.044715, x.dtype)))
        bend = backend.unary("tanh", backend.binary("mul", inner, backend.full((), 0.7978845608028654, x.dtype)))
    else:
        bend = backend.unary("erf", backend.binary("mul", x, backend.full((), 0.7071067811865476, x.dtype)))
    return astype(backend.binary("mul", backend.binary("mul", x, half), backend.binary("add", one, bend)), dtype)


#: method; ONNX Softplus; Burn softplus
@composite
def softplus(x, beta=1.0):
    """log(1 + exp(beta * x)) / beta, without overflow."""
    x, dtype = widened(x)
    backend = x.backend
    scale = backend.full((), beta, x.dtype)
    z = backend.binary("mul", x, scale)
    tail = backend.unary("log1p", backend.unary("exp", backend.unary("neg", backend.unary("abs", z))))
    return astype(
        backend.binary(
            "div", backend.binary("add", backend.binary("maximum", z, backend.full((), 0, x.dtype)), tail), scale
        ),
        dtype,
    )


#: method; ONNX Softsign
@composite
def softsign(x):
    """x / (1 + |x|)."""
    x, dtype = widened(x)
    backend = x.backend
    return astype(
        backend.binary("div", x, backend.binary("add", backend.full((), 1, x.dtype), backend.unary("abs", x))), dtype
    )


#: method; Burn log_sigmoid
@composite
def log_sigmoid(x):
    """log(sigmoid(x)), without overflow."""
    x, dtype = widened(x)
    return astype(x.backend.unary("neg", softplus(x.backend.unary("neg", x))), dtype)


#: method; ONNX Mish; Burn mish
@composite
def mish(x):
    """x * tanh(softplus(x))."""
    x, dtype = widened(x)
    return astype(x.backend.binary("mul", x, x.backend.unary("tanh", softplus(x))), dtype)


#: method; ONNX Elu; PyTorch elu
@composite
def elu(x, alpha=1.0):
    """x where it is >= 0, alpha * (exp(x) - 1) elsewhere."""
    x, dtype = widened(x)
    backend = x.backend
    zero = backend.full((), 0, x.dtype)
    low = backend.binary(
        "mul", backend.unary("expm1", backend.binary("minimum", x, zero)), backend.full((), alpha, x.dtype)
    )
    return astype(backend.where(backend.binary("lt", x, zero), low, x), dtype)


#: method; ONNX Selu; PyTorch selu
@composite
def selu(x, alpha=1.6732632423543772, gamma=1.0507009873554805):
    """gamma * elu(x, alpha)."""
    x, dtype = widened(x)
    x = elu(x, alpha)
    return astype(x.backend.binary("mul", x, x.backend.full((), gamma, x.dtype)), dtype)


#: method; ONNX Celu; PyTorch celu
@composite
def celu(x, alpha=1.0):
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    x, dtype = widened(x)
    backend = x.backend
    zero, a = backend.full((), 0, x.dtype), backend.full((), alpha, x.dtype)
    low = backend.binary("mul", backend.unary("expm1", backend.binary("div", backend.binary("minimum", x, zero), a)), a)
    return astype(backend.binary("add", backend.binary("maximum", x, zero), low), dtype)


#: method; ONNX ThresholdedRelu; alpha: float
@composite
def thresholded_relu(x, alpha=1.0):
    """x where it is > alpha, 0 elsewhere."""
    x = floating(x)
    backend = x.backend
    return backend.where(backend.binary("gt", x, backend.full((), alpha, x.dtype)), x, backend.full((), 0, x.dtype))


#: method; ONNX Shrink
@composite
def shrink(x, lambd=0.5, bias=0.0):
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    x = numeric(x, "shrink")
    backend = x.backend
    # ONNX computes the shift in float and truncates it to x's dtype, for integers too.
    wide = floating(x)
    low = backend.binary("add", wide, backend.full((), bias, wide.dtype))
    high = backend.binary("sub", wide, backend.full((), bias, wide.dtype))
    out = backend.where(
        backend.binary("gt", wide, backend.full((), lambd, wide.dtype)), high, backend.full((), 0, wide.dtype)
    )
    out = backend.where(backend.binary("lt", wide, backend.full((), -lambd, wide.dtype)), low, out)
    return out if out.dtype is x.dtype else backend.cast(out, x.dtype)


#: method; PyTorch hardtanh
@composite
def hardtanh(x, min_value=-1.0, max_value=1.0):
    """x clamped to [min_value, max_value]."""
    from .arithmetic import clip

    return clip(x, min_value, max_value)


#: method; ONNX Softmax; Burn softmax
def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along axis; the largest element is subtracted first, so that nothing overflows."""
    x = floating(x)
    axis = axis_of(axis, x.ndim)
    backend = x.backend
    fast = operation(backend, "softmax")
    if fast:
        return fast(x, axis)
    return shares(x, backend.reduce("max", x, (axis,), True), axis)


def shares(x, peak, axis):
    """exp(x - peak) / sum(exp(x - peak)) along axis: softmax for peak = max(x)."""
    backend = x.backend
    # Every step is rounded to x's dtype, as in ONNX, except a sum that would overflow.
    e, dtype = widened(backend.unary("exp", backend.binary("sub", x, peak)))
    total = backend.reduce("sum", e, (axis,), True)
    if e.dtype is not dtype:
        rounded = backend.cast(total, dtype)
        total = backend.where(backend.unary("isinf", rounded), total, backend.cast(rounded, e.dtype))
    return astype(backend.binary("div", e, total), dtype)


#: method; PyTorch softmin; Burn softmin
@composite
def softmin(x, axis=-1):
    """softmax(-x)."""
    x = floating(x)
    return softmax(x.backend.unary("neg", x), axis)


#: method; Burn quiet_softmax
@composite
def quiet_softmax(x, axis=-1):
    """exp(x) / (1 + sum(exp(x))) along axis: attention that may attend to nothing."""
    x, dtype = widened(x)
    axis = axis_of(axis, x.ndim)
    backend = x.backend
    peak = backend.binary("maximum", backend.reduce("max", x, (axis,), True), backend.full((), 0, x.dtype))
    e = backend.unary("exp", backend.binary("sub", x, peak))
    rest = backend.unary("exp", backend.unary("neg", peak))
    return astype(backend.binary("div", e, backend.binary("add", backend.reduce("sum", e, (axis,), True), rest)), dtype)


#: method; ONNX LogSoftmax; Burn log_softmax
def log_softmax(x, axis=-1):
    """log(softmax(x)), without underflow."""
    x, dtype = widened(x)
    axis = axis_of(axis, x.ndim)
    backend = x.backend
    fast = operation(backend, "log_softmax")
    if fast:
        return astype(fast(x, axis), dtype)
    x = backend.binary("sub", x, backend.reduce("max", x, (axis,), True))
    return astype(
        backend.binary("sub", x, backend.unary("log", backend.reduce("sum", backend.unary("exp", x), (axis,), True))),
        dtype,
    )


#: method; ONNX Hardmax
@composite
def hardmax(x, axis=-1):
    """1 at the first largest element along axis, 0 elsewhere."""
    x = numeric(x, "hardmax")
    axis = axis_of(axis, x.ndim)
    if not x.size:
        return x
    backend = x.backend
    best = backend.argreduce("max", x, axis, True)
    along = [1] * x.ndim
    along[axis] = x.shape[axis]
    index = backend.reshape(backend.arange(0, 1, x.shape[axis], dtypes.int64), tuple(along))
    return backend.cast(backend.binary("eq", index, best), x.dtype)


#: method; PyTorch glu
@composite
def glu(x, axis=-1):
    """The first half of x along axis times the sigmoid of the second half."""
    from ..movement.joining import split

    x, dtype = widened(x)
    a, b = split(x, 2, axis)
    return astype(x.backend.binary("mul", a, sigmoid(b)), dtype)


#: function; ONNX SwiGLU
@composite
def swiglu(gate, x, alpha=1.0):
    """swish(gate, alpha) * x, for two tensors of one shape."""
    gate, dtype = widened(gate)
    return astype(gate.backend.binary("mul", swish(gate, alpha), like(x, gate)), dtype)
