"""Depthwise convolution for ARMv7E-M, two neighboring positions at a time: each column of activations is unpacked once
for both, and each weight is loaded once. Otherwise as dsp_depthwise. If a row's number of positions is odd, its last
pair overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.depthwise import Depthwise
from ..quantization.doubled import DoubledRequant
from .dsp import REQUANT, clamp_four, enter, shifted
from .dsp_depthwise import NUMBERS, load_column, load_numbers, load_weights, next_group
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

FIRST, SECOND = (R3, R4, R5, R6), (R9, R10, R11, R12)
"""The sums of four channels at each position."""

MOST_TAPS = 25
"""Larger windows would make the kernel long, and gain little."""


def in_pairs(layer: Depthwise, columns: int, dsp: bool) -> bool:
    """Whether a kernel computes two neighboring positions at a time: their windows must share columns, and steps be
    those of the output. dsp: by the kernel for ARMv7E-M."""
    window, requant = layer.window, layer.requant
    if dsp and isinstance(requant, DoubledRequant) and not requant.shifted:
        return False
    small = window.kernel[0] * window.kernel[1] <= MOST_TAPS
    enough = columns > 3 or columns == 2  # of three, one would be computed twice
    return small and enough and window.strides[1] == window.dilations[1] == 1


def frame(taps: int, how: str = "") -> Frame:
    """As dsp_depthwise.frame, with other moves. dy: from the last step within a row of the window to the next row;
    back: from the last step within a window to the next pair's; last: from a row's first position to its last pair;
    xrow, yrow: from one row of positions to the next. From one position to the next it is dx, in the output too.
    """
    return Frame(
        ("x", "y", "w", "q", "lift", "C", "dx", "dy", "rows", "last", "back", "xrow", "yrow", "wz") + REQUANT,
        ("at", "row", "from", "ahead", "end", "line", "to", "b0", "b1", "b2", "b3")
        + tuple(name for names in NUMBERS[how] for name in names),
        8 * taps,
    )


def depthwise(kh: int, kw: int, channels: int, up: bool, full: bool, how: str) -> ThumbDsp:
    """As dsp_depthwise.depthwise. full: outputs range over whole bytes; how: "" or "shifted"."""
    a, taps = ThumbDsp(), kh * kw
    f = frame(taps, how)
    enter(a, f, {"x": R0, "y": R0, "w": R1, "q": R2})
    if not full:
        clamp_four(a, f)
    a.ldr(R4, SP, f["back"])
    a.str_(R4, SP, f["ahead"])
    a.movs(R4, 0)
    a.str_(R4, SP, f["at"])

    a.label("group")
    load_weights(a, f, taps, channels)
    load_numbers(a, f, channels, how)
    a.ldr(R4, SP, f["x"])
    a.add(R0, R4)
    a.ldr(R4, SP, f["y"])
    a.ldr(R5, SP, f["at"])
    a.add(R4, R5)
    a.str_(R4, SP, f["line"])
    a.ldr(R4, SP, f["rows"])
    a.str_(R4, SP, f["row"])
    a.ldr(R2, SP, f["dx"])

    a.label("row")
    a.str_(R0, SP, f["from"])
    a.ldr(R4, SP, f["last"])
    a.add(R4, R0)
    a.str_(R4, SP, f["end"])
    a.ldr(R4, SP, f["line"])
    a.str_(R4, SP, f["to"])
    a.label("pair")
    a.add_from_sp(R7, f["b0"])
    for sums in (FIRST, SECOND):
        if channels > 1:
            a.ldm(R7, *sums[:channels])
        else:
            a.ldr_w(sums[0], R7)
    _products(a, f, kh, kw, channels)
    (_shifted if how else _by_product)(a, f, channels, up)
    _store(a, f, channels, full)
    a.ldrd(R7, R8, SP, f.pair("ahead", "end"))
    a.add(R0, R7)
    a.cmp(R0, R8)
    a.b_if_w("ls", "pair")
    a.sub_w(R7, R0, R8)
    a.cmp(R7, R2)
    a.b_if("ne", "row done")
    a.mov(R0, R8)
    a.ldr(R4, SP, f["to"])
    a.subs(R4, R4, R2)
    a.str_(R4, SP, f["to"])
    a.b_w("pair")
    a.label("row done")
    a.ldr(R0, SP, f["from"])
    for name, place in (("xrow", R0), ("yrow", R4)):
        if place == R4:
            a.ldr(R4, SP, f["line"])
        a.ldr(R5, SP, f[name])
        a.add(place, R5)
    a.str_(R4, SP, f["line"])
    a.ldr(R4, SP, f["row"])
    a.subs_imm(R4, 1)
    a.str_(R4, SP, f["row"])
    a.b_if_w("ne", "row")

    next_group(a, f)
    return a


def _products(a: ThumbDsp, f: Frame, kh: int, kw: int, channels: int) -> None:
    """Add both windows' products to the sums; x in r0, which moves with the window's columns; dx in r2. A column's
    weights serve the first position, and with the next column the second."""
    for i in range(kh):
        if i:
            a.ldr(R7, SP, f["dy"])
            a.add(R0, R7)
        for j in range(kw + 1):
            load_column(a, R7, R0, R0, j)
            a.uxtb16(R8, R7, 8)
            a.uxtb16(R7, R7)
            if j:
                _multiply(a, SECOND[:channels])
            if j < kw:
                a.ldrd(R1, LR, SP, f.block + 8 * (i * kw + j))
                _multiply(a, FIRST[:channels])


def _multiply(a: ThumbDsp, sums: Sequence[int]) -> None:
    """Add the products of activations (r7, r8) with weights (r1, lr)."""
    for k, s in enumerate(sums):
        x, w = ((R7, R1), (R8, LR))[k % 2]
        (a.smlatt if k > 1 else a.smlabb)(s, x, w, s)


def _by_product(a: ThumbDsp, f: Frame, channels: int, up: bool) -> None:
    """Multiply the sums by their channels' multipliers, add `base`, and saturate them to bytes."""
    if up:
        a.ldr(R1, SP, f["up"])
        for s in (*FIRST[:channels], *SECOND[:channels]):
            a.lsl_reg(s, s, R1)
    a.ldr(R1, SP, f["base"])
    for k in range(0, channels, 2):
        a.ldrd(R7, R8, SP, f.pair(f"m{k}", f"m{k + 1}"))
        for n, m in zip(range(k, channels), (R7, R8), strict=False):
            for s in (FIRST[n], SECOND[n]):
                a.smmlar(s, s, m, R1)
                a.usat(s, 8, s)


