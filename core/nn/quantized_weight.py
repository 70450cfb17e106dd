"""The weights of layers in 8, 4 or 2 bits, and weights that only compute as if they were."""

from .. import dtypes
from ..backend import operation
from ..errors import ShapeError
from ..functional.movement.rearranging import narrow, reshape
from ..functional.operands import alias
from ..functional.quantized.packed_weights import dequantize_nbits, unpack_bits
from ..functional.quantized.quantization import dequantize_linear
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
from .kept import kept
from .params import constant, value


class QuantizedWeight(Module):
    """A layer's weight in 8, 4 or 2 bits, in the place of its Param: `val()` returns the weight, dequantized.

    shape: that of the weight; axis: its axis of channels; scheme: the WeightScheme by which float weights are quantized
    as they load. values: uint8 (channels, blocks, block_size * bits / 8), the first level of a byte in its lowest bits,
    or (channels, blocks, block_size) in the scheme's float dtype; scale: (channels * blocks,) in the scheme's dtype, in
    blocks of two axes one for several channels; tensor_scale: None, or one float32 that all scales are multiplied
    by; zero_point: float32 (channels * blocks,), or None for symmetric weights; levels: None, or the float32 (16,) that
    the values number (nf4); input_scale: None, or float32 (d_input,), what each input of a dense layer is multiplied by
    before the product with the packed weight, 1 until it is set (AWQ). whole: zero points are uint8.
    `Module.quantize_weights` makes these. Raises ShapeError for a negative size.
    """

    SHOWN = "shape axis bits block_size"

    def __init__(self, shape, axis=0, scheme=None, dtype=None, backend=None, input_scale=False, whole=False):
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
        self.rows = self.scheme.rows_of(count, channels)
        groups = (channels + self.rows - 1) // self.rows
        self.scale = constant((groups * blocks,), 1, self.scheme.scale, backend, False)
        self.tensor_scale = constant((), 1, "float32", backend, False) if self.scheme.two_levels else None
        middle = 1 << (self.bits - 1)
        zeros = "uint8" if whole else "float32"
        self.zero_point = constant((channels * blocks,), middle, zeros, backend, False) if affine else None
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
            found["zero_point"] = zero.astype(self.zero_point.dtype)
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

    def _keeps(self):
        """Whether the floats are kept beside the packed weight, as CPython's plain backend does: making them anew takes
        as long as a product of one row with them."""
        return self.values.val().backend.name == "python" and hasattr(memoryview, "cast")  # not on MicroPython

    def val(self):
        """The weight, dequantized."""
        if not self._keeps():
            return self._dequantized()
        sources = [param.val().data for param in self.params()]
        return alias(kept(self, "_kept", sources, self._plain))

    def _plain(self):
        """The weight as elements that wait for nothing."""
        found = self._dequantized()
        return found.backend.from_bytes(found.backend.to_bytes(found), found.dtype, found.shape)

    def _dequantized(self):
        values = self.values.val()
        if self.scheme.value is not None:
            real = real_of(values, self.scales(), self.count)
        elif self.levels is not None:
            real = real_of_levels(values, self, self.scales())
        elif values.shape[1] == 1:
            return self._by_channel()
        else:
            real = dequantize_nbits(
                values, self.scales(), value(self.zero_point), rows=self.count, columns=self.shape[self.axis],
                bits=self.bits, block_size=self.block_size,
            )  # fmt: skip
        return self._finished(from_rows(real, self.shape, self.axis))

    def integers(self):
        """(levels uint8 in the weight's shape, the level of zero: a number, or as many as channels), where a channel's
        weights have one scale."""
        values, zero = self.values.val(), value(self.zero_point)
        levels = reshape(values, (self.shape[self.axis], values.shape[2]))
        if self.bits < 8:
            levels = narrow(unpack_bits(levels, self.bits), 1, 0, self.count)
        return from_rows(levels, self.shape, self.axis), 1 << (self.bits - 1) if zero is None else zero

    def _by_channel(self):
        """`val` where a channel's weights have one scale: `dequantize_linear` of integers of the weight's shape, which
        plans find before a product or a convolution."""
        levels, zero = self.integers()
        return self._finished(dequantize_linear(levels, self.scales(), zero, axis=self.axis))

    def _finished(self, real):
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
