"""Numbers of MicroPython's lists and arrays to the ranks that trees compare: `rank`, as emit/ranks.py says it."""

from __future__ import annotations

from ..scalar import H0, H1, H2, H3, V0, V1, V2, V3, V4, V5, V6, V7
from .numbers import FIELDS, Numbers, end, negate, next_float, next_number, source


def _half(a: Numbers, d: int, base: int, k: int, spare: int) -> None:
    """d = two bytes at base + k."""
    a.byte(d, base, k + 1)
    a.left(d, 8)
    a.byte(spare, base, k)
    a.plus(d, spare)


def _move(a: Numbers, d: int, name: str) -> None:
    """d = a pointer on the stack, which then moves on by two bytes."""
    a.get(d, FIELDS[name])
    a.step(d, 2)
    a.put(d, FIELDS[name])
    a.step(d, -2)


def ranks(a: Numbers, wide: bool) -> Numbers:
    """The kernel. H0: where the numbers are; H1: where the ranks go; H3: how many thresholds the feature has; V2: where
    they begin, V7: of which V5 some may be below the number in V4; V6: the rank of NaN. wide: ranks of two bytes.

    `drive` is given the address of three: of the thresholds, as integers in order, of where each feature's begin,
    of the ranks of NaN. They move in "at", "zero" and "each".
    """
    f = FIELDS
    a.begin()
    a.enter(f, {"y": "A"})
    source(a)
    for k, name in enumerate(("at", "zero", "each")):
        a.word(V3, V2, 4 * k)
        a.put(V3, f[name])
    a.get(V1, f["y"])
    a.copy(H1, V1)
    a.number(V3, 255)
    a.left(V3, 23)
    a.copy(H2, V3)
    a.label("next")
    next_float(a, V3)
    a.copy(H0, V0)
    _move(a, V7, "each")
    _half(a, V6, V7, 0, V5)
    _move(a, V7, "zero")
    _half(a, V5, V7, 2, V4)
    _half(a, V4, V7, 0, V2)
    a.minus(V5, V4)
    a.copy(H3, V5)
    a.get(V2, f["at"])
    a.copy(V4, V3)
    a.left(V4, 1)
    a.right_plain(V4, 1)
    a.copy(V7, H2)
    a.go_if("lt", V7, V4, "ranked", far=True)
    a.go_if_zero("ge", V3, "in order")
    negate(a, V4, V7)
    a.label("in order")
    a.copy(V7, V2)
    a.label("search")
    a.go_if_zero("eq", V5, "searched")
    a.right_by(V3, V5, 1)
    a.left_from(V6, V3, 2)
    a.plus(V6, V7)
    a.word(V0, V6)
    a.go_if("lt", V0, V4, "upper half")
    a.copy(V5, V3)
    a.go("search")
    a.label("upper half")
    a.copy(V7, V6)
    a.step(V7, 4)
    a.minus(V5, V3)
    a.step(V5, -1)
    a.go("search")
    a.label("searched")
    a.copy(V6, V7)
    a.minus(V6, V2)
    a.right_plain(V6, 2)
    a.label("ranked")
    a.copy(V1, H1)
    a.store_byte(V6, V1)
    if wide:
        a.right_plain(V6, 8)
        a.store_byte(V6, V1, 1)
    a.step(V1, 2 if wide else 1)
    a.copy(H1, V1)
    a.copy(V3, H3)
    a.left(V3, 2)
    a.plus(V2, V3)
    a.put(V2, f["at"])
    a.copy(V0, H0)
    next_number(a)
    a.go("answer")
    return end(a)
