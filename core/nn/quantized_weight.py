"""The weights of layers in 8, 4 or 2 bits, and weights that only compute as if they were."""

from .. import dtypes
from ..backend import operation
from ..errors import ShapeError
from ..functional.dense import linear
from ..functional.indexing.picking import take
from ..functional.movement.rearranging import reshape
from ..functional.quantized.packed_weights import dequantize_nbits, matmul_nbits
from ..functional.quantized.weights import (
    WeightScheme,
    as_rows,
    fake_quantize,
    from_rows,
    pack_levels,
    quantize_rows,
    real_of,
    scale_of,
    spread,
)
from ..module import Module
from ..param import Param
from .embedding import Embedding
from .linear import Linear
from .params import constant, value, weight


class QuantizedWeight(Module):
    """A layer's weight in 8, 4 or 2 bits, in the place of its Param: `val()` returns the weight, dequantized.

    shape: that of the weight; axis: its axis of channels; scheme: the WeightScheme by which float weights are quantized
    as they load. values: uint8 (channels, blocks, block_size * bits / 8), the first level of a byte in its lowest bits,
    or (channels, blocks, block_size) in the scheme's float dtype; scale: (channels * blocks,) in the scheme's dtype, in
    square blocks one for as many channels as weights; tensor_scale: None, or one float32 that all scales are multiplied
    by; zero_point: float32 (channels * blocks,), or None for symmetric weights; levels: None, or the float32 (16,) that
    the values number (nf4); input_scale: None, or float32 (d_input,), what each input of a dense layer is multiplied by
    before the product with the packed weight, 1 until it is set (AWQ).
    `Module.quantize_weights` makes these. Raises ShapeError for a negative size.
    """

    SHOWN = "shape axis bits block_size"

    def __init__(self, shape, axis=0, scheme=None, dtype=None, backend=None, input_scale=False):
        self.shape = tuple(shape)
        if any(n < 0 for n in self.shape):
            raise ShapeError("a shape has no negative sizes, found {}".format(self.shape))
        self.axis = axis
        self.scheme = scheme or WeightScheme()
        self.dtype = dtypes.float32 if dtype is None else dtypes.dtype(dtype)
        channels = self.shape[axis]
        count = 1
        for i in range(len(self.shape)):
            count *= 1 if i == axis else self.shape[i]
        self.count = count  # weights of a channel
        self.bits = self.scheme.bits
        self.block_size = self.scheme.block_size(count)
        blocks = (count + self.block_size - 1) // self.block_size
        width = self.block_size if self.scheme.value else self.block_size * self.bits // 8
        affine = self.scheme.mode == "affine"
        self.values = constant((channels, blocks, width), 0, self.scheme.value or "uint8", backend, False)
        self.rows = self.scheme.rows_of(count)
        groups = (channels + self.rows - 1) // self.rows
        self.scale = constant((groups * blocks,), 1, self.scheme.scale, backend, False)
        self.tensor_scale = constant((), 1, "float32", backend, False) if self.scheme.two_levels else None
        middle = 1 << (self.bits - 1)
        self.zero_point = constant((channels * blocks,), middle, "float32", backend, False) if affine else None
        self.input_scale = constant(self.shape[:1], 1, "float32", backend, False) if input_scale else None
        self.levels = constant((16,), 0, "float32", backend, False) if self.scheme.codebook else None
        if self.levels is not None:
            from ..functional.quantized.codebooks import CODEBOOKS

            table = list(CODEBOOKS[self.scheme.codebook])
            self.levels.set(self.levels.val().backend.from_list(table, dtypes.float32, (16,)))

    @staticmethod
    def of(param, axis, scheme, input_scale=False):
        """The weight of a Param, quantized by a WeightScheme: when it is first used if the Param is lazy."""
        made = QuantizedWeight(param.shape, axis, scheme, param.dtype, param.backend, input_scale)
        if param.is_initialized:
            return made.fill(param.val())
        found = {}

        def later(key):
            old = getattr(made, key)

            def init(shape, dtype, backend):
                if not found:
                    found.update(made.quantized(param.val()))
                    _check(found["scale"])
                one = found[key]
                return one if one.backend is backend else one.to(backend)  # the module may have moved meanwhile

            return Param.uninitialized(init, old.shape, old.dtype, param.backend, False)

        for key in ("values", "scale", "tensor_scale", "zero_point"):
            if getattr(made, key) is not None:
                setattr(made, key, later(key))
        return made

    def quantized(self, weight):
        """A weight by this one's scheme: {"values", "scale"}, and "tensor_scale" and "zero_point" if it has them."""
        if self.input_scale is not None:
            weight = weight / reshape(self.input_scale.val(), (-1, 1))
        levels, stored, whole, zero = quantize_rows(as_rows(weight, self.axis), self.scheme)
        values = pack_levels(levels, self.bits) if self.scheme.value is None else levels
        found = {"values": values, "scale": stored}
        if whole is not None:
            found["tensor_scale"] = whole
        if zero is not None:
            found["zero_point"] = zero
        return found

    def set(self, weight):
        """Set another weight, a Tensor of `shape`, which is quantized now. Returns self."""
        _check(self.fill(weight).scale.val())
        return self

    def fill(self, weight):
        """`set` without a warning. Returns self."""
        for key, part in self.quantized(weight).items():
            getattr(self, key).set(part)
        return self

    def cast_values(self, dtype):
        """Set the dtype of `val()`; the packed weight does not change (Module.cast)."""
        self.dtype = dtypes.dtype(dtype)

    def scales(self):
        """The scales, float32 (channels * blocks,)."""
        stored = scale_of(self.scale.val(), value(self.tensor_scale))
        return spread(stored, self.values.shape[1], self.rows, self.shape[self.axis])

    def val(self):
        """The weight, dequantized."""
        values = self.values.val()
        if self.scheme.value is not None:
            real = real_of(values, self.scales(), self.count)
        elif self.levels is not None:
            real = real_of_levels(values, self, self.scales())
        else:
            real = dequantize_nbits(
                values, self.scales(), value(self.zero_point), rows=self.count, columns=self.shape[self.axis],
                bits=self.bits, block_size=self.block_size,
            )  # fmt: skip
        real = from_rows(real, self.shape, self.axis)
        if self.input_scale is not None:
            real = real * reshape(self.input_scale.val(), (-1, 1))
        return real.astype(self.dtype)


