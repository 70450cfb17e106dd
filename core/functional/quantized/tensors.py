"""Quantized tensors, which carry their scale and zero point, and the schemes that choose these.

As in Burn, no operation computes with the integers: a `Quantized` operand is dequantized first.
"""

from ... import dtypes
from ...errors import DTypeError, UnsupportedError
from ..operands import alias, floating, is_scalar, tensor
from ..overriding import composite
from .quantization import RANGES, dequantize_linear, quantize_linear


#: class; Burn QuantScheme
class QuantScheme:
    """How `quantize` chooses the scale of a tensor: the result's dtype, and its mode.

    mode: "symmetric" (zero point 0) or "affine". Raises DTypeError unless dtype is an integer of at most 16 bits,
    UnsupportedError for any other mode.
    """

    def __init__(self, dtype="int8", mode="symmetric"):
        self.dtype = dtypes.dtype(dtype)
        self.mode = mode
        if self.dtype.name not in RANGES or self.dtype.bits > 16:
            choices = ", ".join(sorted([n for n in RANGES if n != "int32"]))
            raise DTypeError("cannot quantize to {}; choose one of {}".format(self.dtype, choices))
        if mode not in ("symmetric", "affine"):
            raise UnsupportedError("a scheme's mode is 'symmetric' or 'affine', found {!r}".format(mode))

    @staticmethod
    def named(scheme):
        """The scheme given as a scheme, a mode ("affine") or a dtype ("uint8"); the default for None."""
        if scheme is None or isinstance(scheme, QuantScheme):
            return scheme or QuantScheme()
        if isinstance(scheme, str) and scheme not in dtypes.BY_NAME:
            return QuantScheme("int8", scheme)
        return QuantScheme(scheme)

    def __repr__(self):
        return "QuantScheme({!r}, {!r})".format(self.dtype.name, self.mode)


#: class
class Quantized:
    """A quantized tensor: `values` (integers), `scale` and `zero_point`.

    `dequantize()` returns the real numbers, which operators, functions and methods use as its value.
    """

    def __init__(self, values, scale, zero_point):
        self.values = values
        self.scale = scale
        self.zero_point = zero_point
        self.shape = values.shape
        self.dtype = values.dtype
        self.backend = values.backend

    def dequantize(self):
        """The real numbers: (values - zero_point) * scale."""
        return dequantize_linear(self.values, self.scale, self.zero_point)

    def __repr__(self):
        return "Quantized(shape={}, dtype={}, backend={!r})".format(self.shape, self.dtype, self.backend)

    def __hash__(self):
        return id(self)

    def __array__(self, *args, **options):
        return self.dequantize().__array__(*args, **options)

    def __getattr__(self, name):
        # Its own attributes are only missing while it is being copied.
        if name[:2] == "__" or name in ("values", "scale", "zero_point", "shape", "dtype", "backend"):
            raise AttributeError(name)
        return getattr(self.dequantize(), name)


def _dequantizing(name):
    def method(self, *others):
        others = [v.dequantize() if isinstance(v, Quantized) else v for v in others]
        return getattr(self.dequantize(), name)(*others)

    return method


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul eq ne lt le gt ge "
    "neg pos abs bool int float len getitem iter"
).split():
    setattr(Quantized, "__" + _name + "__", _dequantizing("__" + _name + "__"))


#: method; Burn quantize; scheme: QuantScheme | DType | str; qparams: tuple[TensorLike, TensorLike] -> Quantized
@composite
def quantize(x, scheme=None, qparams=None):
    """x as a `Quantized` tensor. qparams: (scale, zero_point), by default from x's range.

    scheme: a `QuantScheme`, or its mode or dtype alone ("affine", "uint8"); symmetric int8 unless given.
    """
    x = floating(x)
    scheme = QuantScheme.named(scheme)
    backend = x.backend
    low, high = RANGES[scheme.dtype.name]
    if qparams is not None:
        scale, zero_point = qparams
    else:
        axes = tuple(range(x.ndim))
        zero = backend.full((), 0, x.dtype)
        top = backend.binary("maximum", backend.reduce("max", x, axes, False), zero)
        bottom = backend.binary("minimum", backend.reduce("min", x, axes, False), zero)
        if scheme.mode == "symmetric":
            reach = backend.binary("maximum", top, backend.unary("neg", bottom))
            scale = backend.binary("div", reach, backend.full((), high, x.dtype))
        else:
            scale = backend.binary("div", backend.binary("sub", top, bottom), backend.full((), high - low, x.dtype))
        scale = backend.where(backend.binary("eq", scale, zero), backend.full((), 1, x.dtype), scale)
        zero_point = 0
        if scheme.mode != "symmetric":
            zero_point = backend.cast(
                backend.binary(
                    "sub", backend.full((), low, x.dtype), backend.unary("round", backend.binary("div", bottom, scale))
                ),
                scheme.dtype,
            )
    zero_point = backend.full((), zero_point, scheme.dtype) if is_scalar(zero_point) else tensor(zero_point, backend)
    return Quantized(quantize_linear(x, scale, zero_point, dtype=scheme.dtype), tensor(scale, backend), zero_point)


#: method; Burn dequantize; x: TensorLike | Quantized
@composite
def dequantize(x, scale=None, zero_point=None):
    """A `Quantized`, or integers with their scale and zero point, as real numbers. Without a scale, x is not quantized
    and is returned unchanged."""
    if isinstance(x, Quantized):
        return x.dequantize()
    return alias(tensor(x)) if scale is None else dequantize_linear(x, scale, zero_point)
