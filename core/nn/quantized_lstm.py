"""Long short-term memory whose products are of 8-bit integers, as onnxruntime's dynamic quantization writes it."""

from .. import dtypes
from ..functional.recurrent.quantized_lstm import dynamic_quantize_lstm
from .gate import joined_biases, packed, stacked
from .lstm import BiLstm, Lstm
from .quantized_layers import QuantizedLinear


def _integers(directions):
    """The arguments of `functional.dynamic_quantize_lstm` after x: levels, scales and zero points of both weights, and
    the biases."""
    given = []
    for part in ("input_transform", "hidden_transform"):
        levels, scales, zeros = [], [], []
        for gates in directions:
            weights = [getattr(gate, part).weight for gate in gates]
            pairs = [weight.integers() for weight in weights]
            levels.append([pair[0] for pair in pairs])
            scales.append([weight.scales() for weight in weights])
            zeros.append([pair[1] for pair in pairs])
        backend = levels[0][0].backend
        middle = isinstance(zeros[0][0], int)
        points = backend.full((len(directions),), zeros[0][0], dtypes.uint8) if middle else stacked(zeros)
        given += [stacked(levels, 1), stacked(scales), points]
    return tuple(given) + (joined_biases(directions),)


class _IntegerSteps:
    def _steps(self, x, directions, **options):
        return dynamic_quantize_lstm(x, *packed(self, directions, _integers), **options)


class QuantizedLstm(_IntegerSteps, Lstm):
    """An Lstm with weights of 8 bits that multiplies integers: its input is quantized by the range of each call, its
    hidden state at each step, for each sequence by itself. All else is that of Lstm; com.microsoft
    DynamicQuantizeLSTM.

    Both transforms of each gate are a QuantizedLinear with input="dynamic"; affine: with zero points.
    """

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, reverse=False, clip=None, input_forget=False,
        affine=False, dtype=None, backend=None,
    ):  # fmt: skip
        Lstm.__init__(self, d_input, d_hidden, bias, batch_first, reverse, clip, input_forget, dtype, backend)
        for gate in self.gates():
            for name, width in (("input_transform", d_input), ("hidden_transform", d_hidden)):
                layer = QuantizedLinear(width, d_hidden, bias, 8, None, affine, dtype, backend, "dynamic")
                setattr(gate, name, layer)


class QuantizedBiLstm(_IntegerSteps, BiLstm):
    """Two QuantizedLstm layers, one reading forwards and one backwards: inputs, outputs and states are those of
    BiLstm."""

    SHOWN = "d_input d_hidden bias"

    def __init__(
        self, d_input, d_hidden, bias=True, batch_first=True, clip=None, input_forget=False, affine=False, dtype=None,
        backend=None,
    ):  # fmt: skip
        BiLstm.__init__(self, d_input, d_hidden, bias, batch_first, clip, input_forget, dtype, backend)
        rest = (clip, input_forget, affine, dtype, backend)
        self.forward_layer = QuantizedLstm(d_input, d_hidden, bias, batch_first, False, *rest)
        self.reverse_layer = QuantizedLstm(d_input, d_hidden, bias, batch_first, True, *rest)
