"""Depthwise convolution on the scalar machine at a single position, as in streams: no weight is used twice, so that
none is copied to the stack first, as scalar_depthwise does."""

from __future__ import annotations

from . import scalar_doubled
from .frame import Frame
from .scalar import V0, V1, V2, V3, V4, V5, V6, V7, Scalar
from .scalar_dot import REQUANT, clamp, requantize

FRAME = Frame(("x", "y", "w", "q", "lift", "C", "step", "wz") + REQUANT)
"""As dsp_depthwise_one.FRAME; C: channels."""

REACH = 32
"""Weights that a load reaches from its pointer."""


def depthwise(a: Scalar, taps: int, apart: str, full: bool, how: str) -> Scalar:
    """As scalar_depthwise.depthwise."""
    f = FRAME
    a.enter(f, {"x": "A", "y": "A", "w": "W", "q": "T"})
    a.label("channel")
    _sum(a, f, taps)

    def multiplier(at: int, d: int) -> None:
        a.get(d, f["q"])
        a.word(d, d, at)

    if how:
        both = (lambda d: multiplier(4, d)), (lambda d: multiplier(8, d))
        scalar_doubled.rescaled(a, f, V5, *both, (V3, V4, V0, V6), "0", how)
    else:
        a.get(V6, f["offset"])
        a.get(V7, f["rest"])
        multiplier(4, V4)
        requantize(a, f, V5, V4, apart, (V0, V3), (V6, V7))
    clamp(a, f, V5, V0, "0", full)
    a.get(V3, f["y"])
    a.store_byte(V5, V3)
    a.step(V3, 1)
    a.put(V3, f["y"])
    for name, by in (("q", 12 if how else 8), ("x", 1), ("C", -1)):
        a.get(V0, f[name])
        a.step(V0, by)
        a.put(V0, f[name])
    a.go_if_zero("ne", V0, "channel", far=True)
    a.leave(f)
    return a


def _sum(a: Scalar, f: Frame, taps: int) -> None:
    """V5: the next channel's bias and products. w moves on to the channel after it."""
    a.get(V3, f["q"])
    a.word(V5, V3)
    a.get(V4, f["lift"])
    a.minus(V5, V4)
    a.get(V0, f["x"])
    a.get(V1, f["step"])
    a.copy(V7, V1)
    a.plus(V7, V1)
    a.get(V2, f["w"])
    a.get(V6, f["wz"])
    for k in range(taps):
        if k and k % REACH == 0:
            a.step(V2, REACH)
        if k % 2:
            a.byte_at(V3, V0, V1)
            a.plus(V0, V7)
        else:
            a.byte(V3, V0)
        a.byte(V4, V2, k % REACH)
        a.minus(V4, V6)
        a.times(V4, V3)
        a.plus(V5, V4)
    a.step(V2, (taps - 1) % REACH + 1)
    a.put(V2, f["w"])
