"""Sums and differences of two tensors in TensorFlow Lite's arithmetic (quantization/doubled.py).

Both operands are rescaled to a common scale with 20 fractional bits, and their sum to the output's scale by a 31-bit
multiplier. That product does not fit a kernel's words. So the kernel estimates the output to within one step, and then
looks up the range of sums for which the estimate is correct.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from emberlet.errors import UnsupportedError

from ..quantization.doubled import multiplied, quantize_multiplier
from ..quantization.reference import LIMIT, Ints
from .elementwise import _Binary
from .layer import Array, emit_clamp
from .writer import Writer

LEFT = 20
"""Fractional bits of an operand on the common scale."""

_SMALL = 15
"""Bits of the sum and of the multiplier in the estimate of the output."""


@dataclass(frozen=True)
class DoubledSum(_Binary):
    """operation: "add" or "sub"; zeros: the operands' zero points; scales: of both operands and the output; zero, low,
    high: of the output."""

    zeros: tuple[int, int]
    scales: tuple[float, float, float]
    zero: int
    low: int = 0
    high: int = 255

    is_doubled = True

    @cached_property
    def factors(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Multiplier and shift of both operands and of the output."""
        first, second, out = self.scales
        twice = 2 * max(first, second)
        ratios = (first / twice, second / twice, twice / ((1 << LEFT) * out))
        a, b, c = (quantize_multiplier(r) for r in ratios)
        return a, b, c

    def scaled(self, x: Array, which: int) -> Ints:
        """Bytes of an operand on the common scale."""
        m, shift = self.factors[which]
        return multiplied((x.astype(np.int64) - self.zeros[which]) << LEFT, m, shift)

    def brought(self, sums: Ints) -> Ints:
        m, shift = self.factors[2]
        return np.clip(multiplied(sums, m, shift) + self.zero, self.low, self.high)

    @cached_property
    def lift(self) -> int:
        """Added to every sum to make it positive."""
        every = np.arange(256)
        return int(np.abs(self.scaled(every, 0)).max() + np.abs(self.scaled(every, 1)).max()) + 1

    @cached_property
    def estimate(self) -> tuple[int, int, int]:
        """(c, m, n) of the estimate ((s >> c) * m + offset) >> n."""
        c = max(0, self.lift.bit_length() - _SMALL)
        m, shift = self.factors[2]
        ratio = m / 2 ** (31 - shift) * (1 << c)
        # 0: the output is too fine.
        n = next((n for n in range(20, 0, -1) if ratio * (1 << n) < 1 << _SMALL - 1), 0)
        return c, round(ratio * (1 << n)), n

    @property
    def offset(self) -> int:
        n = self.estimate[2]
        return (self.zero << n) + (1 << n >> 1)

    @cached_property
    def thresholds(self) -> Ints:
        """The smallest sums that give at least low, low + 1, …, high, and one that no sum reaches; all include
        `lift`."""
        steps = np.arange(self.low + 1, self.high + 1)
        low, high = np.full(len(steps), -self.lift), np.full(len(steps), self.lift)
        while np.any(low < high):
            middle = (low + high) >> 1
            reached = self.brought(middle) >= steps
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        return np.asarray(np.concatenate([[-self.lift], low, [LIMIT - 1 - self.lift]])) + self.lift

    def check(self) -> None:
        """Raises UnsupportedError if the estimate is off by more than a step: the output is too fine for it."""
        c, m, n = self.estimate
        if n:
            edges = self.thresholds[1:-1] - self.lift
            sums = np.concatenate([edges, edges - 1])
            off = np.clip((sums >> c) * m + self.offset >> n, self.low, self.high) - self.brought(sums)
            if np.abs(off).max(initial=0) <= 1:
                return
        ratio = max(self.scales[:2]) / self.scales[2]
        raise UnsupportedError(
            f"{self.name}: its operands' scales are {ratio:.3g} times the output's; "
            "build it from the float model with calibration samples instead"
        )

    def constants(self) -> tuple[Array, list[int]]:
        self.check()
        return super().constants()[0], [int(t) for t in self.thresholds]

    def begin(self, w: Writer) -> None:
        w.table("q", "to")

    def compute(self, w: Writer, a: str, b: str) -> None:
        c, m, n = self.estimate
        self._scale(w, a, 0)
        w.line("d = s")
        self._scale(w, b, 1)
        w.line(f"d = d {'+' if self.operation == 'add' else '-'} s")
        w.line(f"s = (d >> {c}) * {m} + {self.offset} >> {n}")
        emit_clamp(w, self.low, self.high)
        w.line(f"d += {self.lift}")
        place = f"s - {self.low}" if self.low else "s"
        with w.block(f"if d < {w.word('q', place)}"):
            w.line("s -= 1")
        with w.block(f"elif d >= {w.word('q', f's + {1 - self.low}' if self.low != 1 else 's')}"):
            w.line("s += 1")

    def _scale(self, w: Writer, element: str, which: int) -> None:
        """Write code that sets s to `scaled`: the exact product in two halves, and the second rounding."""
        m, shift = self.factors[which]
        w.line(f"s = {element} - {self.zeros[which]}" if self.zeros[which] else f"s = {element}")
        if m == 1 << 30:
            w.line("s = s << 19")
        else:
            w.line(f"s = (s * {m >> 16} << 5) + (s * {m & 65535} + 1024 >> 11)")
        if shift:
            with w.block("if s < 0"):
                w.line("s -= 1")
            w.line(f"s = s + {1 << -shift - 1} >> {-shift}")
