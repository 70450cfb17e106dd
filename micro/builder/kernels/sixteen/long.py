"""Sums that do not fit a word, in three parts `t`, `h` and `s`: t * 2**24 + h * 2**8 + s."""

from __future__ import annotations

from collections.abc import Callable

from ..writer import Writer

AT_ONCE = 32
"""Products of two 17-bit numbers that are summed between carries."""

CARRY = ("h = h + (s >> 8)", "s = s & 255", "t = t + (h >> 16)", "h = h & 65535")


def long_sum(w: Writer, count: int, add: Callable[[], None], carry: tuple[str, ...] = CARRY, most: int = 4) -> None:
    """Write code that sets the parts to a sum of `count` products. add: writes code that adds one product to `h` and
    `s`, that of the lower byte to `s`.

    Afterwards s is in 0…255 and h in 0…65535; t has the sign. carry: the lines that propagate carries; most: products
    per iteration.
    """
    for name in ("t", "h", "s"):
        w.line(f"{name} = 0")

    def some(n: int) -> None:
        unroll = next(u for u in range(most, 0, -1) if n % u == 0)
        with w.times("k", n // unroll):
            for _ in range(unroll):
                add()
        for line in carry:
            w.line(line)

    whole, rest = divmod(count, AT_ONCE)
    if whole:
        with w.times("j", whole):
            some(AT_ONCE)
    if rest:
        some(rest)
