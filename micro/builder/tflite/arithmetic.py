"""Layers in TensorFlow Lite's integer arithmetic: the multipliers and tables of its reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

from ..functions import Chain, apply
from ..graph import Grid
from ..kernels.depthwise import DepthwiseFloat
from ..kernels.dot import DotFloat
from ..kernels.doubled_lstm import DoubledLstm, DoubledLstmFloat
from ..kernels.doubled_softmax import DoubledSoftmax
from ..kernels.doubled_sum import DoubledSum
from ..kernels.elementwise import Binary, BinaryFloat, Lookup, MapFloat
from ..kernels.layer import Layer
from ..kernels.pool import AveragePool, AveragePoolFloat, Reduce, ReduceFloat
from ..kernels.recurrence import MIDDLE as SUMS
from ..kernels.recurrence import Rows
from ..kernels.softmax import SoftmaxFloat
from ..quantization.doubled import (
    DividedRequant,
    check_doubled,
    doubled,
    multiplied,
    quantize_multiplier,
    shifted,
    unchecked,
)
from ..quantization.grids import SOFTMAX_GRID
from ..quantization.quantize import Quantizer
from ..quantization.quantize16 import Quantizer16, is_rescale
from ..quantization.reference import Bytes, Floats, Ints, Requant, dequantize, dot_bounds, fixed_point, quantize_bias
from ..quantization.sixteen import LIMB, MOST, SumRequant

MIDDLE = 128
"""The byte that stands for 0 of int8."""

MOST_LEFT = 7
"""The longest left shift of a gate's sum, which a word of the table has room for."""


