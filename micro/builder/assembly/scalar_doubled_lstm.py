"""What an LSTM of a .tflite file computes from its gates' sums, on the scalar machine: the gates' functions, the cells,
and the hidden state. kernels/doubled_lstm.py says what the numbers mean. Cortex-M4 and M7 run the code of Cortex-M0.

Numbers of 16 bits lie in the arena byte by byte, MIDDLE above themselves.
"""

from __future__ import annotations

from ..kernels.doubled_lstm import CONSTANTS, EIGHTH, FIRST, ONE, POWERS, SLOPE, THIRD
from .frame import Frame
from .scalar import H0, H1, H2, H3, V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from .scalar_dot import clamp

SQUASH = Frame(("x", "y", "q", "xstep", "ystep", "count"))
"""x, y: the first number, and its function's place; xstep, ystep: to the next."""

CELLS = Frame(("x", "c", "right", "low", "high", "count"))
"""x: the first unit's gates; c: its cell; right: one less than the bits by which the product of two gates is shifted;
low, high: what cells are clamped to, MIDDLE above themselves."""

UNITS = Frame(("x", "t", "y", "m0", "m1", "m2", "right", "zero", "mask", "count"))
"""x: the first unit's last gate; t: tanh of its cell; y: its hidden state; m0, m1, m2: ten bits each of the multiplier,
the lowest first; right: one less than the bits of the last shift; mask: 15 bits."""


def _constant(a: Scalar, d: int, value: int) -> None:
    a.word(d, V7, 4 * CONSTANTS.index(value))


def _rounded_product(a: Scalar, d: int, m: int) -> None:
    """d = d * m / 2**15, rounded half up; 2**14 in H0."""
    a.times(d, m)
    a.plus(d, H0)
    a.right_by(d, d, 15)


def _load(a: Scalar, d: int, spare: int, base: int, k: int = 0) -> None:
    """A number of 16 bits, still MIDDLE above itself."""
    a.byte(d, base, k + 1)
    a.left(d, 8)
    a.byte(spare, base, k)
    a.plus(d, spare)


def _store(a: Scalar, d: int, base: int) -> None:
    """Clobbers d."""
    a.store_byte(d, base)
    a.right_by(d, d, 8)
    a.store_byte(d, base, 1)


def _again(a: Scalar, f: Frame, spare: int) -> None:
    """Go on with the next of `count`, or return to the driver."""
    a.get(spare, f["count"])
    a.step(spare, -1)
    a.put(spare, f["count"])
    a.go_if_zero("ne", spare, "next", far=True)
    a.leave(f)


def squash(a: Scalar, bits: int, tanh: bool) -> Scalar:
    """kernels.doubled_lstm.squash of numbers with `bits` bits before the point."""
    f = SQUASH
    a.enter(f, {"x": "A", "y": "A", "q": "T"})
    a.get(V7, f["q"])
    a.number(V0, 64)
    for h, shift in ((H3, 7), (H0, 1)):  # 2**13, 2**14
        a.left(V0, shift)
        a.copy(h, V0)
    _constant(a, V0, ONE + 1)
    a.copy(H2, V0)
    a.number(V0, 16)
    a.left(V0, 8)
    a.number(V1, 0)
    a.minus(V1, V0)
    a.copy(H1, V1)  # -2**12
    a.label("next")
    a.get(V6, f["x"])
    _load(a, V0, V1, V6)
    a.get(V1, f["xstep"])
    a.plus(V6, V1)
    a.put(V6, f["x"])
    a.copy(V1, H2)
    a.minus(V0, V1)
    a.copy(V5, V0)
    a.go_if_zero("lt", V0, "negative")
    a.number(V1, 0)
    a.minus(V1, V0)
    a.copy(V0, V1)
    a.label("negative")
    _exponential(a, bits + tanh)
    _quotient(a)
    if tanh:
        a.copy(V0, H3)
        a.minus(V2, V0)
    a.left(V2, 2 if tanh else 1)
    _constant(a, V0, ONE)
    a.go_if("ge", V0, V2, "not above")
    a.copy(V2, V0)
    a.label("not above")
    a.go_if_zero("lt", V5, "below zero")
    a.go_if_zero("ne", V5, "signed")
    if tanh:
        a.number(V2, 0)
    else:
        a.copy(V2, H0)
    a.go("signed")
    a.label("below zero")
    if tanh:
        a.number(V0, 0)
    a.minus(V0, V2)
    a.copy(V2, V0)
    a.label("signed")
    a.plus(V2, H2)
    a.get(V6, f["y"])
    _store(a, V2, V6)
    a.get(V1, f["ystep"])
    a.plus(V6, V1)
    a.put(V6, f["y"])
    _again(a, f, V0)
    return a


