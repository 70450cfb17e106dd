"""Layers with weights of 8, 4 or 2 bits: they are float layers whose weight is a QuantizedWeight.

A QuantizedLinear or QuantizedConv with `input` multiplies integers, exactly, and rounds only the result. `input` is
(scale, zero point) of the uint8 or int8 that it takes; floats are quantized by it, to uint8, or to int8 if the zero
point is negative. "dynamic" quantizes floats by the range that each call has. The result is floats, or, with `output`
(scale, zero point), uint8. The third of `output` names another dtype: int8, or float32 for floats that are multiples
of the scale. The `bias` is a float as well; with `output` it is rounded to a multiple of the scales' product.
"""

from .. import dtypes
from ..errors import ArgumentError
from ..functional.dense import linear
from ..functional.indexing.picking import take
from ..functional.movement.rearranging import reshape
from ..functional.operands import astype
from ..functional.quantized.packed_weights import dequantize_nbits, matmul_nbits
from ..functional.quantized.quantization import dequantize_linear, dynamic_quantize_linear, quantize_linear
from ..functional.quantized.weights import WeightScheme, real_of, scale_of
from .conv import Conv
from .embedding import Embedding
from .linear import Linear
from .params import value, weight
from .quantized_weight import QuantizedWeight, real_of_levels


def _check_grid(name, given, lengths, form, low, high):
    if not isinstance(given, (tuple, list)) or len(given) not in lengths:
        raise ArgumentError("{} is {}, found {!r}".format(name, form, given))
    zero = given[1]
    if not (isinstance(zero, int) or hasattr(zero, "__index__")) or not low <= zero <= high:
        raise ArgumentError(
            "the zero point of {} is an integer from {} to {}, found {!r}".format(name, low, high, zero)
        )
    scale = given[0]
    if not (isinstance(scale, (int, float)) or hasattr(scale, "__float__")) or not 0.0 < float(scale) < float("inf"):
        raise ArgumentError("the scale of {} is a number above 0, found {!r}".format(name, scale))


def _check_output(given):
    """(scale, zero point), or with the dtype of the result."""
    form = '(scale, zero point), or with a third, "uint8", "int8" or "float32"'
    named = str(given[2]) if isinstance(given, (tuple, list)) and len(given) == 3 else "uint8"
    if named not in ("uint8", "int8", "float32"):
        raise ArgumentError("output is {}, found {!r}".format(form, given))
    low = -128 if named == "int8" else 0
    _check_grid("output", given, (2, 3), form, low, low + 255)


