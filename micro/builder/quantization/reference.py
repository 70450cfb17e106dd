"""The integer arithmetic of int8 inference, defined once.

A value is `scale * (q - zero)` with q an unsigned byte: int8 stored as q + 128, so that a byte load needs no sign
extension. Weights are `scale[c] * (q - 128)`, one scale for each output channel. Products are summed exactly in a word
and brought to the output's scale by a fixed-point multiplier, rounding half up:

    requantize(s) = clamp(((s * multiplier[c] + 2**(shift-1)) >> shift) + zero, low, high)

If the product would not fit a word, it is computed in two halves, with the same result:

    s * m >> n == ((s >> b) * m + ((s & 2**b-1) * m >> b)) >> (n - b)

No value in a kernel reaches 2**30, so it is a small integer in MicroPython on 32-bit words, and the bytecode kernels
allocate nothing either. `choose` proves this from the bounds of the accumulators, which `dot_bounds` takes from
the weights themselves. Every kernel, viper or bytecode, is bit-identical to this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

LIMIT = 1 << 30
"""No intermediate result of a kernel reaches this magnitude."""

ZERO = 128
"""The byte that stands for a weight of zero, and for an activation of zero if the range is symmetric."""

_GOOD = 1 / 64
"""An error of the multiplier (in steps of the output) too small to be worth a second product."""


@dataclass(frozen=True)
class Requant:
    """How accumulators become bytes: one multiplier per channel, and one shift, zero point and clamp for all.

    split: 0 if `s * m` fits a word, else the number of low bits of s that are multiplied separately.
    """

    multipliers: tuple[int, ...]
    shift: int
    split: int
    zero: int
    low: int = 0
    high: int = 255

    words: ClassVar[int] = 1

    def packed(self, channel: int) -> tuple[int, ...]:
        """The words of T that a kernel reads for a channel: as many as `words`."""
        return (self.multipliers[channel],)

    def apply(self, s: Ints, shape: list[int]) -> Ints:
        """Requantize without clamping. shape: the shape of the multipliers, which broadcasts to s."""
        m = np.asarray(self.multipliers, np.int64).reshape(shape)
        return ((s * m + (1 << self.shift >> 1)) >> self.shift) + self.zero

    @property
    def rest(self) -> int:
        """The last shift of a kernel."""
        return self.shift - self.split

    @property
    def offset(self) -> int:
        """The constant a kernel adds before its last shift: the rounding term plus the shifted zero point."""
        return (self.zero << self.rest) + (1 << self.rest >> 1)


def requantize(acc: npt.ArrayLike, r: Requant, axis: int = -1) -> Bytes:
    """Accumulators to bytes. axis: the channel axis; a single multiplier is shared by all channels."""
    return fixed_point(acc, r, axis).astype(np.uint8)


def fixed_point(acc: npt.ArrayLike, r: Requant, axis: int = -1) -> Ints:
    """`requantize` for outputs of any width."""
    s = np.asarray(acc, np.int64)
    shape = [1] * s.ndim
    if len(r.multipliers) > 1:
        shape[axis] = len(r.multipliers)
    return np.clip(r.apply(s, shape), r.low, r.high)


def dot_bounds(weights: Bytes, bias: Ints, zero: int, weight_zero: int = ZERO) -> tuple[Ints, Ints]:
    """The smallest and the largest value of `bias + sum((x - zero) * (w - weight_zero))` over all bytes x.

    weights: (channels, K) uint8; bias: (channels,); zero: the input's zero point.
    """
    w = weights.reshape(len(weights), -1).astype(np.int64) - weight_zero
    positive, negative = np.maximum(w, 0).sum(1), np.minimum(w, 0).sum(1)
    low = bias - zero * positive + (255 - zero) * negative
    high = bias + (255 - zero) * positive - zero * negative
    return low, high


def start_bounds(weights: Bytes, bias: Ints, zero: int, weight_zero: int = ZERO) -> tuple[int, int]:
    """The smallest and the largest initial value of a kernel's accumulator, before products of bytes are added.

    Kernels add `x * w` of unsigned bytes, so the sum only grows and stays between its initial and its final value. The
    smallest value is also that of `-weight_zero * sum(x) - lift`, which kernels compute before they add a channel's
    word, `folded + lift`; lift is -folded.min(), or 0 if no folded bias is negative.
    """
    k = weights.reshape(len(weights), -1).shape[1]
    start = folded_bias(weights, bias, zero, weight_zero)
    return min(0, int(start.min())) - weight_zero * 255 * k, int(start.max())


def folded_bias(weights: Bytes, bias: Ints, zero: int, weight_zero: int = ZERO) -> Ints:
    """The terms of the zero points besides `weight_zero * sum(x)`, which the kernel subtracts: (channels,)."""
    w = weights.reshape(len(weights), -1).astype(np.int64)
    return bias + weight_zero * w.shape[1] * zero - zero * w.sum(1)


def check_word(what: str, *values: float) -> None:
    """Raises UnsupportedError if one of `values` does not fit the words of a small board."""
    worst = max(abs(v) for v in values)
    if not worst < LIMIT:
        raise UnsupportedError(
            f"{what}: a sum may reach {worst:.0f}, but must stay below {LIMIT} to fit 32-bit words; "
            "split the layer into two with fewer inputs, or build it with --float"
        )


def choose(
    ratio: npt.ArrayLike,
    bound: npt.ArrayLike,
    zero: int,
    low: int = 0,
    high: int = 255,
    what: str = "layer",
) -> Requant:
    """The multipliers for `ratio` (the accumulator's scale over the output's), one per channel.

    bound: the largest magnitude of each channel's accumulator. A single product per value is chosen if it is exact
    enough. Raises UnsupportedError if every multiplier would exceed 2**30.
    """
    m = np.atleast_1d(np.asarray(ratio, np.float64))
    a = np.broadcast_to(np.atleast_1d(np.asarray(bound, np.int64)), m.shape)
    check_word(what, int(a.max(initial=0)))
    if not np.all(np.isfinite(m)) or np.any(m < 0):
        raise UnsupportedError(f"{what}: the ratio of scales is {m.min()}..{m.max()}, expected finite and not negative")
    best: tuple[float, int, Requant] | None = None
    for split in range(17):
        shift = next((n for n in range(40, split, -1) if _fits(m, a, n, split, zero)), None)
        if shift is None:
            continue
        r = Requant(tuple(int(v) for v in _fixed(m, shift)), shift, split, zero, low, high)
        error = error_of(m, a, r)
        if split == 0 and error <= _GOOD:
            return r
        if best is None or error < best[0]:
            best = error, split, r
    if best is None or best[0] > 1:
        raise UnsupportedError(
            f"{what}: its output's scale is {m.max():.3g} times finer than its sums need; "
            "calibrate with samples that reach the output's true range, or build the model with --float"
        )
    return best[2]


def _fixed(ratio: Floats, shift: int) -> Ints:
    return np.floor(ratio * 2.0**shift + 0.5).astype(np.int64)


def _fits(ratio: Floats, bound: Ints, shift: int, split: int, zero: int) -> bool:
    """Whether every step of the kernel's arithmetic stays below 2**30."""
    if np.any(ratio * 2.0**shift >= LIMIT):
        return False
    m = _fixed(ratio, shift)
    rest = shift - split
    offset = (zero << rest) + (1 << rest >> 1)
    if split == 0:
        return bool(np.all(bound * m + offset < LIMIT))
    low = ((1 << split) - 1) * m
    high = ((bound >> split) + 1) * m
    return bool(np.all(low < LIMIT) and np.all(high + (low >> split) + offset < LIMIT))


