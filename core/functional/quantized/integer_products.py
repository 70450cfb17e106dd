"""Products and convolutions of 8-bit integers: ONNX MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv, and their
com.microsoft relatives.

Zero points are subtracted first, so that padding with zeros is padding with the zero point. Sums are int32; a backend
may override them (`matmul_8bit`, `conv_8bit`, with int32 operands within ±255).
"""

from ... import dtypes
from ...backend import operation
from ...errors import DTypeError, ShapeError, refuse
from ..convolution import padding_pairs
from ..linear_algebra.products import matmul
from ..movement.rearranging import permute_dims, reshape
from ..operands import astype, floating, is_scalar, tensor
from ..overriding import composite, one_backend
from ..windows.padding_rules import cropped
from ..windows.steps import steps
from .quantization import dynamic_quantize_linear, quantize_linear, to_levels


def centered(x, zero_point, shape=None):
    """x minus its zero point, in int32; `shape` broadcasts a zero point of several values. Raises DTypeError for a zero
    point that x's dtype does not hold, ShapeError for one that has more values than x along an axis."""
    x = tensor(x)
    if not x.dtype.is_integer or x.dtype.bits > 8:
        raise DTypeError("expected integers of at most 8 bits, found {}".format(x.dtype))
    if zero_point is None:
        return _less(x, None)
    zero = tensor(zero_point, x.backend)
    if not zero.dtype.is_integer:
        raise DTypeError("a zero point is an integer, found {}".format(zero.dtype))
    low, high = (zero_point, zero_point) if is_scalar(zero_point) else zero.dtype.range
    if low < x.dtype.range[0] or high > x.dtype.range[1]:
        found = zero_point if is_scalar(zero_point) else zero.dtype
        raise DTypeError("a zero point of {0} is {0}, found {1}".format(x.dtype, found))
    zero = astype(zero, dtypes.int32)
    if zero.size == 1:
        zero = reshape(zero, ())
    elif shape is not None and zero.ndim == 1:
        zero = reshape(zero, shape)
    extra = zero.ndim - x.ndim
    if extra > 0 or [i for i in range(zero.ndim) if x.shape[i - extra] == 1 != zero.shape[i]]:
        raise ShapeError("a zero point of shape {} does not fit integers of shape {}".format(zero.shape, x.shape))
    return _less(x, zero)


def _less(x, zero):
    """x - zero, int32 or None, in int32."""
    backend = x.backend
    fast = operation(backend, "centered_levels")
    if fast:
        return fast(x, zero)
    out = backend.cast(x, dtypes.int32)
    return out if zero is None else backend.binary("sub", out, zero)


def scale_of(value, backend):
    """A scale as a tensor; a number becomes float32. Raises DTypeError for a tensor that is not of floats."""
    scale = backend.full((), value, dtypes.float32) if is_scalar(value) else tensor(value, backend)
    if not scale.dtype.is_float:
        raise DTypeError("a scale is a float, found {}".format(scale.dtype))
    return scale


def _scales(a_scale, b_scale, backend):
    """The scale of a sum: a_scale of rows times b_scale of columns, in the wider of their dtypes."""
    a_scale, b_scale = _column(scale_of(a_scale, backend)), scale_of(b_scale, backend)
    dtype = dtypes.promote(a_scale.dtype, b_scale.dtype)
    return backend.binary("mul", astype(a_scale, dtype), astype(b_scale, dtype))


def _sums(value, backend):
    """What is added to int32 sums, as int32. Raises DTypeError unless it is of integers."""
    value = tensor(value, backend)
    if not value.dtype.is_integer:
        raise DTypeError("integers are added to integer products, found {}".format(value.dtype))
    return astype(value, dtypes.int32)


def _column(values):
    """The scale of a left operand: one value per row."""
    return reshape(values, (values.size, 1)) if values.ndim == 1 and values.size > 1 else values


def integer_product(a, b):
    """a @ b of int32 within ±255."""
    backend = a.backend
    fast = operation(backend, "matmul_8bit")
    if fast and a.ndim > 1 and b.ndim > 1 and a.shape[-1] == b.shape[-2]:
        return fast(a, b)
    return matmul(a, b)


#: function; ONNX MatMulInteger
@composite
def matmul_integer(a, b, a_zero_point=None, b_zero_point=None):
    """(a - a_zero_point) @ (b - b_zero_point) in int32, for a (…, m, k) and b (…, k, n) of int8 or uint8.

    A zero point is one value, one per row of a (m,) or per column of b (n,), or a tensor (…, m, 1) or (…, 1, n) that
    broadcasts.
    """
    return integer_product(centered(a, a_zero_point, (-1, 1)), centered(b, b_zero_point))


