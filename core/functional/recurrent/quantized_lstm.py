"""An LSTM with products of 8-bit integers: com.microsoft DynamicQuantizeLSTM."""

from ... import dtypes
from ...backend import operation
from ...errors import ShapeError
from ..movement.rearranging import narrow, permute_dims, reshape
from ..operands import astype, tensor
from ..overriding import composite
from ..quantized.integer_products import centered, integer_product, scale_of
from .layers import Layer, LstmCell


def _quantized_rows(x):
    """(int32 values minus their zero point, scale): each row of x quantized to 8 bits over its range, extended to
    include 0."""
    backend = x.backend
    zero, top = backend.full((), 0, x.dtype), backend.full((), 255, x.dtype)
    high = backend.binary("maximum", backend.reduce("max", x, (1,), True), zero)
    low = backend.binary("minimum", backend.reduce("min", x, (1,), True), zero)
    scale = backend.binary("div", backend.binary("sub", high, low), top)
    scale = backend.where(backend.binary("eq", scale, zero), backend.full((), 1, x.dtype), scale)
    point = backend.unary("round", backend.binary("div", backend.unary("neg", low), scale))
    values = backend.binary("add", backend.unary("round", backend.binary("div", x, scale)), point)
    values = backend.binary("minimum", backend.binary("maximum", values, zero), top)
    if getattr(backend, "multiplies_bytes", False):
        return centered(backend.cast(values, dtypes.uint8), backend.cast(point, dtypes.uint8)), scale
    return backend.cast(backend.binary("sub", values, point), dtypes.int32), scale


class _Weight:
    """Quantized weights (directions, rows, columns), with their zero points subtracted once for all steps."""

    def __init__(self, values, scale, zero_point):
        self.values = tensor(values)
        if self.values.ndim != 3:
            raise ShapeError(
                "dynamic_quantize_lstm: weights {}, expected (directions, rows, columns)".format(self.values.shape)
            )
        self.parts = []
        scale = scale_of(scale, self.values.backend)
        for i in range(self.values.shape[0]):
            matrix = reshape(narrow(self.values, 0, i, 1), self.values.shape[1:])
            zero = reshape(narrow(tensor(zero_point), 0, i, 1), (-1,))
            self.parts.append((centered(matrix, zero), reshape(narrow(scale, 0, i, 1), (-1,))))

    def product(self, values, x_scale, i):
        """Integers (rows, …) @ the weights of direction i, times both scales."""
        matrix, scale = self.parts[i]
        backend = x_scale.backend
        total = backend.cast(integer_product(values, matrix), x_scale.dtype)
        return backend.binary("mul", total, backend.binary("mul", x_scale, astype(scale, x_scale.dtype)))


class _QuantizedLayer(Layer):
    def weights(self, w, r):
        self.quantized_w, self.quantized_r = w, r
        return permute_dims(w.values, (0, 2, 1)), permute_dims(r.values, (0, 2, 1))

    def project(self, x, first, count):
        # All steps of all sequences are quantized together.
        values, scale = _quantized_rows(reshape(x, (1, x.size)))
        values, w = reshape(values, x.shape), self.quantized_w
        shape = (1, x.shape[0], w.values.shape[2])
        parts = [reshape(w.product(values, scale, first + i), shape) for i in range(count)]
        return x.backend.concat(parts, 0) if count > 1 else parts[0]


class _QuantizedCell(LstmCell):
    """The state is quantized anew at every step, separately for each sequence. (onnxruntime splits the batch among its
    threads, and quantizes the sequences of one thread together.)"""

    def all_steps(self):
        fast = operation(self.backend, "quantized_lstm_steps")
        if fast is None or self.dtype is not dtypes.float32 or not self.plain():
            return None
        parts = self.weight.parts[self.first : self.first + self.r.shape[0]]
        weights = [astype(reshape(matrix, (1,) + matrix.shape), self.dtype) for matrix, _ in parts]
        scales = [astype(reshape(scale, (1, 1, scale.size)), self.dtype) for _, scale in parts]
        both = [self.backend.concat(x, 0) if len(x) > 1 else x[0] for x in (weights, scales)]
        return lambda part, states, backwards: fast(part, both[0], both[1], states, backwards)

    def back(self, h):
        parts = []
        for i in range(h.shape[0]):
            values, scale = _quantized_rows(reshape(narrow(h, 0, i, 1), h.shape[1:]))
            parts.append(
                reshape(
                    self.weight.product(values, scale, self.first + i), (1, h.shape[1], self.weight.values.shape[2])
                )
            )
        return self.backend.concat(parts, 0) if len(parts) > 1 else parts[0]


#: function; com.microsoft DynamicQuantizeLSTM -> tuple[Tensor, Tensor, Tensor]
@composite
def dynamic_quantize_lstm(
    x, w, w_scale, w_zero_point, r, r_scale, r_zero_point, b=None, *, initial_h=None, initial_c=None, peepholes=None,
    sequence_lens=None, direction="forward", activations=None, alphas=(), betas=(), clip=0.0, input_forget=False,
):  # fmt: skip
    """`lstm` with weights of int8 or uint8, w (directions, d_input, 4 * d_hidden) and r (directions, d_hidden, 4 *
    d_hidden): transposed with respect to `lstm`. Scales and zero points are (directions,) or (directions, 4 *
    d_hidden). x is quantized by its own range, and so is the state at each step. Returns (y, last h, last c).
    """
    functions = (activations, alphas, betas, ("Sigmoid", "Tanh", "Tanh"))
    w, r = _Weight(w, w_scale, w_zero_point), _Weight(r, r_scale, r_zero_point)
    layer = _QuantizedLayer("lstm", x, w, r, b, 4, [initial_h, initial_c], sequence_lens, direction, False, functions)
    peepholes = layer.peephole_weights(peepholes)

    def make_cell(fs, turned, bias_x, bias_h, first, count):
        seen = None if peepholes is None else narrow(peepholes, 0, first, count)
        cell = _QuantizedCell(layer, clip, fs, turned, bias_x, bias_h, seen, input_forget)
        cell.weight, cell.first, cell.matrices = r, first, []
        return cell

    return layer.run(make_cell)
