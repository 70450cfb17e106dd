"""Depthwise convolution on the scalar machine, two neighboring positions at a time: each activation is loaded once for
both, and so is each weight. Otherwise as scalar_depthwise. If a row's number of positions is odd, its last pair
overlaps the one before.
"""

from __future__ import annotations

from . import scalar_doubled
from .frame import Frame
from .scalar import H0, H1, H2, H3, V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from .scalar_depthwise import load_channel, next_row
from .scalar_dot import REQUANT, clamp, requantize

MOST_TAPS = 25
"""As dsp_depthwise_pairs.MOST_TAPS."""


def columns_stepped(columns: int) -> int:
    """The columns by which the kernel's pointer advances within a row of the window: by three whenever the next one is
    four ahead."""
    return max(0, (columns - 2) // 3 * 3)


def frame(taps: int) -> Frame:
    """As scalar_depthwise.frame; dy: as dsp_depthwise_pairs.frame. From one position to the next it is as far as from
    one column to the next, in the output too."""
    return Frame(
        ("x", "y", "w", "q", "lift", "C", "dx", "dy", "rows", "cols", "xrow", "ygap", "wz") + REQUANT,
        ("row", "col", "b", "m", "m2"),
        4 * taps,
    )


def depthwise(a: Scalar, kh: int, kw: int, apart: str, full: bool, how: str) -> Scalar:
    """As scalar_depthwise.depthwise."""
    taps = kh * kw
    f = frame(taps)
    a.enter(f, {"x": "A", "y": "A", "w": "W", "q": "T"})
    a.label("channel")
    load_channel(a, f, taps, bool(how))
    for high, name in ((H0, "x"), (H1, "y"), (H2, "dy"), (H3, "offset")):
        a.get(V0, f[name])
        a.copy(high, V0)
    _distances(a, f)
    a.get(V3, f["rows"])
    a.label("row")
    a.put(V3, f["row"])
    a.get(V3, f["cols"])
    a.step(V3, -1)
    a.label("pair")
    a.put(V3, f["col"])
    _products(a, f, kh, kw)
    if how:
        both = (lambda d: a.get(d, f["m"])), (lambda d: a.get(d, f["m2"]))
        for s in (V6, V7):
            scalar_doubled.rescaled(a, f, s, *both, (V0, V3, V4, V5), str(s), how)
    else:
        a.get(V0, f["rest"])
        a.get(V5, f["m"])
        for s in (V6, V7):
            requantize(a, f, s, V5, apart, (V3, V4), (H3, V0))
    for s in (V6, V7):
        clamp(a, f, s, V3, str(s), full)
    if apart == "split" or how:
        _distances(a, f)
    a.copy(V3, H1)
    a.store_byte(V6, V3)
    a.store_byte_at(V7, V3, V1)
    for high in (H0, H1):
        a.plus(high, V2)
    a.get(V3, f["col"])
    a.step(V3, -2)
    a.go_if_positive_now(V3, "pair", far=True)
    a.go_if_zero("lt", V3, "row done")
    a.number(V5, 0)
    a.minus(V5, V1)
    for high in (H0, H1):  # one position is left: go back by one
        a.plus(high, V5)
    a.number(V3, 1)
    a.go("pair")
    a.label("row done")
    next_row(a, f)
    a.leave(f)
    return a


def _distances(a: Scalar, f: Frame) -> None:
    """V1, V2, V4: one, two and three columns."""
    a.get(V1, f["dx"])
    a.copy(V2, V1)
    a.plus(V2, V1)
    a.copy(V4, V2)
    a.plus(V4, V1)


def _products(a: Scalar, f: Frame, kh: int, kw: int) -> None:
    """V6, V7: the sums of the windows at H0 and one step further. A column's weight, in V5, serves the first position,
    and with the next column, in V3, the second. Clobbers V0."""
    a.copy(V0, H0)
    a.get(V6, f["b"])
    a.copy(V7, V6)
    for i in range(kh):
        if i:
            a.plus(V0, H2)
        for j in range(kw + 1):
            ahead = j - columns_stepped(j)
            if ahead == 4:
                a.plus(V0, V4)
                ahead = 1
            if ahead:
                a.byte_at(V3, V0, (V1, V2, V4)[ahead - 1])
            else:
                a.byte(V3, V0)
            if j:
                a.times(V5, V3)
                a.plus(V7, V5)
            if j < kw:
                a.get(V5, f.block + 4 * (i * kw + j))
                a.times(V3, V5)
                a.plus(V6, V3)