#: function
@composite
def requantize(total, scale, zero_point, dtype=None):
    """int32 sums times a float scale, rounded half to even, plus the zero point, saturated to dtype: by default the
    zero point's, or uint8 if that is a number."""
    backend = total.backend
    scale = floating(scale)
    real = backend.binary("mul", backend.cast(total, scale.dtype), scale)
    if is_scalar(zero_point):
        return to_levels(real, backend.full((), zero_point, real.dtype), dtypes.dtype(dtype or dtypes.uint8))
    zero_point = tensor(zero_point, backend)
    if zero_point.size == 1:
        zero_point = reshape(zero_point, ())
    return to_levels(
        real, backend.cast(zero_point, real.dtype), zero_point.dtype if dtype is None else dtypes.dtype(dtype)
    )


def _ratio(a_scale, b_scale, y_scale):
    """a_scale * b_scale / y_scale in float32."""
    backend = a_scale.backend
    a_scale, b_scale, y_scale = [astype(s, dtypes.float32) for s in (a_scale, b_scale, y_scale)]
    return backend.binary("div", backend.binary("mul", a_scale, b_scale), y_scale)


#: function; ONNX QLinearMatMul
@composite
def qlinear_matmul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point, dtype=None):
    """Quantized matrix product: dequantized a @ dequantized b, quantized by y_scale and y_zero_point.

    Scales and zero points are numbers, tensors of one value, or of one per row of a and per column of b. dtype: the
    result's, by default the zero point's (ONNX QLinearMatMul).
    """
    total = matmul_integer(a, b, a_zero_point, b_zero_point)
    backend = total.backend
    scale = _ratio(_column(scale_of(a_scale, backend)), scale_of(b_scale, backend), _column(scale_of(y_scale, backend)))
    return requantize(total, scale if scale.size > 1 else reshape(scale, ()), y_zero_point, dtype)


#: function; com.microsoft MatMulIntegerToFloat
@composite
def matmul_integer_to_float(a, b, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None):
    """`matmul_integer` times both scales, plus bias, in the wider of the scales' dtypes (com.microsoft
    MatMulIntegerToFloat). Raises DTypeError unless scales are floats and zero points integers."""
    total = matmul_integer(a, b, a_zero_point, b_zero_point)
    backend = total.backend
    scale = _scales(a_scale, b_scale, backend)
    out = backend.binary("mul", backend.cast(total, scale.dtype), scale if scale.size > 1 else reshape(scale, ()))
    return out if bias is None else backend.binary("add", out, astype(tensor(bias, backend), out.dtype))


#: function; com.microsoft DynamicQuantizeMatMul
@composite
def dynamic_quantize_matmul(x, b, b_scale, b_zero_point=None, bias=None):
    """x @ dequantized b, with x dynamically quantized to uint8 (com.microsoft DynamicQuantizeMatMul). Raises DTypeError
    unless b_scale is of floats and b_zero_point of integers."""
    values, scale, zero_point = dynamic_quantize_linear(x)
    return matmul_integer_to_float(values, b, scale, b_scale, zero_point, b_zero_point, bias)


#: function; com.microsoft QGemm
@composite
def qgemm(
    a, a_scale, a_zero_point, b, b_scale, b_zero_point, c=None, y_scale=None, y_zero_point=None, *, alpha=1.0,
    trans_a=False, trans_b=False, dtype=None,
):  # fmt: skip
    """alpha * a' @ b' + c of quantized matrices, with c in int32 at the scale of the sum (com.microsoft QGemm).

    If y_scale and y_zero_point are given, the result is quantized to dtype (by default the zero point's), else it is
    float32.
    """
    a, b = tensor(a), tensor(b)
    total = matmul_integer(
        permute_dims(a, (1, 0)) if trans_a else a, permute_dims(b, (1, 0)) if trans_b else b, a_zero_point, b_zero_point
    )
    backend = total.backend
    if c is not None:
        total = backend.binary("add", total, _sums(c, backend))
    scale = _scales(a_scale, b_scale, backend)
    if alpha != 1.0:
        scale = backend.binary("mul", scale, backend.full((), alpha, scale.dtype))
    if y_scale is None:
        return backend.binary("mul", backend.cast(total, scale.dtype), scale)
    y_scale = astype(scale_of(y_scale, backend), scale.dtype)
    return requantize(total, backend.binary("div", scale, y_scale), y_zero_point, dtype)