def error_of(ratio: Floats, bound: Ints, r: Requant) -> float:
    """The largest error of an unclamped output due to the multipliers' rounding, in steps of the output."""
    off = np.abs(np.asarray(r.multipliers) / 2.0**r.shift - ratio)
    reach = np.minimum(bound, (r.high - r.low + 1) / np.maximum(ratio, 1e-30))
    return float((off * reach).max(initial=0))


def quantize(x: npt.ArrayLike, scale: float, zero: int) -> Bytes:
    """Numbers to bytes, rounding half to even as ONNX's QuantizeLinear does."""
    return steps_of(x, scale, zero).astype(np.uint8)


def steps_of(x: npt.ArrayLike, scale: float, zero: int, bits: int = 8) -> Floats:
    """`quantize` for elements of any width, as whole numbers."""
    return np.clip(np.rint(np.asarray(x, np.float64) / scale) + zero, 0, (1 << bits) - 1)


def dequantize(q: npt.NDArray[Any], scale: float, zero: int) -> npt.NDArray[np.float32]:
    """Bytes to numbers."""
    return ((q.astype(np.int64) - zero) * scale).astype(np.float32)


def quantize_weights(
    weights: npt.ArrayLike, least: npt.ArrayLike = 0.0, coarser: Callable[[Floats, Floats], Floats] | None = None
) -> tuple[Bytes, Floats]:
    """Weights (channels, …) to bytes around 128 and a scale for each channel; -127..127 is used, -128 is not.

    least: the smallest scale, so that the bias of a channel whose weights are nearly zero fits. coarser: gives larger
    scales for (weights of each channel, scales). Weights and scales are rounded to float32 first, as ONNX files store
    them: the bytes are those of the file.
    """
    w = np.asarray(weights, np.float32).astype(np.float64)
    flat = np.abs(w.reshape(len(w), -1)).max(1, initial=0)
    scale = (flat / 127).astype(np.float32).astype(np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    if coarser is not None:
        scale = coarser(w.reshape(len(w), -1), scale).astype(np.float64)
    scale = np.maximum(scale, least)
    q = np.rint(w / scale.reshape(-1, *[1] * (w.ndim - 1)))
    return (np.clip(q, -127, 127) + ZERO).astype(np.uint8), scale


def quantize_weights_by(
    known: npt.ArrayLike, weights: npt.NDArray[Any], least: Floats, zero: int
) -> tuple[Bytes, Floats, float]:
    """Weights (channels, …) by a model's own scales, at least `least`, to bytes around `zero`; the scales; the largest
    error of a sum, in steps of the input, for which a coarser scale than the model's is to blame."""
    given = np.broadcast_to(np.asarray(known, np.float64).reshape(-1), len(weights))
    scale = np.maximum(given, least)
    scale = np.where(scale > 0, scale, 1.0)
    rows = weights.reshape(len(scale), -1).astype(np.float64)
    q = np.clip(np.rint(rows / scale[:, None]), -zero, 255 - zero)
    lost = 255 * np.abs(q * scale[:, None] - rows).sum(1)
    return (q + zero).astype(np.uint8).reshape(weights.shape), scale, float(lost[scale > given].max(initial=0))


def quantize_bias(bias: npt.ArrayLike, scale: npt.ArrayLike, what: str = "layer") -> Ints:
    """A bias in steps of its accumulator. Raises UnsupportedError if it does not fit a word."""
    b = np.rint(np.asarray(bias, np.float64) / np.asarray(scale, np.float64))
    check_word(f"{what}: its bias", float(np.abs(b).max(initial=0)))
    return b.astype(np.int64)
