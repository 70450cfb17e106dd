"""An LSTM whose products are of 8-bit integers: com.microsoft DynamicQuantizeLSTM."""

from ..errors import ShapeError
from .integer_products import centred, integer_product
from .movement import narrow, permute_dims, reshape
from .operands import tensor
from .quantization import dynamic_quantize_linear
from .recurrent import Layer, LstmCell


class _Weight:
    """Quantized weights (directions, rows, columns), their zero points taken off once for all steps."""

    def __init__(self, values, scale, zero_point):
        self.values = tensor(values)
        if self.values.ndim != 3:
            raise ShapeError(
                "dynamic_quantize_lstm: weights {}, expected (directions, rows, columns)".format(self.values.shape)
            )
        self.parts = []
        for i in range(self.values.shape[0]):
            matrix = reshape(narrow(self.values, 0, i, 1), self.values.shape[1:])
            zero = reshape(narrow(tensor(zero_point), 0, i, 1), (-1,))
            self.parts.append((centred(matrix, zero), reshape(narrow(tensor(scale), 0, i, 1), (-1,))))

    def product(self, x, i):
        """x (rows, …) quantized by its range, times the weights of direction i."""
        matrix, scale = self.parts[i]
        values, x_scale, zero_point = dynamic_quantize_linear(x)
        k = x.backend
        total = integer_product(centred(values, zero_point), matrix)
        return k.binary("mul", k.cast(total, x.dtype), k.binary("mul", x_scale, scale))


class _QuantizedLayer(Layer):
    def weights(self, w, r):
        self.quantized_w, self.quantized_r = w, r
        return permute_dims(w.values, (0, 2, 1)), permute_dims(r.values, (0, 2, 1))

    def project(self, x, first, count):
        parts = [reshape(self.quantized_w.product(x, first + i), (1, x.shape[0], -1)) for i in range(count)]
        return x.backend.concat(parts, 0) if count > 1 else parts[0]


class _QuantizedCell(LstmCell):
    """The state is quantized anew at every step, by the range of its whole batch."""

    def back(self, h):
        parts = []
        for i in range(h.shape[0]):
            rows = reshape(narrow(h, 0, i, 1), h.shape[1:])
            parts.append(reshape(self.weight.product(rows, self.first + i), (1, h.shape[1], -1)))
        return self.k.concat(parts, 0) if len(parts) > 1 else parts[0]


def dynamic_quantize_lstm(
    x, w, w_scale, w_zero_point, r, r_scale, r_zero_point, b=None, *, initial_h=None, initial_c=None, peepholes=None,
    sequence_lens=None, direction="forward", activations=None, alphas=(), betas=(), clip=0.0, input_forget=False,
):  # fmt: skip
    """`lstm` with weights of int8 or uint8, w (directions, d_input, 4 * d_hidden) and r (directions, d_hidden, 4 *
    d_hidden): transposed, as `lstm` does not have them. Scales and zero points are (directions,) or (directions, 4 *
    d_hidden). x is quantized by its range, the state at each step by its. Returns (y, last h, last c).
    """
    functions = (activations, alphas, betas, ("Sigmoid", "Tanh", "Tanh"))
    w, r = _Weight(w, w_scale, w_zero_point), _Weight(r, r_scale, r_zero_point)
    layer = _QuantizedLayer("lstm", x, w, r, b, 4, [initial_h, initial_c], sequence_lens, direction, False, functions)
    peepholes = layer.peephole_weights(peepholes)

    def make_cell(fs, turned, bias_x, bias_h, first, count):
        seen = None if peepholes is None else narrow(peepholes, 0, first, count)
        cell = _QuantizedCell(layer, clip, fs, turned, bias_x, bias_h, seen, input_forget)
        cell.weight, cell.first = r, first
        return cell

    return layer.run(make_cell)