class TfliteQuantizer(Quantizer):
    """Layers whose arithmetic differs; the others are quantized as for any model."""

    def layer(self, layer: Layer) -> Layer:
        kinds: dict[type[Layer], Callable[..., Layer]] = {
            BinaryFloat: self._binary,
            MapFloat: self._map,
            AveragePoolFloat: self._average,
            ReduceFloat: self._reduce,
            SoftmaxFloat: self._softmax,
            DoubledLstmFloat: self._lstm,
        }
        made = kinds.get(type(layer))
        return made(layer) if made else super().layer(layer)

    def sixteen(self) -> Quantizer16:
        return Doubled16(self.graph, lambda layer: self._weights(layer, np.zeros(1))[:2], self._weight_zero)

    def _clamp(self, low: float, high: float, grid: Grid) -> tuple[int, int]:
        return (0 if low == -inf else rounded(low, grid)), (255 if high == inf else rounded(high, grid))

    def _product(self, layer: DotFloat | DepthwiseFloat) -> tuple[Bytes, Ints, Requant]:
        """The file's weights and biases, unchanged."""
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        weights, scale, _ = self._weights(layer, np.zeros(len(layer.weights)))
        sums = x.scale * scale
        clamp, twice = self._clamp(layer.low, layer.high, out), layer.name not in self.graph.once
        ratios = sums / out.scale
        steps = np.clip(np.rint(np.asarray(layer.bias, np.float64) / sums), -(2.0**62), 2.0**62).astype(np.int64)
        still = _constant_channels(weights, steps, x.zero, self._weight_zero(layer))
        if still.any():
            made = fixed_point(steps, unchecked(ratios, out.zero, *clamp, twice), axis=0)
            # Twice the byte and a ratio of a half give the byte exactly, in words.
            steps = np.where(still, 2 * (made - out.zero), steps)
            ratios = np.where(still, 0.5, ratios)
        bias = quantize_bias(steps, 1.0, layer.name)
        low, high = dot_bounds(weights, bias, x.zero, self._weight_zero(layer))
        bound = np.maximum(np.abs(low), np.abs(high))
        return weights, bias, doubled(ratios, bound, out.zero, *clamp, what=layer.name, twice=twice)

    def _binary(self, layer: BinaryFloat) -> Layer:
        a, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        constant = None
        if layer.constant is None:
            b = self.grids[layer.inputs[1]]
        elif layer.grid is None:
            return super().layer(layer)
        else:
            b = Grid(*layer.grid)
            constant = (np.rint(layer.constant / b.scale) + b.zero).astype(np.uint8)
        low, high = self._clamp(layer.low, layer.high, out)
        at = (layer.name, layer.inputs, layer.output, layer.operation, layer.shape, layer.other, constant)
        zeros = (a.zero, b.zero)
        if layer.operation == "mul":
            reach = max(a.zero, 255 - a.zero) * max(b.zero, 255 - b.zero)
            requant = doubled(a.scale * b.scale / out.scale, reach, out.zero, low, high, layer.name)
            return Binary(*at, zeros, (0, 0), requant)
        if layer.operation in ("add", "sub"):
            return DoubledSum(*at, zeros, (a.scale, b.scale, out.scale), out.zero, low, high)
        raise UnsupportedError(
            f"{layer.name}: a quotient of two quantized tensors is not supported; build from the float model"
        )

    def _map(self, layer: MapFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        return Lookup(layer.name, layer.inputs, layer.output, layer.shape, table(layer.chain, x, out))

    def _average(self, layer: AveragePoolFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        if x != out:
            raise UnsupportedError(
                f"{layer.name}: an average whose input and output have different scales is not supported"
            )
        at = (layer.name, layer.inputs, layer.output, layer.shape, layer.window)
        middle = 0 if layer.name in self.graph.unsigned else MIDDLE
        return AveragePool(*at, middle, DividedRequant(tuple(layer.counts), 0, 0, middle))

    def _softmax(self, layer: SoftmaxFloat) -> Layer:
        if layer.log or self.grids[layer.output] != SOFTMAX_GRID:
            return super().layer(layer)
        at = (layer.name, layer.inputs, layer.output, layer.rows, layer.length)
        return DoubledSoftmax(*at, self.grids[layer.inputs[0]].scale)

    def _lstm(self, layer: DoubledLstmFloat) -> Layer:
        n, source = layer.numbers, self.grids[layer.inputs[0]]
        rows = _gate_rows(layer.name, n.input_weights, n.bias, n.input_scales, source)
        added = _gate_rows(layer.name, n.state_weights, np.zeros_like(n.bias), n.state_scales, n.state, adds=True)
        multiplier, shift = quantize_multiplier(float(np.float32(2.0**-15 / n.result.scale * 2.0**-15)))
        if not (multiplier and -31 <= shift < 0):
            raise UnsupportedError(f"{layer.name}: the hidden state has a scale of {n.result.scale:g}")
        at = (layer.name, layer.inputs, layer.output, layer.steps, layer.hidden, rows, added)
        how = (layer.reverse, layer.sequence, layer.keep)
        return DoubledLstm(*at, *how, n.state.zero, n.cell, n.clip, multiplier, shift, n.result.zero)

    def _reduce(self, layer: ReduceFloat) -> Layer:
        x, out = self.grids[layer.inputs[0]], self.grids[layer.output]
        at = (layer.name, layer.inputs, layer.output, layer.shape, layer.operation)
        if layer.operation != "sum":
            return super().layer(layer)
        n = layer.shape[1]
        requant = unchecked(x.scale / out.scale, out.zero)
        if layer.factor != 1:
            # The multiplier is divided by the length.
            (m,), (shift,) = requant.multipliers, requant.shifts
            bits = max(0, min(n.bit_length() - 1, 32, 31 + shift))
            requant = replace(requant, multipliers=((m << bits) // n,), shifts=(shift - bits,))
        check_doubled(requant, n * max(x.zero, 255 - x.zero), layer.name)
        return Reduce(*at, x.zero, requant)


def _gate_rows(
    name: str, weights: Bytes, bias: Ints, scales: tuple[float, ...], grid: Grid, adds: bool = False
) -> Rows:
    """Rows of an LSTM's gates, whose sums are in steps of 2**-12. Raises UnsupportedError."""
    ratios = [float(np.float32(s) * np.float32(grid.scale) / np.float32(2.0**-12)) for s in scales]
    low, high = dot_bounds(weights, bias, grid.zero)
    bound = np.maximum(np.abs(low), np.abs(high))
    requant = doubled(np.tile(ratios, len(bias) // 4), bound, SUMS, 0, 2 * SUMS - 1, name, left=MOST_LEFT)
    return Rows(weights, bias, grid.zero, requant, adds)


def _constant_channels(weights: Bytes, steps: Ints, zero: int, weight_zero: int) -> npt.NDArray[np.bool_]:
    """Which channels have only weights of zero and a bias beyond every other channel's sums: converters give such a
    channel a tiny scale, and so a bias near 2**30 that does not fit a kernel's words."""
    still = (weights.reshape(len(weights), -1) == weight_zero).all(1)
    low, high = dot_bounds(weights, steps, zero, weight_zero)
    most = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(still & (most > most[~still].max(initial=0)))


class Doubled16(Quantizer16):
    """Layers on int16 in TensorFlow Lite's arithmetic: products with an int64 bias, and layers that only move
    elements."""

    def layer(self, layer: Layer) -> Layer:
        same = isinstance(layer, MapFloat) and self._grids(layer)[0] == self._grids(layer)[1] and is_rescale(layer)
        if not same and isinstance(layer, MapFloat | BinaryFloat | AveragePoolFloat | ReduceFloat | SoftmaxFloat):
            raise UnsupportedError(
                f"{layer.name}: a layer of this kind on int16 is not computed as TensorFlow Lite does; "
                "build from the float model, or convert it to int8"
            )
        return super().layer(layer)

    @staticmethod
    def _limits(low: float, high: float, grid: Grid) -> tuple[int, int]:
        last = (1 << grid.bits) - 1
        ends = [0 if low == -inf else rounded16(low, grid), last if high == inf else rounded16(high, grid)]
        return ends[0], ends[1]

    def _requant(self, ratios: Floats, bound: Floats, zero: int, limits: tuple[int, int], what: str) -> SumRequant:
        """TensorFlow Lite's multipliers have 15 bits and a shift each; here they are wider and share one shift.

        Multipliers of dense layers have 31 bits, and all channels share one.
        """
        if what in self.graph.once:
            q, up = quantize_multiplier(float(ratios[0]))
            if 28 - up > 2 * LIMB and (q + 8 >> 3) * float(bound.max()) < 2.0**57:
                return SumRequant((q >> 3,) * len(bound), 28 - up, zero, *limits, (q & 7,) * len(bound))
            raise _too_wide(what)
        narrow = [_narrow(float(r)) for r in ratios]
        shift = max(2 * LIMB + 1, *(15 - own for _, own in narrow))
        multipliers = [m << (shift - 15 + own) for m, own in narrow]
        if all(m <= 1 << 2 * LIMB and m * most < 1 << 57 for m, most in zip(multipliers, bound, strict=True)):
            return SumRequant(tuple(multipliers), shift, zero, *limits)
        raise _too_wide(what)


def _too_wide(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what}: its scales of int16 do not fit 32-bit words in TensorFlow Lite's arithmetic; "
        "build it from the float model"
    )


def rounded16(number: float, grid: Grid) -> int:
    """As `rounded`, also for a grid of words."""
    steps = np.float32(number) / np.float32(grid.scale)
    return int(np.clip(np.sign(steps) * np.floor(np.abs(steps) + np.float32(0.5)) + grid.zero, 0, MOST))


def rounded(number: float, grid: Grid) -> int:
    """A number as a byte of a grid, divided in float32 and rounded with ties away from zero."""
    return int(quantized(np.asarray([number], np.float32), grid)[0])


def quantized(values: npt.ArrayLike, grid: Grid) -> Bytes:
    """Numbers as bytes of a grid, rounded with ties away from zero."""
    with np.errstate(over="ignore"):
        v = np.asarray(values, np.float32) / np.float32(grid.scale)
    steps = np.sign(v) * np.floor(np.abs(v) + np.float32(0.5))
    return np.clip(steps + grid.zero, 0, 255).astype(np.uint8)


# -- functions of a byte ----------------------------------------------------------------------------------------------


def table(chain: Chain, x: Grid, out: Grid) -> Bytes:
    """256 bytes: a function of a byte, as TensorFlow Lite's kernel for it computes."""
    q = np.arange(256) - x.zero
    kinds = tuple(name for name, _ in chain)
    if kinds == ("hard_swish",):
        return _hard_swish(q, x, out)
    if kinds in ((), ("clip",)):
        y = multiplied(q, *quantize_multiplier(x.scale / out.scale)) + out.zero
        bounds = chain[0][1] if chain else (-inf, inf)
        low, high = (
            default if b in (-inf, inf) else rounded(b, out) for b, default in zip(bounds, (0, 255), strict=True)
        )
        return np.clip(y, low, high).astype(np.uint8)
    if kinds == ("abs",):
        y = multiplied(np.abs(q), *quantize_multiplier(x.scale / out.scale)) + out.zero
        return np.clip(y, 0, 255).astype(np.uint8)
    if kinds == ("sqrt",):
        # The quotient is cut off, not rounded.
        root = np.sqrt(np.maximum(q, 0).astype(np.float32) * np.float32(x.scale)) / np.float32(out.scale)
        return np.clip(np.floor(root) + out.zero, 0, 255).astype(np.uint8)
    if kinds == ("sqrt", "reciprocal"):
        return _rsqrt(q, x, out)
    if kinds == ("leaky_relu",):
        positive = multiplied(q, *quantize_multiplier(x.scale / out.scale))
        alpha = float(np.float32(chain[0][1][0]))
        negative = multiplied(q, *quantize_multiplier(x.scale * alpha / out.scale))
        return np.clip(np.where(q >= 0, positive, negative) + out.zero, 0, 255).astype(np.uint8)
    return quantized(apply(chain, dequantize(np.arange(256), x.scale, x.zero)), out)


def _hard_swish(q: Ints, x: Grid, out: Grid) -> Bytes:
    """Computed in saturating 16-bit numbers; tensorflow/lite/kernels/internal/reference/hard_swish.h."""
    fine = x.scale / 128
    output, output_shift = _narrow(fine / out.scale)
    relu, relu_shift = _narrow(fine / (3 / 32768))
    if output_shift > 0:
        raise UnsupportedError(
            f"a hard swish whose output has a finer scale, {out.scale:g}, than its input is not supported"
        )
    value = q << 7
    gate = _word(value << max(0, relu_shift - 1))
    gate = (gate * relu + (1 << 14)) >> 15
    gate = _word(gate << 1) if relu_shift > 0 else shifted(gate, max(0, -relu_shift))
    gate = (gate + (1 << 15)) >> 1
    product = gate * ((value * output + (1 << 14)) >> 15)
    product = np.sign(product) * (np.abs(product) >> 15)
    return np.clip(shifted(product, -output_shift) + out.zero, 0, 255).astype(np.uint8)


def _rsqrt(q: Ints, x: Grid, out: Grid) -> Bytes:
    """In numbers with 20 bits below one; of zero, the greatest byte."""
    fine = np.rint(2.0**20 / np.sqrt(np.maximum(q, 1))).astype(np.int64)
    multiplier, shift = quantize_multiplier(1 / (float(np.sqrt(np.float32(x.scale))) * out.scale))
    y = multiplied(fine, multiplier, shift - 20) + out.zero
    return np.where(q > 0, np.clip(y, 0, 255), 255).astype(np.uint8)


def _narrow(real: float) -> tuple[int, int]:
    """A 16-bit multiplier, and its shift."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _word(x: Ints) -> Ints:
    return np.clip(x, -(1 << 15), (1 << 15) - 1)
