"""The block of words that the kernels take, and what they share."""

from __future__ import annotations

from collections.abc import Callable

from ..thumb import R0, R2, R3, R4, R5, R6, R7, R8, Thumb

FIELDS = (
    *("at", "samples", "window", "order", "z", "wave", "size", "around", "length", "is_odd"),
    *("first", "end", "shares", "spans", "count", "logs", "unit", "least", "sums", "cosines", "coefficients", "out"),
)
"""The words of the block, as `Mfcc` fills it: numbers, and addresses of its arrays."""

PLACES = {name: 4 * k for k, name in enumerate(FIELDS)}

BITS = 14
"""Of the lower half of a number."""

Load = Callable[[int], None]
"""Loads something into a register."""


def save(a: Thumb, frame: int) -> None:
    """r8 to r11, and make room for a frame."""
    for k in range(4):
        a.mov(R4 + k, R8 + k)
    a.push(R4, R5, R6, R7)
    a.sub_sp(frame)


def restore(a: Thumb, frame: int) -> None:
    a.add_sp(frame)
    a.pop(R4, R5, R6, R7)
    for k in range(4):
        a.mov(R8 + k, R4 + k)


def field(a: Thumb, d: int, name: str, block: int = R0) -> None:
    a.ldr(d, block, PLACES[name])


def far(a: Thumb, condition: str, target: str) -> None:
    """A branch that may be far away."""
    inverse = {"cc": "cs", "ne": "eq", "ls": "hi", "eq": "ne"}[condition]
    skip = f"past {a.size}"
    a.b_if(inverse, skip)
    a.b(target)
    a.label(skip)


def halves(a: Thumb, word: int, high: int) -> None:
    """`word` has the halves of a factor, 16 bits with a sign each: `high` becomes the upper one, `word` the lower."""
    a.sxth(high, word)
    a.asrs(word, word, 16)


def shear(a: Thumb, x: int, y: int, high: Load, low: Load, spare: tuple[int, int, int, int]) -> None:
    """x += y times a factor, of which `high` and `low` load the halves into a register."""
    h, rest, m, c = spare
    a.asrs(h, y, BITS)
    a.lsls(rest, h, BITS)
    a.subs(rest, y, rest)
    low(m)
    a.muls(m, h)
    high(c)
    a.muls(rest, c)
    a.muls(h, c)
    a.adds(rest, rest, m)
    a.adds(x, x, h)
    a.asrs(rest, rest, BITS)
    a.adcs(x, rest)


def turn(a: Thumb, x: int, y: int, factors: tuple[Load, Load, Load, Load]) -> None:
    """Turn (x, y) forward. Clobbers r2 to r5."""
    spare = R2, R3, R4, R5
    shear(a, x, y, *factors[:2], spare)
    shear(a, y, x, *factors[2:], spare)
    shear(a, x, y, *factors[:2], spare)
