"""Products of integers and a float32 number, rounded to float32 half to even, as a processor does.

An integer is in V2. V6: the number's mantissa, of 24 bits; V3: its exponent, CARRIED - 1 above itself. The product's
bits end in V5. The product must be neither too large nor too small for a normal float32 number.
"""

from __future__ import annotations

from ..scalar import V1, V2, V3, V4, V5, V6
from .numbers import Numbers, negate

CARRIED = 8
"""Bits by which the product of a mantissa and an integer of one byte is longer at most."""


def product(a: Numbers, spare: int) -> None:
    """Of an integer that is at most 255 above or below zero. Clobbers V2 to V4 and `spare`."""
    _magnitude(a)
    a.times(V4, V6)
    _shift(a)
    _rounded(a, spare)
    a.left(V3, 23)
    a.plus(V5, V3)
    _signed(a)
    a.label("product")


def long_product(a: Numbers, at: int, power: bool) -> None:
    """Of an integer of less than 30 bits, which becomes float32 first. power: whether the number is a power of two, so
    that its mantissa, which V6 then is not, changes nothing. Clobbers V1 to V6, and a word on the stack."""
    a.put(V2, at)
    _magnitude(a)
    a.step(V3, 32 - CARRIED - 1 - power)
    a.left(V4, 1)
    a.label("bytes")
    a.right_plain_from(V5, V4, 23)
    a.go_if_zero("ne", V5, "bits")
    a.left(V4, 8)
    a.step(V3, -8)
    a.go("bytes")
    a.label("bits")  # of which the highest is not set yet
    a.step(V3, -1)
    a.left(V4, 1)
    a.go_if_zero("ge", V4, "bits")
    _rounded(a, V1)
    a.right_plain_from(V2, V5, 24)
    a.go_if_zero("eq", V2, "halves")
    a.right_plain(V5, 1)
    a.step(V3, 1)
    a.label("halves")
    if not power:
        _long(a)
    a.left(V3, 23)
    a.plus(V5, V3)
    a.get(V2, at)
    _signed(a)
    a.label("product")


def _magnitude(a: Numbers) -> None:
    """V4: the integer without its sign; if it is zero, this is the product."""
    a.copy(V5, V2)
    a.go_if_zero("eq", V2, "product", far=True)
    a.copy(V4, V2)
    a.go_if_zero("ge", V2, "positive")
    negate(a, V4, V5)
    a.label("positive")


def _shift(a: Numbers) -> None:
    """Shift V4 until its highest bit is set, and count in V3."""
    a.label("shift")
    a.go_if_zero("lt", V4, "shifted")
    a.left(V4, 1)
    a.step(V3, -1)
    a.go("shift")
    a.label("shifted")


def _rounded(a: Numbers, spare: int) -> None:
    """V5: the highest 24 bits of V4; 25 if it is rounded to those."""
    a.copy(V5, V4)
    a.right_plain(V5, CARRIED)
    a.low_byte(V4)
    a.number(spare, 1)
    a.bitwise_and(spare, V5)
    a.plus(V4, spare)
    a.step(V4, (1 << CARRIED >> 1) - 1)
    a.right_plain(V4, CARRIED)
    a.plus(V5, V4)


def _long(a: Numbers) -> None:
    """V5: the highest 24 bits of the product of 48 bits of V5 and V6, rounded. V1: those bits; V2: the others, from bit
    8 on, then from bit 0."""
    a.right_plain_from(V1, V5, 12)
    a.left(V5, 20)
    a.right_plain(V5, 20)
    a.right_plain_from(V4, V6, 12)
    a.left(V6, 20)
    a.right_plain(V6, 20)
    a.copy(V2, V6)
    a.times(V2, V5)
    a.times(V6, V1)
    a.times(V5, V4)
    a.plus(V6, V5)
    a.times(V1, V4)
    a.right_plain_from(V5, V6, 12)
    a.plus(V1, V5)
    a.left(V6, 20)
    a.right_plain(V6, 8)
    a.plus(V2, V6)
    a.right_plain_from(V5, V2, 24)
    a.plus(V1, V5)
    a.left(V2, 8)
    a.right_plain_from(V5, V1, 23)
    a.go_if_zero("ne", V5, "normal")
    a.left(V1, 1)
    a.right_plain_from(V5, V2, 31)
    a.plus(V1, V5)
    a.left(V2, 1)
    a.step(V3, -1)
    a.label("normal")
    a.right_plain(V2, 8)
    a.number(V5, 1)
    a.bitwise_and(V5, V1)
    a.plus(V2, V5)
    a.number(V5, 128)
    a.left(V5, 16)
    a.step(V5, -1)
    a.plus(V2, V5)
    a.right_plain(V2, 24)
    a.copy(V5, V1)
    a.plus(V5, V2)


def _signed(a: Numbers) -> None:
    """Add the sign of V2 to V5."""
    a.right_plain(V2, 31)
    a.left(V2, 31)
    a.plus(V5, V2)
