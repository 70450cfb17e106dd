"""Depthwise convolution on the scalar machine: channel by channel, its weights on the stack."""

from __future__ import annotations

from . import scalar_doubled
from .dsp_depthwise import columns_stepped
from .frame import Frame
from .scalar import H0, H1, H2, V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from .scalar_dot import REQUANT, clamp, requantize

MOST_TAPS = 100


def frame(taps: int) -> Frame:
    """As dsp_depthwise.frame; C: channels. The weights come last, one word each."""
    return Frame(
        ("x", "y", "w", "q", "lift", "C", "dx", "dy", "rows", "cols", "xstep", "xrow", "ystep", "ygap", "wz") + REQUANT,
        ("row", "col", "b", "m", "m2"),
        4 * taps,
    )


def depthwise(a: Scalar, kh: int, kw: int, apart: str, full: bool, how: str) -> Scalar:
    """A window of kh rows and kw columns. apart, full, how: as in scalar_dot.conv."""
    taps = kh * kw
    f = frame(taps)
    a.enter(f, {"x": "A", "y": "A", "w": "W", "q": "T"})
    a.label("channel")
    load_channel(a, f, taps, bool(how))
    for high, name in ((H0, "x"), (H1, "y"), (H2, "dy")):
        a.get(V0, f[name])
        a.copy(high, V0)
    a.get(V1, f["dx"])
    a.copy(V2, V1)
    a.plus(V2, V1)
    a.get(V6, f["offset"])
    a.get(V7, f["rest"])
    a.get(V3, f["rows"])
    a.label("row")
    a.put(V3, f["row"])
    a.get(V3, f["cols"])
    a.label("position")
    a.put(V3, f["col"])
    _position(a, f, kh, kw, apart, full, how)
    a.get(V3, f["col"])
    a.step(V3, -1)
    a.go_if_not_zero_now(V3, "position", far=True)
    next_row(a, f)
    a.leave(f)
    return a


def load_channel(a: Scalar, f: Frame, taps: int, doubled: bool) -> None:
    """Copy the next channel's weights, less their zero, bias and multiplier to the stack. Clobbers V0 to V2."""
    a.get(V0, f["w"])
    a.get(V2, f["wz"])
    done = 0
    for k in range(taps):
        if k - done == 32:
            a.step(V0, 32)
            done = k
        a.byte(V1, V0, k - done)
        a.minus(V1, V2)
        a.put(V1, f.block + 4 * k)
    a.step(V0, taps - done)
    a.put(V0, f["w"])
    a.get(V0, f["q"])
    a.word(V1, V0)
    a.get(V2, f["lift"])
    a.minus(V1, V2)
    a.put(V1, f["b"])
    a.word(V1, V0, 4)
    a.put(V1, f["m"])
    if doubled:
        a.word(V1, V0, 8)
        a.put(V1, f["m2"])
    a.step(V0, 12 if doubled else 8)
    a.put(V0, f["q"])


def next_row(a: Scalar, f: Frame) -> None:
    """Go on to the label "row" with the next row, its counter in V3, or to "channel" with the next channel."""
    for high, name in ((H0, "xrow"), (H1, "ygap")):
        a.get(V3, f[name])
        a.plus(high, V3)
    a.get(V3, f["row"])
    a.step(V3, -1)
    a.go_if_not_zero_now(V3, "row", far=True)
    for name, by in (("x", 1), ("y", 1), ("C", -1)):
        a.get(V0, f[name])
        a.step(V0, by)
        a.put(V0, f[name])
    a.go_if_zero("ne", V0, "channel", far=True)


def _position(a: Scalar, f: Frame, kh: int, kw: int, apart: str, full: bool, how: str) -> None:
    """One output: x at H0, y at H1, dy in H2, dx in V1 and twice in V2, the constants in V6
    and V7; moves x and y on."""
    a.copy(V0, H0)
    a.get(V5, f["b"])
    for i in range(kh):
        if i:
            a.plus(V0, H2)
        for j in range(kw):
            ahead = j - columns_stepped(j)
            if ahead == 3:
                a.plus(V0, V2)
                ahead = 1
            if ahead:
                a.byte_at(V3, V0, (V1, V2)[ahead - 1])
            else:
                a.byte(V3, V0)
            a.get(V4, f.block + 4 * (i * kw + j))
            a.times(V4, V3)
            a.plus(V5, V4)
    if how:
        both = (lambda d: a.get(d, f["m"])), (lambda d: a.get(d, f["m2"]))
        scalar_doubled.rescaled(a, f, V5, *both, (V3, V4, V0, V6), "0", how)
    else:
        a.get(V4, f["m"])
        requantize(a, f, V5, V4, apart, (V0, V3), (V6, V7))
    clamp(a, f, V5, V0, "0", full)
    a.copy(V3, H1)
    a.store_byte(V5, V3)
    for high, name in ((H0, "xstep"), (H1, "ystep")):
        a.get(V3, f[name])
        a.plus(high, V3)