class QuantizedLayer:
    """What layers with a QuantizedWeight have in common, beside the float layer's class.

    `_grids` sets input and output: both None, or those of a layer that computes with integers.
    """

    input = output = None  # of layers that quantize_weights makes

    @property
    def bits(self):
        """8, 4 or 2."""
        return self.weight.bits

    @property
    def block_size(self):
        """How many weights of an output, an output channel or an embedding share a scale."""
        return self.weight.block_size

    def keeps(self, name):
        """Whether `cast` leaves a parameter as it is: the bias of a layer of integers stands for integers."""
        return name == "bias" and self.output is not None

    def _packed(self, shape, axis, bits, block_size, affine, dtype, backend):
        scheme = WeightScheme(bits, "affine" if affine else "symmetric", block_size or "channel")
        return QuantizedWeight(shape, axis, scheme, dtype, backend, False, self.input is not None)

    def _grids(self, block_size, input, output):
        dynamic = isinstance(input, str) and input == "dynamic"
        if output is not None and (input is None or dynamic):
            raise ArgumentError(
                "a layer of integers that gives integers has both input=(scale, zero point) and output=(scale, zero "
                "point); {}, or leave output out".format(
                    "give input as well" if input is None else 'give these instead of input="dynamic"'
                )
            )
        if input is not None and not dynamic:
            _check_grid("input", input, (2,), '(scale, zero point) or "dynamic"', -128, 255)
        if output is not None:
            _check_output(output)
        if input is not None and block_size is not None:
            raise ArgumentError(
                "a layer of integers has one scale for each output, not one for each {!r} weights; leave block_size "
                "out, or input and output".format(block_size)
            )
        self.input, self.output = input, output

    def _given(self, x):
        """x as the integers that the layer multiplies, their scale and zero point."""
        if self.input == "dynamic":
            return dynamic_quantize_linear(x)
        scale, zero = self.input
        if x.dtype.is_float:
            x = quantize_linear(x, scale, zero, dtype=dtypes.int8 if zero < 0 else dtypes.uint8)
        return x, scale, zero

    def _levels(self):
        """Levels, scales and zero point of the weight."""
        levels, zero = self.weight.integers()
        return levels, self.weight.scales(), zero

    def _whole_bias(self, scales):
        """The bias as int32 multiples of the scales' products, or None."""
        bias = value(self.bias)
        if bias is None:  # by primitives: each function would cost as much again as the layer's few elements
            return None
        backend = scales.backend
        step = backend.binary("mul", scales, backend.full((), self.input[0], dtypes.float32))
        real = backend.binary("div", astype(bias, dtypes.float32), step)
        return backend.cast(backend.unary("round", real), dtypes.int32)

    def _dtype(self):
        """The dtype to which the result is quantized."""
        named = dtypes.dtype(self.output[2]) if len(self.output) > 2 else dtypes.uint8
        return named if named.is_integer else dtypes.uint8

    def _result(self, y):
        """Levels of the output in the dtype that it names."""
        if len(self.output) < 3 or dtypes.dtype(self.output[2]).is_integer:
            return y
        return dequantize_linear(y, *self.output[:2])


class QuantizedLinear(QuantizedLayer, Linear):
    """A Linear with a QuantizedWeight, which products read a few columns at a time, on every backend.

    x (…, d_input) -> (…, d_output). bits: 8, 4 or 2; block_size: how many of an output's weights share a scale
    (None: all); affine: with zero points; input, without block_size: (scale, zero point) of the uint8 or int8 that
    it multiplies, to which it quantizes floats, or "dynamic", by the range of each call; output: (scale, zero
    point) of the uint8 that it gives, with a third for "int8", or for "float32" on that grid; None: floats.
    `Module.quantize_weights` makes these of Linear. Raises ArgumentError for other inputs and outputs, an output
    without (scale, zero point) of the input, and an input with a block_size.
    """

    SHOWN = "d_input d_output bias bits block_size input? output?"

    def __init__(
        self, d_input, d_output, bias=True, bits=8, block_size=None, affine=False, dtype=None, backend=None, input=None,
        output=None,
    ):  # fmt: skip
        self._grids(block_size, input, output)
        self.d_input = d_input
        self.d_output = d_output
        self.weight = self._packed((d_input, d_output), 1, bits, block_size, affine, dtype, backend)
        self.bias = weight((d_output,), (d_input, d_output), dtype, backend) if bias else None

    def forward(self, x):
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""
        w = self.weight
        if self.input is None and (w.scheme.value is not None or w.levels is not None or w._keeps()):
            return linear(x, w.val(), value(self.bias))
        if w.input_scale is not None:
            x = x * w.input_scale.val().astype(x.dtype)
        if self.input is not None:
            return self._of_integers(x)
        return matmul_nbits(
            x, w.values.val(), w.scales(), value(w.zero_point), bias=value(self.bias),
            rows=self.d_input, columns=self.d_output, bits=w.bits, block_size=w.block_size,
        )  # fmt: skip

    def _of_integers(self, x):
        from ..functional.quantized.integer_products import matmul_integer_to_float, qgemm

        x, scale, zero = self._given(x)
        levels, scales, w_zero = self._levels()
        if self.output is None:
            return matmul_integer_to_float(x, levels, scale, scales, zero, w_zero, value(self.bias))
        bias, out = self._whole_bias(scales), self.output[:2]
        return self._result(qgemm(x, scale, zero, levels, scales, w_zero, bias, *out, dtype=self._dtype()))


