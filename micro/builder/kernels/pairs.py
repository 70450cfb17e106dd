"""Elementwise maximum, minimum, quotients and comparisons of two tensors.

The second operand may be broadcast or constant, as for sums (elementwise.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

import numpy as np
from emberlet.errors import UnsupportedError

from ..quantization.reference import LIMIT, Bytes, Requant
from .elementwise import _Binary
from .layer import Array, emit_clamp, emit_extreme
from .writer import Writer

COMPARISONS = {"greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "=="}

MIRRORED = {
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "equal": "equal",
}
"""The comparison of the operands the other way round."""


@dataclass(frozen=True)
class ExtremeFloat(_Binary):
    """In float32; operation: "max" or "min"."""

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s = {a}")
        w.line(f"v = {b}")
        emit_extreme(w, self.operation)


@dataclass(frozen=True)
class Extreme(_Binary):
    """Int8. zeros: the operands' zero points; factors: rescale both operands to `2**-shift` steps of the output, as for
    a sum."""

    zeros: tuple[int, int]
    factors: tuple[int, int]
    requant: Requant

    @property
    def starts(self) -> tuple[int, int]:
        """The initial value of both products: rounding and zero points."""
        (a, b), (first, second) = self.factors, self.zeros
        return self.requant.offset - a * first, self.requant.offset - b * second

    def compute(self, w: Writer, a: str, b: str) -> None:
        for name, element, factor, start in zip("sv", (a, b), self.factors, self.starts, strict=True):
            w.line(f"{name} = {element} * {factor} {'+' if start >= 0 else '-'} {abs(start)}")
        emit_extreme(w, self.operation)
        w.line(f"s = s >> {self.requant.shift}")
        emit_clamp(w, 0, 255)


@dataclass(frozen=True)
class Quotient(_Binary):
    """Int8, with one division per element. Division by zero gives the smallest or the largest number, depending on the
    dividend's sign.

    zeros: the operands' zero points; factor: rescales a dividend to `2**-shift` times a step of the output times a step
    of the divisor.
    """

    zeros: tuple[int, int]
    factor: int
    requant: Requant

    unroll: ClassVar[int] = 2

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s = ({a} - {self.zeros[0]}) * {self.factor}")
        w.line(f"d = {b} - {self.zeros[1]}")
        with w.block("if d < 0"):
            w.line("d = 0 - d")
            w.line("s = 0 - s")
        with w.block("if d"):
            w.line(f"s = (s + (d >> 1)) // d + {self.requant.offset} >> {self.requant.shift}")
        with w.block("elif s"):
            w.line("s = 255 if s > 0 else 0")
        with w.block("else"):
            w.line(f"s = {self.requant.zero}")
        emit_clamp(w, self.requant.low, self.requant.high)


def quotient_factor(ratio: float, zero: int, low: int, high: int, what: str) -> tuple[int, Requant]:
    """Factor and shift for `Quotient`. ratio: the dividend's scale over the product of the divisor's and the output's.

    Raises UnsupportedError if the output's scale is too fine.
    """
    for shift in range(20, 0, -1):
        factor = round(ratio * 2**shift)
        if 255 * factor + (zero + 1 << shift) < LIMIT:
            return factor, Requant((), shift, 0, zero, low, high)
    raise UnsupportedError(
        f"{what}: its output's scale is {ratio:.3g} times finer than its operands'; "
        "calibrate with samples that reach the output's true range, or build the model with --float"
    )


@dataclass(frozen=True)
class CompareFloat(_Binary):
    """In float32, 1 or 0; operation: of COMPARISONS."""

    def compute(self, w: Writer, a: str, b: str) -> None:
        w.line(f"s = 1.0 if {a} {COMPARISONS[self.operation]} {b} else 0.0")


@dataclass(frozen=True)
class Compare(_Binary):
    """Int8; 1 if a * factors[0] - b * factors[1] + start is in low..high, else 0. None: no bound."""

    factors: tuple[int, int]
    start: int
    low: int | None
    high: int | None

    def compute(self, w: Writer, a: str, b: str) -> None:
        first, second = (
            x if factor == 1 else f"{x} * {factor}" for x, factor in zip((a, b), self.factors, strict=True)
        )
        start = f" {'+' if self.start > 0 else '-'} {abs(self.start)}" if self.start else ""
        w.line(f"d = {first} - {second}{start}")
        w.line("s = 0")
        if self.low == self.high:
            with w.block(f"if d == {self.low}"):
                w.line("s = 1")
            return
        tests = [] if self.low is None else [f"d >= {self.low}"]
        tests += [] if self.high is None else [f"d <= {self.high}"]
        with w.block("if " + " and ".join(tests)):
            w.line("s = 1")


def compare_tensors(operation: str, scales: tuple[float, float], zeros: tuple[int, int]) -> dict[str, object]:
    """The constants of `Compare` for two tensors. If the steps differ, numbers closer than half of both steps are
    equal, since two bytes for one number may be that far apart."""
    greatest = max(scales)
    a, b = (round(s / greatest * (1 << 20)) for s in scales)
    shared = gcd(a, b)
    a, b = a // shared, b // shared
    half = a + b - 1 >> 1
    bounds = {
        "greater": (half + 1, None),
        "greater_equal": (-half, None),
        "less": (None, -half - 1),
        "less_equal": (None, half),
        "equal": (-half, half),
    }
    low, high = bounds[operation]
    return {"factors": (a, b), "start": zeros[1] * b - zeros[0] * a, "low": low, "high": high}


def nearest_byte(numbers: Array, scale: float, zero: int) -> Array:
    """The bytes of numbers; numbers out of range become less than 0 or more than 255."""
    steps = numbers / scale + zero
    rounded = np.rint(numbers / scale) + zero
    return np.where(np.abs(steps - 127.5) < 128 + 1e-6, np.clip(rounded, 0, 255), rounded)


def compare_constant(operation: str, numbers: Array, scale: float, zero: int) -> tuple[Bytes, dict[str, object]]:
    """The bytes of a constant for `Compare`, in steps of the tensor that it is compared with, and the other constants.
    If numbers lie both below and above all bytes, the first and the last byte stand for them.
    """
    nearest = nearest_byte(np.asarray(numbers, np.float64), scale, zero)
    if operation == "equal":
        is_byte = (nearest >= 0) & (nearest <= 255)
        # All bytes are compared one step higher or lower, so that a number without an equal byte gets one that no
        # element reaches.
        lift = 0 if is_byte.all() else -1 if (nearest == 255).any() else 1
        stored = np.clip(np.where(is_byte, nearest + lift, 0 if lift > 0 else 255), 0, 255).astype(np.uint8)
        return stored, {"factors": (1, 1), "start": lift, "low": 0, "high": 0}
    # The smallest byte that is "greater", or "greater or equal", in 0…256.
    at_least = np.clip(nearest + (operation in ("greater", "less_equal")), 0, 256)
    lift = 1 if (at_least == 256).any() and (at_least > 0).all() else 0
    stored = np.clip(at_least - lift, 0, 255).astype(np.uint8)
    low, high = (0, None) if operation.startswith("greater") else (None, -1)
    return stored, {"factors": (1, 1), "start": -lift, "low": low, "high": high}
