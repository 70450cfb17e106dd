"""TensorFlow Lite's requantization on the scalar machine, whose products have only 32 bits."""

from __future__ import annotations

from collections.abc import Callable

from ..quantization.doubled import HALF, LOW, SHIFT, DoubledRequant
from .frame import Frame
from .scalar import Scalar

Load = Callable[[int], None]


def fields(r: DoubledRequant) -> dict[str, int]:
    """Values of scalar_dot.REQUANT: the zero point (for `shifted`, twice it and the half that rounds), and the shifts
    of a product's quarters."""
    return {
        "offset": 2 * r.zero + 1 if r.shifted else r.zero,
        "rest": LOW,
        "split": (1 << HALF) - 1,
        "mask": (1 << LOW) - 1,
        "low": r.low,
        "high": r.high,
    }


Spare = tuple[int, int, int, int]


def rescaled(a: Scalar, f: Frame, s: int, upper: Load, lower: Load, spare: Spare, mark: str, how: str) -> None:
    """Requantize register s and add the zero point; see DoubledRequant.

    upper, lower: load each word of the multiplier into a register; spare: registers that may be clobbered; how:
    "shifted", or how often is rounded.
    """
    if how == "shifted":
        _shifted(a, f, s, upper, lower, spare)
    else:
        _doubled(a, f, s, upper, lower, spare, mark, how == "twice")


def _product(a: Scalar, f: Frame, s: int, upper: Load, lower: Load, spare: Spare, left: bool) -> None:
    """s = the product with the multiplier, without its lowest 28 bits. left: whether there are left shifts."""
    u, v, e, t = spare
    a.copy(e, s)
    a.get(t, f["mask"])
    a.bitwise_and(e, t)
    a.right_by(s, s, LOW)
    lower(v)
    a.right_by(v, v, SHIFT)
    if left:
        a.get(t, f["split"])
        a.bitwise_and(v, t)
    upper(u)
    a.copy(t, e)
    a.times(t, v)
    a.right_by(t, t, LOW)
    a.times(v, s)
    a.plus(v, t)
    a.right_by(v, v, HALF - LOW)
    a.times(e, u)
    a.plus(e, v)
    a.right_by(e, e, LOW)
    a.times(s, u)
    a.plus(s, e)


def _shifted(a: Scalar, f: Frame, s: int, upper: Load, lower: Load, spare: Spare) -> None:
    """Where every product is shifted to the right, by more than nothing."""
    _product(a, f, s, upper, lower, spare, False)
    v, e = spare[1:3]
    a.right_by(s, s, 2)
    a.step(s, 1)
    a.right_by(s, s, 1)
    # Ties round away from zero: a negative number is decremented before rounding.
    a.right_by(e, s, 31)
    a.plus(s, e)
    lower(v)
    a.right(s, v)  # by the lowest byte
    a.get(e, f["offset"])
    a.plus(s, e)
    a.right_by(s, s, 1)


def _doubled(a: Scalar, f: Frame, s: int, upper: Load, lower: Load, spare: Spare, mark: str, twice: bool) -> None:
    _product(a, f, s, upper, lower, spare, True)
    u, v, e, t = spare
    # v: the shift to the right; e: the one to the left.
    lower(v)
    a.right_by(e, v, SHIFT + HALF)
    a.step(v, 1)
    a.low_byte(v)
    if not twice:
        a.step(v, 3)
        a.minus(v, e)
        _rounded(a, s, v)
    else:
        a.number(u, 3)
        a.minus(u, e)
        _rounded(a, s, u)
        a.go_if_zero("eq", v, f"not shifted {mark}")
        a.right_by(e, s, 31)
        a.plus(s, e)
        _rounded(a, s, v)
        a.label(f"not shifted {mark}")
    a.get(t, f["offset"])
    a.plus(s, t)


def _rounded(a: Scalar, s: int, bits: int) -> None:
    """s / 2**bits, rounded half up. bits: a register that holds at least 1. Clobbers bits."""
    a.step(bits, -1)
    a.right(s, bits)
    a.step(s, 1)
    a.right_by(s, s, 1)
