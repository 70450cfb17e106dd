"""Dense layers with weights packed in 8, 4 or 2 bits, and one that only emulates them."""

from ..backend import operation
from ..functional.dense import linear
from ..functional.movement.rearranging import reshape
from ..functional.quantized.packed_weights import matmul_nbits
from ..functional.quantized.weights import WeightScheme, fake_quantize, pack_levels, quantize_weight
from ..module import Module
from ..param import Param
from .params import constant, value


class QuantizedLinear(Module):
    """y = x @ weight + bias with a quantized weight, for x (…, d_input) -> (…, d_output), on every backend.

    weight: uint8 (d_output, blocks, block_size * bits / 8), the first level of a byte in its lowest bits; scale:
    float32 (d_output * blocks,); zero_point: like scale, or None for symmetric weights; bias: (d_output,) or None.
    scheme: the WeightScheme by which float weights are quantized as they load.
    `Module.quantize_weights` makes these from Linear.
    """

    SHOWN = "d_input d_output bias bits block_size"

    def __init__(self, d_input, d_output, bias=True, bits=8, block_size=None, affine=False, dtype=None, backend=None):
        self.scheme = WeightScheme(bits, "affine" if affine else "symmetric", block_size or "channel")
        size = self.scheme.block_size(d_input)
        count = (d_input + size - 1) // size
        self.d_input = d_input
        self.d_output = d_output
        self.bits = bits
        self.block_size = size
        self.weight = constant((d_output, count, size * bits // 8), 0, "uint8", backend, False)
        self.scale = constant((d_output * count,), 1, "float32", backend, False)
        self.zero_point = constant((d_output * count,), 1 << (bits - 1), "float32", backend, False) if affine else None
        self.bias = constant((d_output,), 0, dtype, backend) if bias else None

    @staticmethod
    def from_linear(layer, scheme):
        """A Linear's weights, quantized by a WeightScheme; the bias is shared."""
        weight = layer.weight.val()
        levels, scales, zero = quantize_weight(weight, scheme)
        block = scheme.level if isinstance(scheme.level, int) else None
        affine = scheme.mode == "affine"
        made = QuantizedLinear(*weight.shape, False, scheme.bits, block, affine, backend=weight.backend)
        made.weight = Param(pack_levels(levels, scheme.bits), require_grad=False)
        made.scale = Param(reshape(scales, (-1,)), require_grad=False)
        if affine:
            made.zero_point = Param(reshape(zero, (-1,)), require_grad=False)
        made.bias = layer.bias
        made.scheme = scheme
        return made

    def forward(self, x):
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""
        return matmul_nbits(
            x, self.weight.val(), self.scale.val(), value(self.zero_point), bias=value(self.bias),
            rows=self.d_input, columns=self.d_output, bits=self.bits, block_size=self.block_size,
        )  # fmt: skip


class FakeQuantizedLinear(Module):
    """A Linear that computes with its weight quantized and dequantized, while the weight itself stays as it is: for
    quantization-aware training, where the gradient passes straight through to the weight, and for measuring the loss of
    accuracy.

    layer: a Linear; scheme: a WeightScheme, by default symmetric, 8 bits, one scale per output.
    """

    def __init__(self, layer, scheme=None):
        self.layer = layer
        self.scheme = scheme or WeightScheme()

    def forward(self, x):
        """x (…, d_input) -> (…, d_output)."""
        weight = self.layer.weight.val()
        train = operation(weight.backend, "train_quantized")
        weight = train(weight, self._quantized) if train else self._quantized(weight)
        return linear(x, weight, value(self.layer.bias))

    def _quantized(self, weight):
        return fake_quantize(weight, self.scheme).astype(weight.dtype)