#: function; ONNX ConvInteger
@composite
def conv_integer(x, weight, x_zero_point=None, w_zero_point=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation of x - x_zero_point with weight - w_zero_point in int32; shapes and options as in `conv`.

    w_zero_point is one value or one per output channel. Raises ShapeError if the shapes do not match.
    """
    x, weight = tensor(x), tensor(weight)
    n = x.ndim - 2
    if n < 1 or weight.ndim != x.ndim or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(
            "conv_integer: input {} does not fit weight {}, {} groups".format(x.shape, weight.shape, groups)
        )
    stride, dilation = steps(stride, n, "stride"), steps(dilation, n, "dilation")
    padding = padding_pairs(padding, n, weight.shape[2:], dilation, stride, x)
    if [p for p in padding if p[0] < 0 or p[1] < 0]:
        x, padding = cropped(x, padding)
    for i in range(n):
        if x.shape[i + 2] + sum(padding[i]) < dilation[i] * (weight.shape[i + 2] - 1) + 1:
            refuse("kernel", "conv_integer", weight.shape[2:], x.shape, padding)
    x = centered(x, x_zero_point)
    weight = centered(weight, w_zero_point, (-1,) + (1,) * (n + 1))
    convolve = operation(x.backend, "conv_8bit") or x.backend.conv
    return convolve(x, weight, None, stride, padding, dilation, groups)


def conv_integer_to_float(x, weight, x_scale, w_scale, x_zero_point, w_zero_point, bias, *window):
    """`conv_integer` times both scales, plus a bias (m,) or None, as floats. window: stride, padding, dilation and
    groups."""
    total = conv_integer(x, weight, x_zero_point, w_zero_point, *window)
    backend = total.backend
    spread = (-1,) + (1,) * (total.ndim - 2)
    x_scale, w_scale = reshape(scale_of(x_scale, backend), ()), scale_of(w_scale, backend)
    scale = backend.binary("mul", astype(x_scale, w_scale.dtype), w_scale)
    out = backend.binary("mul", backend.cast(total, scale.dtype), reshape(scale, spread if scale.size > 1 else ()))
    return out if bias is None else backend.binary("add", out, reshape(astype(bias, out.dtype), spread))


#: function; ONNX QLinearConv
@composite
def qlinear_conv(
    x, x_scale, x_zero_point, weight, w_scale, w_zero_point, y_scale, y_zero_point, bias=None, stride=1, padding=0,
    dilation=1, groups=1, dtype=None,
):  # fmt: skip
    """Quantized convolution: `conv` of the dequantized x and weight, quantized by y_scale and y_zero_point.

    bias (m,) is int32 at scale x_scale * w_scale; w_scale and w_zero_point are one value or one per output channel.
    Scales and zero points are tensors or numbers; dtype: the result's, by default the zero point's (ONNX QLinearConv).
    """
    total = conv_integer(x, weight, x_zero_point, w_zero_point, stride, padding, dilation, groups)
    backend = total.backend
    spread = (-1,) + (1,) * (total.ndim - 2)
    if bias is not None:
        bias = _sums(bias, backend)
        if bias.shape != total.shape[1:2]:
            raise ShapeError(
                "qlinear_conv: a bias of shape {} does not fit {} channels".format(bias.shape, total.shape[1])
            )
        total = backend.binary("add", total, reshape(bias, spread))
    x_scale, y_scale = [reshape(scale_of(s, backend), ()) for s in (x_scale, y_scale)]
    scale = _ratio(x_scale, scale_of(w_scale, backend), y_scale)
    return requantize(total, reshape(scale, spread if scale.size > 1 else ()), y_zero_point, dtype)


#: function; function: Callable[..., Tensor]; inputs: Sequence[Sequence[Any]] -> Tensor
@one_backend
def qlinear(function, inputs, y_scale, y_zero_point):
    """Any function on quantized tensors: `inputs` are (values, scale, zero_point). `function` gets the dequantized
    inputs, and its result is quantized by y_scale and y_zero_point (com.microsoft QLinearAdd, QLinearSigmoid, …)."""
    from .quantization import dequantize_linear

    return quantize_linear(function(*[dequantize_linear(*i) for i in inputs]), floating(y_scale), y_zero_point)
