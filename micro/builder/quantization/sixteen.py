"""The integer arithmetic of 16-bit tensors, the counterpart of `reference.py` for bytes.

An element is a 16-bit word in two bytes, the lower one first; int16 is stored as q + 32768. A tensor's last axis counts
bytes, so it is twice as long. Weights stay bytes. A kernel sums the products of upper and of lower bytes separately, so
that every sum fits a small integer; the total, `256 * high + low`, is rescaled to the output's scale in pieces of 14
bits:

    y = clamp((sum * multiplier + 2**(shift-1) >> shift) + zero)

The result is exact: the integer that a product of unlimited width would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, isfinite

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

from .reference import LIMIT, Ints

MOST = (1 << 16) - 1

LIMB = 14
"""Bits of the pieces in which sums are multiplied."""

HALF = 12
"""Bits of the pieces in which the difference of two words is multiplied."""

LIFT = LIMIT >> 1
"""What is added to a word of T that may be negative."""


MOST_LEFT = 8
"""The most bits by which sums are shifted left."""

FINEST_OF_BYTES = 100.0
"""The largest ratio of a step of a layer's sums to a step of its output for which an 8-bit form certainly exists: a
grid of bytes over the same numbers is 256 times coarser, and so are the steps of the sums."""

ADVICE = "calibrate the model to 8 bits with samples (--calibration samples.npz), or build it with --float"


def advice_for(ratio: float) -> str:
    """Advice for a layer whose output has too fine a step, by the ratio of scales."""
    return ADVICE if ratio <= FINEST_OF_BYTES else "no form in 8 bits is sure to exist either; build it with --float"


def to_words(x: npt.NDArray[np.uint8]) -> Ints:
    """The words that pairs of bytes are; the last axis is half as long."""
    return np.ascontiguousarray(x).view("<u2").astype(np.int64)


def to_bytes(words: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """The bytes of words; the last axis is twice as long."""
    return np.ascontiguousarray(np.asarray(words).astype("<u2")).view(np.uint8)


@dataclass(frozen=True)
class SumRequant:
    """How sums become words: one multiplier per channel, up to 2**28, and one shift of 29 or more.

    rests: three more bits per multiplier, if any: the multiplier is `multiplier + rest / 8`. left: bits by which sums
    are shifted left first, if their step is more than half a step of the output.
    """

    multipliers: tuple[int, ...]
    shift: int
    zero: int
    low: int = 0
    high: int = MOST
    rests: tuple[int, ...] = ()
    left: int = 0

    @property
    def words(self) -> int:
        """The number of words of T per channel."""
        return 2 if self.rests else 1

    def packed(self, channel: int) -> tuple[int, ...]:
        """The words of T for a channel."""
        return (self.multipliers[channel], self.rests[channel]) if self.rests else (self.multipliers[channel],)

    def apply(self, sums: Ints) -> Ints:
        """Words of sums whose last axis counts channels."""
        sums = sums << self.left
        product = sums * np.asarray(self.multipliers, np.int64)
        if self.rests:
            product += sums * np.asarray(self.rests, np.int64) >> 3
        return np.clip((product + (1 << self.shift - 1) >> self.shift) + self.zero, self.low, self.high)

    @property
    def last(self) -> int:
        """Bits of the last shift of a kernel."""
        return self.shift - 2 * LIMB

    def lines(self, word: str, more: str = "", half: str = "", zero: str = "") -> list[str]:
        """Lines that turn `256 * h + s` into an unclamped word `s`. word: the multiplier; more: its rest; half, zero:
        what is added before and after the last shift, if that differs by channel."""
        mask, rest = (1 << LIMB) - 1, self.last
        first, second = f"e * u >> {LIMB}", ""
        if self.rests:
            first, second = f"e * u + (e * r >> 3) + (f * r << {LIMB - 3}) >> {LIMB}", f" + (h * r << {LIMB - 3})"
        shifted = [f"s = (s & 255) << {self.left}", f"h = (h << {self.left}) + (s >> 8)"] if self.left else []
        return [
            "h = h + (s >> 8)",
            *shifted,
            f"e = (h & {(1 << LIMB - 8) - 1}) << 8 | s & 255",
            f"f = h >> {LIMB - 8} & {mask}",
            f"h = h >> {2 * LIMB - 8}",
            f"u = {word}",
            *([f"r = {more}"] if self.rests else []),
            f"v = u >> {LIMB}",
            f"u = u & {mask}",
            f"s = ({first}) + e * v + f * u{second} >> {LIMB}",
            f"s = (h * v << {LIMB}) + (s + f * v + h * u) + {half or 1 << rest - 1} >> {rest}",
            f"s = s + {zero or self.zero}",
        ]


def sum_requant(
    ratio: npt.ArrayLike, bound: npt.ArrayLike, zero: int, low: int = 0, high: int = MOST, what: str = "layer"
) -> SumRequant:
    """The multipliers for `ratio` (the sums' scale over the output's), one per channel.

    bound: the largest magnitude of each channel's sum. Raises UnsupportedError if no multiplier fits.
    """
    m = np.atleast_1d(np.asarray(ratio, np.float64))
    most = np.broadcast_to(np.atleast_1d(np.asarray(bound, np.float64)), m.shape)
    finest = float(m.max(initial=0))
    left = max(0, frexp(finest)[1] + 1) if finest > 0.5 and isfinite(finest) else 0
    m, most = m * 0.5**left, most * 2.0**left
    for shift in range(57, 2 * LIMB, -1):
        steps = np.floor(m * 2.0**shift + 0.5)
        fits = left <= MOST_LEFT and np.all(most < 2.0**36) and np.all(steps * most < 2.0**57)
        if fits and np.all(steps <= 1 << 2 * LIMB):
            return SumRequant(tuple(int(v) for v in steps), shift, zero, low, high, left=left)
    raise UnsupportedError(
        f"{what}: its output's scale of 16 bits is {finest:.3g} times finer than its sums need; {advice_for(finest)}"
    )


@dataclass(frozen=True)
class DifferenceRequant:
    """How differences of words from their zero points become words: each is multiplied, the products are added and
    shifted."""

    factors: tuple[int, ...]
    zeros: tuple[int, ...]
    shift: int
    zero: int
    low: int = 0
    high: int = MOST

    def apply(self, words: Sequence[Ints]) -> Ints:
        total = sum((x - z) * m for x, z, m in zip(words, self.zeros, self.factors, strict=True))
        return np.clip((total + (1 << self.shift - 1) >> self.shift) + self.zero, self.low, self.high)

    def lines(self, words: Sequence[str]) -> list[str]:
        """Lines that set `s`, unclamped. words: expressions of the operands."""
        mask, rest = (1 << HALF) - 1, self.shift - HALF
        names = ("u", "v")[: len(words)]
        lines = [f"{name} = ({word}) - {zero}" for name, word, zero in zip(names, words, self.zeros, strict=True)]
        upper = " + ".join(f"{name} * {m >> HALF}" for name, m in zip(names, self.factors, strict=True))
        lower = " + ".join(f"{name} * {m & mask}" for name, m in zip(names, self.factors, strict=True))
        last = f"s = {upper} + ({lower} >> {HALF}) + {1 << rest - 1} >> {rest}"
        return [*lines, last, f"s = s + {self.zero}"]


def difference_requant(
    ratios: Sequence[float], zeros: Sequence[int], zero: int, low: int = 0, high: int = MOST, what: str = "layer"
) -> DifferenceRequant:
    """The factors for `ratios` (scale of each operand over scale of the output). Raises UnsupportedError."""
    for shift in range(HALF + 24, HALF, -1):
        steps = [round(r * 2**shift) for r in ratios]
        # Two differences of 17 bits with their signs, times 12 bits each.
        if all(abs(m) < 1 << 2 * HALF for m in steps):
            return DifferenceRequant(tuple(steps), tuple(zeros), shift, zero, low, high)
    raise UnsupportedError(
        f"{what}: its operands' scales are {max(map(abs, ratios)):.3g} times the output's, which is too fine; "
        f"{advice_for(max(map(abs, ratios)))}"
    )