def _shifted(a: ThumbDsp, f: Frame, channels: int, _: bool) -> None:
    """As dsp.shifted, saturated to bytes."""
    a.ldr(R1, SP, f["base"])
    for k in range(channels):
        both = FIRST[k], SECOND[k]
        a.ldrd(R7, R8, SP, f.pair(f"m{k}", f"right{k}"))
        shifted(a, both, R1)
        for s in both:
            a.usat(s, 8, s)


def _store(a: ThumbDsp, f: Frame, channels: int, full: bool) -> None:
    """Clamp the bytes and write them; `to` moves on by two positions."""
    for sums in (FIRST, SECOND):
        for k in range(1, channels):
            a.orr_w(sums[0], sums[0], sums[k], 8 * k)
    if not full:
        a.ldrd(R1, LR, SP, f.pair("c1", "c2"))
        for sums in (FIRST, SECOND):
            a.uqadd8(sums[0], sums[0], R1)
            a.usub8(sums[0], sums[0], LR)
    a.ldr(R7, SP, f["to"])
    if channels == 4:
        a.str_w(FIRST[0], R7)
        a.str_index(SECOND[0], R7, R2)
    else:
        for at, sums in ((0, FIRST), (channels, SECOND)):
            if channels > 1:
                a.strh_w(sums[0], R7, at)
                a.lsr_w(sums[0], sums[0], 16)
            if channels % 2:
                a.strb_w(sums[0], R7, at + channels - 1)
    a.add_w(R7, R7, R2, 1)
    a.str_(R7, SP, f["to"])
