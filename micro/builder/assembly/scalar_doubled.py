"""TensorFlow Lite's requantization on the scalar machine, whose products have only 32 bits."""

from __future__ import annotations

from collections.abc import Callable

from ..quantization.doubled import HALF, LOW, DoubledRequant
from .frame import Frame
from .scalar import Scalar

Load = Callable[[int], None]


def fields(r: DoubledRequant) -> dict[str, int]:
    """Values of scalar_dot.REQUANT: the zero point, and the shifts of a product's quarters."""
    return {
        "offset": r.zero,
        "rest": LOW,
        "split": (1 << HALF) - 1,
        "mask": (1 << LOW) - 1,
        "low": r.low,
        "high": r.high,
    }


def doubled(
    a: Scalar, f: Frame, s: int, upper: Load, lower: Load, spare: tuple[int, int, int, int, int], mark: str, twice: bool
) -> None:
    """Requantize register s and add the zero point; see DoubledRequant.

    upper, lower: load each word of the multiplier into a register; spare: registers that may be clobbered.
    """
    u, v, e, t, bits = spare
    a.copy(e, s)
    a.get(t, f["mask"])
    a.bitwise_and(e, t)
    a.get(bits, f["rest"])
    a.right(s, bits)
    lower(v)
    a.get(t, f["split"])
    a.bitwise_and(v, t)
    upper(u)
    a.copy(t, e)
    a.times(t, v)
    a.right(t, bits)
    a.times(v, s)
    a.plus(v, t)
    a.number(t, HALF - LOW)
    a.right(v, t)
    a.times(e, u)
    a.plus(e, v)
    a.right(e, bits)
    a.times(s, u)
    a.plus(s, e)  # the product, without its lowest 28 bits

    # v: the shift to the right; e: the one to the left.
    lower(v)
    a.number(t, HALF)
    a.right(v, t)
    a.copy(e, v)
    a.number(t, 5)
    a.right(e, t)
    a.number(t, 31)
    a.bitwise_and(v, t)
    if not twice:
        a.step(v, 3)
        a.minus(v, e)
        _rounded(a, s, v, t)
    else:
        a.number(u, 3)
        a.minus(u, e)
        _rounded(a, s, u, t)
        a.go_if_zero("eq", v, f"not shifted {mark}")
        # Ties round away from zero: a negative number is decremented before rounding.
        a.copy(e, s)
        a.number(t, 31)
        a.right(e, t)
        a.plus(s, e)
        _rounded(a, s, v, t)
        a.label(f"not shifted {mark}")
    a.get(t, f["offset"])
    a.plus(s, t)


def _rounded(a: Scalar, s: int, bits: int, t: int) -> None:
    """s / 2**bits, rounded half up. bits: a register that holds at least 1. Clobbers bits and t."""
    a.step(bits, -1)
    a.right(s, bits)
    a.step(s, 1)
    a.number(t, 1)
    a.right(s, t)