def _exponential(a: Scalar, bits: int) -> None:
    """V4 = exp of the number in V0, which is not above zero, in steps of 2**-15. Clobbers V0 to V3.

    V1 becomes the number's quarters, rounded down, and V2 what is left, less 1/8, in steps of 2**-15. POWERS are
    factors for quarters.
    """
    a.right_by(V1, V0, 13 - bits)
    a.left_from(V2, V0, bits)
    a.left_from(V3, V1, 13)
    a.minus(V2, V3)
    a.plus(V2, H1)
    a.copy(V3, V2)
    _rounded_product(a, V3, V2)
    a.copy(V4, V3)
    _rounded_product(a, V4, V3)
    a.step(V4, 2)
    a.right_by(V4, V4, 2)
    a.copy(V0, V2)
    _rounded_product(a, V0, V3)
    a.plus(V4, V0)
    _constant(a, V0, THIRD)
    _rounded_product(a, V4, V0)
    a.plus(V4, V3)
    a.step(V4, 1)
    a.right_by(V4, V4, 1)
    a.plus(V4, V2)
    _constant(a, V0, EIGHTH)
    _rounded_product(a, V4, V0)
    a.plus(V4, V0)
    # V1 is below zero: its bits are the inverse of those of the quarters but one.
    for k in range(2 + bits):
        a.left_from(V0, V1, 31 - k)
        a.go_if_zero("lt", V0, f"without {k}")
        if POWERS[k]:
            _constant(a, V0, POWERS[k])
            _rounded_product(a, V4, V0)
        else:
            a.number(V4, 0)
        a.label(f"without {k}")
    if bits > 5:
        a.number(V0, 128)
        a.plus(V0, V1)
        a.go_if_zero("ge", V0, "not too small")
        a.number(V4, 0)
        a.label("not too small")


def _quotient(a: Scalar) -> None:
    """V2 = 1 / (1 + V4), V4 in steps of 2**-15, the quotient of 2**-14. Clobbers V0, V3 and V4."""
    a.plus(V4, H2)
    a.right_by(V4, V4, 1)
    _constant(a, V0, SLOPE)
    a.times(V0, V4)
    a.copy(V2, H0)
    a.minus(V2, V0)
    a.right_by(V2, V2, 15)
    _constant(a, V0, FIRST)
    a.plus(V2, V0)
    for _ in range(3):
        a.copy(V0, V2)
        _rounded_product(a, V0, V4)
        a.copy(V3, H3)
        a.minus(V3, V0)
        _rounded_product(a, V3, V2)
        a.left(V3, 2)
        a.plus(V2, V3)


def cells(a: Scalar) -> Scalar:
    """The new cells: forget gate times cell, and input gate times candidate."""
    f = CELLS
    a.enter(f, {"x": "A", "c": "A"})
    a.get(V5, f["x"])
    a.get(V6, f["c"])
    a.number(V7, 128)
    a.left(V7, 8)
    a.label("next")
    _product(a, V0, V1, V2, (V5, 2), (V6, 0))
    a.number(V1, 14)
    _away(a, V0, V1, V2)
    a.copy(V3, V0)
    _product(a, V0, V1, V2, (V5, 0), (V5, 4))
    a.get(V1, f["right"])
    _away(a, V0, V1, V2)
    a.plus(V0, V3)
    a.plus(V0, V7)
    clamp(a, f, V0, V1, "cell", False)
    _store(a, V0, V6)
    a.step(V5, 8)
    a.step(V6, 2)
    _again(a, f, V0)
    return a


def _product(a: Scalar, d: int, m: int, spare: int, first: tuple[int, int], second: tuple[int, int]) -> None:
    """d = the product of two numbers, each at a pointer and an offset; MIDDLE in V7."""
    for r, (base, k) in ((d, first), (m, second)):
        _load(a, r, spare, base, k)
        a.minus(r, V7)
    a.times(d, m)


def _away(a: Scalar, d: int, right: int, spare: int) -> None:
    """d / 2**(right + 1), rounded, ties away from zero."""
    a.right_by(spare, d, 31)
    a.plus(d, spare)
    a.right(d, right)
    a.step(d, 1)
    a.right_by(d, d, 1)


def units(a: Scalar) -> Scalar:
    """The hidden state: the output gate times tanh of the cell, rescaled to bytes in parts of 15 and of 10 bits."""
    f = UNITS
    a.enter(f, {"x": "A", "t": "A", "y": "A"})
    a.get(V5, f["x"])
    a.get(V6, f["t"])
    a.number(V7, 128)
    a.left(V7, 8)
    a.label("next")
    _product(a, V0, V1, V2, (V5, 0), (V6, 0))
    a.copy(V1, V0)
    a.get(V2, f["mask"])
    a.bitwise_and(V1, V2)
    a.right_by(V0, V0, 15)
    a.get(V2, f["m0"])
    a.copy(V3, V1)
    a.times(V3, V2)
    a.right_by(V3, V3, 10)
    a.times(V2, V0)
    for name in ("m1", "m2"):
        a.get(V4, f[name])
        a.times(V4, V1)
        a.plus(V3, V4)
        a.right_by(V3, V3, 5)
        a.plus(V3, V2)
        a.get(V2, f[name])
        a.times(V2, V0)
        if name == "m1":
            a.right_by(V3, V3, 5)
    a.step(V3, 32)
    a.right_by(V3, V3, 6)
    a.left(V2, 4)
    a.plus(V3, V2)
    a.get(V1, f["right"])
    _away(a, V3, V1, V2)
    a.get(V0, f["zero"])
    a.plus(V0, V3)
    clamp(a, f, V0, V1, "unit", True)
    a.get(V4, f["y"])
    a.store_byte(V0, V4)
    a.step(V4, 1)
    a.put(V4, f["y"])
    a.step(V5, 8)
    a.step(V6, 2)
    _again(a, f, V0)
    return a