class QuantizedConv(QuantizedLayer, Conv):
    """Base of the convolutions with a QuantizedWeight, which is dequantized when they run.

    bits: 8, 4 or 2; block_size: how many of an output channel's weights share a scale (None: all); affine: with zero
    points; input, output: as of QuantizedLinear; everything else as in Conv. `Module.quantize_weights` makes these of
    convolutions. Raises ArgumentError as QuantizedLinear does.
    """

    SHOWN = "stride kernel_size dilation groups padding bits block_size input? output?"

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        bits=8, block_size=None, affine=False, dtype=None, backend=None, input=None, output=None,
    ):  # fmt: skip
        self._grids(block_size, input, output)
        Conv.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, backend
        )
        self.weight = self._packed(self.weight.shape, 0, bits, block_size, affine, dtype, backend)

    def forward(self, x):
        """x (n, in_channels, *spatial) -> (n, out_channels, *spatial'), or, of floats, both without n. Raises
        ShapeError if x does not fit."""
        if self.input is None:
            return Conv.forward(self, x)
        from ..functional.quantized.integer_products import conv_integer_to_float, qlinear_conv

        x, scale, zero = self._given(x)
        levels, scales, w_zero = self._levels()
        window = self.stride, self.padding, self.dilation, self.groups
        if self.output is None:
            return conv_integer_to_float(x, levels, scale, scales, zero, w_zero, value(self.bias), *window)
        bias, out = self._whole_bias(scales), self.output[:2]
        return self._result(
            qlinear_conv(x, scale, zero, levels, scales, w_zero, *out, bias, *window, dtype=self._dtype())
        )


class QuantizedConv1d(QuantizedConv):
    """x (n, in_channels, length)."""

    RANK = 1


class QuantizedConv2d(QuantizedConv):
    """x (n, in_channels, height, width)."""

    RANK = 2


class QuantizedConv3d(QuantizedConv):
    """x (n, in_channels, depth, height, width)."""

    RANK = 3


class QuantizedEmbedding(QuantizedLayer, Embedding):
    """An Embedding with a QuantizedWeight, of which only the rows that are looked up are dequantized.

    bits: 8, 4 or 2; block_size: how many of a row's weights share a scale (None: all); affine: with zero points.
    `Module.quantize_weights` makes these of Embedding.
    """

    SHOWN = "num_embeddings d_model bits block_size"

    def __init__(self, num_embeddings, d_model, bits=8, block_size=None, affine=False, dtype=None, backend=None):
        self.num_embeddings = num_embeddings
        self.d_model = d_model
        self.weight = self._packed((num_embeddings, d_model), 0, bits, block_size, affine, dtype, backend)

    def forward(self, x):
        """x (…) of integers -> (…, d_model), floats. python and numpy raise IndexingError for an index out of range."""
        w = self.weight
        if not self.d_model:
            return Embedding.forward(self, x)
        at = reshape(x, (-1 if x.size else 0,))
        blocks = w.values.shape[1]

        def rows(part, at):
            return None if part is None else reshape(take(reshape(part, (-1, blocks)), at, axis=0), (-1,))

        values = take(w.values.val(), at, axis=0)
        groups = at
        if w.rows > 1:
            groups = at.astype(dtypes.int32)
            groups = groups.backend.where(groups < 0, groups + self.num_embeddings, groups) // w.rows
        scales = scale_of(rows(w.scale.val(), groups), value(w.tensor_scale))
        if w.levels is not None:
            real = real_of_levels(values, w, scales)
        elif w.scheme.value is not None:
            real = real_of(values, reshape(scales, (at.size, blocks)), self.d_model)
        else:
            real = dequantize_nbits(
                values, scales, rows(value(w.zero_point), at), rows=self.d_model, columns=at.size, bits=w.bits,
                block_size=w.block_size,
            )  # fmt: skip
        return reshape(real, tuple(x.shape) + (self.d_model,)).astype(w.dtype)
