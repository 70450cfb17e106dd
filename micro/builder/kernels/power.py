"""Elementwise powers of two tensors.

In int8 a power of a positive base is the exponential of a product. A table holds the logarithms of the 256 bases; the
output is interpolated between two of 257 tabulated numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, floor, log, log2
from typing import ClassVar

import numpy as np
from emberlet.errors import UnsupportedError

from ..functions import POWER
from ..quantization.reference import LIMIT, Ints
from .elementwise import _Binary
from .layer import Array, emit_clamp
from .writer import Writer

MOST_BITS = 14
"""The most fractional bits of a logarithm, and of the output in the table."""

INTERVALS = 256

LIFT = LIMIT >> 1
"""Added to logarithms, because words of a table must not be negative."""


@dataclass(frozen=True)
class PowerFloat(_Binary):
    """In float32."""

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"v = {a}")
        for line in POWER:
            w.line(line.format(b))
        w.line("s = v")


@dataclass(frozen=True)
class Power(_Binary):
    """In int8. scales, zeros: of base, exponent and output."""

    scales: tuple[float, float, float]
    zeros: tuple[int, int, int]

    unroll: ClassVar[int] = 1

    def check(self) -> None:
        """Raises UnsupportedError if a base may be negative."""
        if self.zeros[0]:
            raise UnsupportedError(
                f"{self.name}: a power of a tensor that may be negative (down to "
                f"{-self.scales[0] * self.zeros[0]:.3g}) has no int8 form; put Relu before it, "
                "or build the model with --float"
            )

    @cached_property
    def bits(self) -> int:
        """Fractional bits of a logarithm."""
        most = max(abs(log(self.scales[0])), abs(log(255 * self.scales[0]))) * 255 * self.scales[1]
        return min(MOST_BITS, floor(log2((LIMIT >> 1) / most)) - 1)

    @cached_property
    def logarithms(self) -> Ints:
        """Logarithms of the 256 bases, times the exponent's scale; that of zero is so small that its power is beyond
        the output's range."""
        unit = self.scales[1] * 2.0**self.bits
        values = np.log(np.arange(1, 256) * self.scales[0]) * unit
        return np.concatenate([[-(LIMIT >> 1) // 255], np.rint(values).astype(np.int64)])

    @cached_property
    def span(self) -> tuple[int, int]:
        """(smallest, bits of an interval): logarithms from the smallest on give outputs other than zero, up to the end
        of the range."""
        _, _, out = self.scales
        least = floor(log(out / 4) * 2**self.bits)
        greatest = max(least + 1, ceil(log(out * (256 - self.zeros[2])) * 2**self.bits))
        return least, max(0, ceil(log2((greatest - least) / INTERVALS)))

    @cached_property
    def table(self) -> tuple[int, Ints]:
        """(shift, numbers): the outputs at the interval ends, including zero point and rounding."""
        least, wide = self.span
        steps = [exp(min((least + (i << wide)) / 2**self.bits, 80.0)) / self.scales[2] for i in range(INTERVALS + 1)]
        values = np.minimum(np.array(steps), 600.0) + self.zeros[2] + 0.5
        shift = MOST_BITS
        while shift > 1 and float(np.diff(values).max()) * 2.0 ** (shift + wide) >= LIMIT >> 1:
            shift -= 1
        return shift, np.rint(values * 2**shift).astype(np.int64)

    def constants(self) -> tuple[Array, list[int]]:
        self.check()
        words = [*(self.logarithms + LIFT).tolist(), *self.table[1].tolist()]
        return super().constants()[0], words

    def begin(self, w: Writer) -> None:
        w.table("q", "to")

    def compute(self, w: Writer, a: str, b: str) -> None:
        (least, wide), (shift, _) = self.span, self.table
        last = (INTERVALS << wide) - 1
        w.line(f"d = {a}")
        w.line(f"s = ({b} - {self.zeros[1]}) * ({w.word('q', 'd')} - {LIFT}) {'-' if least >= 0 else '+'} {abs(least)}")
        emit_clamp(w, 0, last)
        w.line(f"d = (s >> {wide}) + 256")
        w.line(f"v = {w.word('q', 'd')}")
        w.line("d += 1")
        w.line(f"s = v + (({w.word('q', 'd')} - v) * (s & {(1 << wide) - 1}) >> {wide}) >> {shift}")
        emit_clamp(w, 0, 255)
