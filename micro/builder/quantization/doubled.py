"""TensorFlow Lite's integer arithmetic, bit for bit: 31-bit multipliers, and rounding twice.

The reference kernels of TensorFlow Lite and of TensorFlow Lite Micro rescale a sum to the output's scale by a
multiplication rounded to 31 bits and then a shift, rounded again with ties away from zero. Models from .tflite files
use this arithmetic, so their results equal those of other runtimes.

Sources: gemmlowp/fixedpoint/fixedpoint.h; tensorflow/lite/kernels/internal/{common.h,quantization_util.cc}.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, frexp
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from emberlet.errors import UnsupportedError

from .reference import LIMIT, Ints, Requant

LOW = 13
"""Low bits of a sum that kernels multiply separately."""

HALF = 15
"""Low bits of a multiplier that kernels multiply separately."""

SHIFT = 8
"""Bits of a kernel's word for the right shift, less one."""

LEFT = 2
"""The longest left shift after the product, which keeps three bits more; kernels in viper shift the sum before it by
what is left."""

_RIGHT = 27
"""The longest right shift of kernels: a longer one makes 0 of every product that `check_doubled` allows, and half of
its divisor may not fit a word."""


def quantize_multiplier(real: float) -> tuple[int, int]:
    """(multiplier, shift): real is about multiplier / 2**31 * 2**shift, multiplier in 2**30 … 2**31 - 1, or 0."""
    if real == 0:
        return 0, 0
    fraction, shift = frexp(real)
    q = floor(fraction * (1 << 31) + 0.5)
    if q == 1 << 31:
        q, shift = q >> 1, shift + 1
    return (0, 0) if shift < -31 else (q, shift)


def high_product(a: npt.ArrayLike, b: npt.ArrayLike) -> Ints:
    """Twice the upper word of the product of two words, rounded half up: (a * b + 2**30) >> 31."""
    return (np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 30)) >> 31


def shifted(x: npt.ArrayLike, bits: npt.ArrayLike) -> Ints:
    """x / 2**bits, rounded, ties away from zero."""
    v, n = np.asarray(x, np.int64), np.asarray(bits, np.int64)
    return np.asarray((v + (1 << n >> 1) - ((v < 0) & (n > 0))) >> n)


def multiplied(x: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Ints:
    """x times a multiplier of `quantize_multiplier`."""
    n = np.asarray(shift, np.int64)
    return shifted(high_product(np.asarray(x, np.int64) << np.maximum(n, 0), multiplier), np.maximum(-n, 0))


@dataclass(frozen=True)
class DoubledRequant(Requant):
    """As Requant, but with 31-bit multipliers. shifts: per channel, as in `quantize_multiplier`; twice: whether the
    product is rounded before it is shifted and rounded again; shift, split: unused.

    A kernel has two words per channel: the upper bits of the multiplier; and one less than the right shift in the
    lowest 8 bits, which are what an instruction shifts by, above them the multiplier's lower HALF bits, and above those
    the left shift. It multiplies exactly, in four parts:

        s = h * 2**13 + l,   m = u * 2**15 + v
        s * m >> 28 == h*u + (l*u + (h*v + (l*v >> 13) >> 2) >> 13)
    """

    shifts: tuple[int, ...] = ()
    twice: bool = True

    words: ClassVar[int] = 2

    @property
    def offset(self) -> int:
        return self.zero

    @property
    def shifted(self) -> bool:
        """Whether every channel shifts to the right, and rounds twice: kernels then need no test, and fewer
        instructions."""
        return self.twice and max(self.shifts) < 0

    @property
    def left(self) -> bool:
        """Whether any channel shifts to the left."""
        return max(self.shifts) > 0

    def apply(self, s: Ints, shape: list[int]) -> Ints:
        m, n = (np.asarray(v, np.int64).reshape(shape) for v in (self.multipliers, self.shifts))
        if self.twice:
            return multiplied(s, m, n) + self.zero
        # The product has 31 bits more than the sum. 28 are dropped first, so that the rest fits.
        return (((s * m) >> 28) + (1 << 2 - n) >> 3 - n) + self.zero

    def packed(self, channel: int) -> tuple[int, int]:
        m, n = self.multipliers[channel], self.shifts[channel]
        if n < -_RIGHT:
            m = n = 0
        right = max(-n, 0) - 1 & (1 << SHIFT) - 1
        return m >> HALF, right | (m & (1 << HALF) - 1) << SHIFT | max(n, 0) << SHIFT + HALF


@dataclass(frozen=True)
class DividedRequant(Requant):
    """A sum divided by the integers in `multipliers`, rounded with ties away from zero."""

    @property
    def offset(self) -> int:
        return self.zero

    def apply(self, s: Ints, shape: list[int]) -> Ints:
        n = np.asarray(self.multipliers, np.int64).reshape(shape)
        return np.asarray((s - ((s < 0) & (n & 1 == 0)) + (n >> 1)) // n + self.zero)


def unchecked(ratios: npt.ArrayLike, zero: int, low: int = 0, high: int = 255, twice: bool = True) -> DoubledRequant:
    """The multipliers of TensorFlow Lite's arithmetic for `ratios`; `check_doubled` tells whether kernels can compute
    with them."""
    pairs = [quantize_multiplier(float(r)) for r in np.atleast_1d(np.asarray(ratios, np.float64))]
    return DoubledRequant(tuple(m for m, _ in pairs), 0, 0, zero, low, high, tuple(n for _, n in pairs), twice)


def doubled(
    ratios: npt.ArrayLike,
    bound: npt.ArrayLike,
    zero: int,
    low: int = 0,
    high: int = 255,
    what: str = "layer",
    twice: bool = True,
    left: int = LEFT,
) -> DoubledRequant:
    """As `reference.choose`, for TensorFlow Lite's arithmetic. left: the longest left shift. Raises UnsupportedError if
    it does not fit words."""
    r = unchecked(ratios, zero, low, high, twice)
    check_doubled(r, bound, what, left)
    return r


def check_doubled(r: DoubledRequant, bound: npt.ArrayLike, what: str, left: int = LEFT) -> None:
    """Raises UnsupportedError if a sum below `bound` in magnitude would leave the words of a kernel."""
    u, longest = max(m >> HALF for m in r.multipliers), max(0, *r.shifts)
    most = int(np.asarray(bound, np.int64).max(initial=0))
    before = most << max(0, longest - LEFT)
    if longest > left or ((before >> LOW) + 2) * u + (1 << 18) >= LIMIT or most << longest >= LIMIT:
        raise UnsupportedError(
            f"{what}: its sums of up to {most} do not fit 32-bit words in TensorFlow Lite's arithmetic; "
            "build it from the float model with calibration samples instead"
        )