def real_of_levels(values, weight, scales):
    """Packed levels of a table, with scales for each block, as weights (channels, weights of each)."""
    from ..functional.quantized.codebooks import numbers

    return real_of(numbers(values, weight.levels.val()), scales, weight.count)


def _check(scale):
    from ..module.narrowing import check_scales

    check_scales({"": scale})


class FakeQuantizedWeight(Module):
    """A layer's weight that stays as it is, while the layer computes with it quantized and dequantized: for
    quantization-aware training, where the gradient passes straight through to the weight, and for measuring the loss of
    accuracy. It stands in the place of the weight's Param, `real`.

    axis: the weight's axis of channels; scheme: a WeightScheme, by default symmetric, 8 bits, one scale per channel.
    """

    def __init__(self, real, axis=0, scheme=None):
        self.real = real
        self.axis = axis
        self.scheme = scheme or WeightScheme()
        self.shape = real.shape

    def val(self):
        """The weight, quantized and dequantized."""
        real = self.real.val()
        train = operation(real.backend, "train_quantized")
        return train(real, self._quantized) if train else self._quantized(real)

    def _quantized(self, real):
        return fake_quantize(real, self.scheme, self.axis).astype(real.dtype)


class QuantizedLinear(Linear):
    """A Linear with a QuantizedWeight, which products read a few columns at a time, on every backend.

    x (…, d_input) -> (…, d_output). bits: 8, 4 or 2; block_size: how many of an output's weights share a scale (None:
    all); affine: with zero points. `Module.quantize_weights` makes these of Linear.
    """

    SHOWN = "d_input d_output bias bits block_size"

    def __init__(self, d_input, d_output, bias=True, bits=8, block_size=None, affine=False, dtype=None, backend=None):
        self.d_input = d_input
        self.d_output = d_output
        scheme = WeightScheme(bits, "affine" if affine else "symmetric", block_size or "channel")
        self.weight = QuantizedWeight((d_input, d_output), 1, scheme, dtype, backend)
        self.bias = weight((d_output,), (d_input, d_output), dtype, backend) if bias else None

    @property
    def bits(self):
        """8, 4 or 2."""
        return self.weight.bits

    @property
    def block_size(self):
        """How many weights of an output share a scale."""
        return self.weight.block_size

    def forward(self, x):
        """x (…, d_input) -> (…, d_output). Raises ShapeError for another last axis."""
        w = self.weight
        if w.scheme.value is not None or w.levels is not None:
            return linear(x, w.val(), value(self.bias))
        if w.input_scale is not None:
            x = x * w.input_scale.val().astype(x.dtype)
        return matmul_nbits(
            x, w.values.val(), w.scales(), value(w.zero_point), bias=value(self.bias),
            rows=self.d_input, columns=self.d_output, bits=w.bits, block_size=w.block_size,
        )  # fmt: skip


class QuantizedEmbedding(Embedding):
    """An Embedding with a QuantizedWeight, of which only the rows that are looked up are dequantized.

    `Module.quantize_weights` makes these of Embedding.
    """

    def __init__(self, num_embeddings, d_model, scheme=None, dtype=None, backend=None):
        self.num_embeddings = num_embeddings
        self.d_model = d_model
        self.weight = QuantizedWeight((num_embeddings, d_model), 0, scheme, dtype, backend)

    def forward(self, x):
        """x (…) of integers -> (…, d_model), floats. python and numpy raise IndexingError for an index out of range."""
        w = self.weight
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
