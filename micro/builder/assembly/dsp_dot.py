"""Dense and convolution layers for ARMv7E-M with SMLAD, which computes two products. The window of a position is
unpacked once to pairs of 16-bit numbers and used for all channels.

 `conv` takes two positions and two channels at a time, so that every word of weights is unpacked for two positions and
every pair of activations is used for two channels; `dense`, for a layer of one position, takes four channels.

If rows remain at the end, the last one is computed several times and written to the same place.
"""

from __future__ import annotations

from ..kernels.dot import Dot
from .dsp import REQUANT, WINDOW, enter, halved_loop, leave, rescaled, spread, start
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

SUMS = (R9, R10, R11, R12)

CONV = Frame(
    ("x", "y", "w", "q", "e", "K4", "g", "K", "lift", "N", "left", "cols", "xstep", "xrow", "ystep", "ygap", "wz")
    + tuple(n for n in WINDOW if n != "K4")
    + REQUANT,
    ("W", "KS", "rem", "Q", "QS", "YS", "t0", "t1", "y0", "y1", "filled", "row", "col"),
)
"""x: the first window; y: the first output; w, q: the weights, and the pairs of bias and multiplier; e: the spread
windows, g: a gathered one; K: bytes of a window; lift: what every bias lies
above itself; N: channels; left: positions; cols: in a row; xstep, xrow: from one
position to the next, across and down; ystep: of the output; ygap: behind a row of it; wz: the byte of a weight of
zero."""

DOUBLED = {"": 8, "twice": 12, "once": 12, "shifted": 12}
"""How sums are rescaled to the output's scale (dsp.rescaled; "" for SMMLAR) -> bytes of T per channel."""


def conv(gather: bool, up: bool, full: bool, how: str) -> ThumbDsp:
    """gather: a run of the window is not a whole number of words; up: sums are shifted before they are multiplied;
    full: outputs range over whole bytes; how: a key of DOUBLED."""
    a, f = ThumbDsp(), CONV
    enter(a, f, {"x": R0, "y": R0, "e": R0, **({"g": R0} if gather else {}), "w": R1, "q": R2})
    a.movs(R4, 0)
    a.str_(R4, SP, f["filled"])
    a.ldr(R4, SP, f["x"])
    a.str_(R4, SP, f["row"])
    a.ldr(R4, SP, f["cols"])
    a.str_(R4, SP, f["col"])

    a.label("position")
    a.ldr(R1, SP, f["e"])
    a.ldr(R7, SP, f["filled"])
    a.add_w(R1, R1, R7, 3)
    a.ldr(R0, SP, f["x"])
    spread(a, f, gather, 16)
    start(a, f)
    a.ldr(R7, SP, f["filled"])
    a.add_from_sp(R4, f["t0"])
    a.add_w(R4, R4, R7, 2)
    a.str_(R2, R4)
    a.ldr(R5, SP, f["y"])
    a.str_(R5, R4, f["y0"] - f["t0"])
    a.ldr(R6, SP, f["ystep"])
    a.add(R5, R6)
    a.str_(R5, SP, f["y"])
    a.ldr(R6, SP, f["left"])
    a.subs_imm(R6, 1)
    a.str_(R6, SP, f["left"])
    a.cmp_imm(R7, 1)
    a.b_if("eq", "both")
    a.cmp_imm(R6, 0)
    a.b_if("eq", "last")
    a.movs(R7, 1)
    a.str_(R7, SP, f["filled"])
    a.b_w("next")
    a.label("last")  # one position is left over: the second goes to the same place first
    a.str_(R2, SP, f["t1"])
    a.ldr(R5, SP, f["y0"])
    a.str_(R5, SP, f["y1"])

    a.label("both")
    _rows_of_two(a, f, up, full, how)
    a.movs(R7, 0)
    a.str_(R7, SP, f["filled"])
    a.ldr(R6, SP, f["left"])
    a.cmp_imm(R6, 0)
    a.b_if("eq", "done")

    a.label("next")
    a.ldr(R0, SP, f["x"])
    a.ldr(R1, SP, f["xstep"])
    a.add(R0, R1)
    a.ldr(R2, SP, f["col"])
    a.subs_imm(R2, 1)
    a.b_if("ne", "same row")
    a.ldr(R0, SP, f["row"])
    a.ldr(R1, SP, f["xrow"])
    a.add(R0, R1)
    a.str_(R0, SP, f["row"])
    a.ldr(R1, SP, f["y"])
    a.ldr(R2, SP, f["ygap"])
    a.add(R1, R2)
    a.str_(R1, SP, f["y"])
    a.ldr(R2, SP, f["cols"])
    a.label("same row")
    a.str_(R2, SP, f["col"])
    a.str_(R0, SP, f["x"])
    a.b_w("position")
    a.label("done")
    leave(a)
    return a


def _rows_of_two(a: ThumbDsp, f: Frame, up: bool, full: bool, how: str) -> None:
    """Compute all channels of the two positions in the buffer."""
    for name, source in (("rem", "N"), ("W", "w"), ("Q", "q"), ("KS", "K")):
        a.ldr(R7, SP, f[source])
        a.str_(R7, SP, f[name])
    a.movs(R6, DOUBLED[how])
    a.str_(R6, SP, f["QS"])
    a.movs(R6, 1)
    a.str_(R6, SP, f["YS"])

    a.label("channels")
    a.ldr(R7, SP, f["rem"])
    a.cmp_imm(R7, 1)
    a.b_if("ne", "two")
    a.movs(R7, 0)
    for name in ("KS", "QS", "YS"):
        a.str_(R7, SP, f[name])
    a.label("two")
    a.ldrd(R0, R1, SP, f.pair("W", "KS"))
    a.add(R1, R0)
    a.ldrd(R6, R7, SP, f.pair("Q", "QS"))
    a.ldr(R3, R6)
    a.ldr_reg(R4, R6, R7)
    a.ldrd(R5, R8, SP, f.pair("t0", "t1"))
    a.add_w(R9, R3, R5)
    a.add_w(R10, R4, R5)
    a.add_w(R11, R3, R8)
    a.add_w(R12, R4, R8)
    a.ldrd(R2, LR, SP, f.pair("e", "K4"))

    def four() -> None:
        a.ldm(R2, R3, R4, R5, R6, writeback=True)
        for weights, first, second in ((R0, R9, R11), (R1, R10, R12)):
            a.ldr_after(R7, weights, 4)
            a.uxtb16(R8, R7, 8)
            a.uxtb16(R7, R7)
            a.smlad(first, R3, R7, first)
            a.smlad(first, R4, R8, first)
            a.smlad(second, R5, R7, second)
            a.smlad(second, R6, R8, second)

    halved_loop(a, "products", LR, four)

    a.ldrd(R6, R7, SP, f.pair("Q", "QS"))
    if how:
        a.mov(R3, R6)
        a.add_w(R4, R6, R7)
        a.ldr(R5, SP, f["base"])
        rescaled(a, (R9, R11), R3, R5, how)
        rescaled(a, (R10, R12), R4, R5, how)
    else:
        _by_product(a, f, up)
    if not full:
        a.ldrd(R0, R1, SP, f.pair("c1", "c2"))
    for s in SUMS:
        _clamp(a, s, full)
    a.ldrd(R0, R1, SP, f.pair("y0", "y1"))
    a.ldr(R2, SP, f["YS"])
    a.strb_w(R11, R1)
    a.strb_index(R12, R1, R2)
    a.strb_w(R9, R0)
    a.strb_index(R10, R0, R2)
    a.adds_imm(R0, 2)
    a.adds_imm(R1, 2)
    a.strd(R0, R1, SP, f.pair("y0", "y1"))
    a.ldr(R0, SP, f["W"])
    a.ldr(R1, SP, f["K"])
    a.add_w(R0, R0, R1, 1)
    a.str_(R0, SP, f["W"])
    a.ldrd(R6, R7, SP, f.pair("rem", "Q"))
    a.adds_imm(R7, 2 * DOUBLED[how])
    a.subs_imm(R6, 2)
    a.strd(R6, R7, SP, f.pair("rem", "Q"))
    a.b_if_w("gt", "channels")


def _by_product(a: ThumbDsp, f: Frame, up: bool) -> None:
    """Multiply the sums of two channels by their multipliers. r6 points to the first channel's words; the second's come
    r7 bytes later."""
    a.ldr(R3, R6, 4)
    a.add(R7, R6)
    a.ldr(R4, R7, 4)
    a.ldrd(R0, R1, SP, f.pair("scale", "base"))
    a.lsl_reg(R3, R3, R0)
    a.lsl_reg(R4, R4, R0)
    if up:
        a.ldr(R2, SP, f["up"])
        for s in SUMS:
            a.lsl_reg(s, s, R2)
    for s, m in zip(SUMS, (R3, R4, R3, R4), strict=True):
        a.smmlar(s, s, m, R1)


def _clamp(a: ThumbDsp, s: int, full: bool) -> None:
    """Clamp with c1 and c2, which are in r0 and r1; full: to a byte."""
    a.usat(s, 8, s)
    if not full:
        a.uqadd8(s, s, R0)
        a.sub_w(s, s, R1)


DENSE = Frame(
    ("x", "y", "w", "q", "e", "K4", "g", "K", "lift", "N", "wz") + tuple(n for n in WINDOW if n != "K4") + REQUANT,
    ("K1", "K2", "K3", "Q1", "Q2", "Q3", "Y1", "Y2", "Y3", "t0", "rem"),
)
"""As CONV."""


def _last_group(a: ThumbDsp, f: Frame) -> None:
    """Where fewer than four channels are left, the others are the one before them again."""
    a.ldr(R7, SP, f["rem"])
    a.cmp_imm(R7, 4)
    a.b_if("ge", "four")
    for k in (1, 2, 3):
        a.cmp_imm(R7, k)
        a.b_if("gt", f"has {k}")
        for name in "KQY":
            if k == 1:
                a.movs(R6, 0)
            else:
                a.ldr(R6, SP, f[f"{name}{k - 1}"])
            a.str_(R6, SP, f[f"{name}{k}"])
        a.label(f"has {k}")
    a.label("four")


def _rescale_sum(a: ThumbDsp, s: int, up: bool, how: str) -> None:
    if how:
        rescaled(a, (s,), R6, R3, how)
    else:
        a.ldr(R6, R6, 4)
        a.lsl_reg(R6, R6, R2)
        if up:
            a.lsl_reg(s, s, LR)
        a.smmlar(s, s, R6, R3)


def _store(a: ThumbDsp, s: int, wide: bool, full: bool, adds: bool) -> None:
    """Clamp a number, and write it r7 bytes behind r5. Clobbers r6."""
    if adds:
        a.ldrh_index(R6, R5, R7)
        a.add_w(s, s, R6)
    if wide:
        a.usat(s, 16, s)
        a.strh_index(s, R5, R7)
    else:
        _clamp(a, s, full)
        a.strb_index(s, R5, R7)


def dense(gather: bool, up: bool, wide: bool, full: bool, how: str, adds: bool = False) -> ThumbDsp:
    """wide: the outputs are 16-bit numbers; full: they range over whole bytes; how: a key of DOUBLED; adds: to the
    numbers that are there, whose number is a multiple of four."""
    a, f = ThumbDsp(), DENSE
    size, each = 2 if wide else 1, DOUBLED[how]
    enter(a, f, {"x": R0, "y": R0, "e": R0, **({"g": R0} if gather else {}), "w": R1, "q": R2})
    a.ldr(R0, SP, f["x"])
    a.ldr(R1, SP, f["e"])
    spread(a, f, gather, 8)
    start(a, f)
    a.str_(R2, SP, f["t0"])
    a.ldr(R7, SP, f["N"])
    a.str_(R7, SP, f["rem"])
    a.ldr(R4, SP, f["K"])
    a.movs(R5, 0)
    for k in (1, 2, 3):
        a.adds(R5, R5, R4)
        a.str_(R5, SP, f[f"K{k}"])
        a.movs(R6, each * k)
        a.str_(R6, SP, f[f"Q{k}"])
        a.movs(R6, size * k)
        a.str_(R6, SP, f[f"Y{k}"])

    a.label("channels")
    _last_group(a, f)
    a.ldr(R0, SP, f["w"])
    for k, w in ((1, R1), (2, R2), (3, R3)):
        a.ldr(w, SP, f[f"K{k}"])
        a.add(w, R0)
    a.ldr(R4, SP, f["q"])
    a.ldr(R5, SP, f["t0"])
    for k, s in enumerate(SUMS):
        if k:
            a.ldr(R6, SP, f[f"Q{k}"])
            a.ldr_reg(R6, R4, R6)
        else:
            a.ldr(R6, R4)
        a.add_w(s, R6, R5)
    a.ldrd(R4, LR, SP, f.pair("e", "K4"))

    def four() -> None:
        a.ldrd_after(R5, R6, R4, 8)
        for w, s in zip((R0, R1, R2, R3), SUMS, strict=True):
            a.ldr_after(R7, w, 4)
            a.uxtb16(R8, R7, 8)
            a.uxtb16(R7, R7)
            a.smlad(s, R5, R7, s)
            a.smlad(s, R6, R8, s)

    halved_loop(a, "products", LR, four)

    a.ldrd(R2, R3, SP, f.pair("scale", "base"))
    a.ldr(R4, SP, f["q"])
    a.ldr(R5, SP, f["y"])
    a.ldrd(R0, R1, SP, f.pair("c1", "c2"))
    if up:
        a.ldr_w(LR, SP, f["up"])
    for k, s in enumerate(SUMS):
        a.mov(R6, R4)
        if k:
            a.ldr(R7, SP, f[f"Q{k}"])
            a.add(R6, R7)
        _rescale_sum(a, s, up, how)
        if k:
            a.ldr(R7, SP, f[f"Y{k}"])
        else:
            a.movs(R7, 0)
        _store(a, s, wide, full, adds)
    a.adds_imm(R5, 4 * size)
    a.str_(R5, SP, f["y"])
    a.adds_imm(R4, 4 * each)
    a.str_(R4, SP, f["q"])
    a.ldr(R0, SP, f["w"])
    a.ldr(R1, SP, f["K"])
    a.add_w(R0, R0, R1, 2)
    a.str_(R0, SP, f["w"])
    a.ldr(R7, SP, f["rem"])
    a.subs_imm(R7, 4)
    a.str_(R7, SP, f["rem"])
    a.b_if_w("gt", "channels")
    leave(a)
    return a


LONG = 1024
"""Bytes of a window from which on three or four channels are computed one by one, without a copy of three times the
window: four then take a third more instructions, two take fewer."""


def one_by_one(layer: Dot) -> bool:
    """Whether `one` computes each channel of a layer: it has one position and, in each group, few channels of whole
    words."""
    size, channels = layer.weights[0].size, len(layer.weights) // layer.groups
    whole = layer.window.kernel == (1, 1) and size % 4 == 0
    return whole and layer.positions == 1 and (channels < 3 or (channels <= 4 and size >= LONG))


def one(up: bool, full: bool, how: str) -> ThumbDsp:
    """As `dense`, for one channel and a contiguous window of whole words, which is used once and thus not written as
    pairs first."""
    a, f = ThumbDsp(), DENSE
    enter(a, f, {"x": R0, "y": R0, "w": R1, "q": R2})
    a.ldr(R0, SP, f["x"])
    a.ldr(R1, SP, f["w"])
    a.movs(R2, 0)
    a.mov_w(R8, 0)
    a.mov_w(R9, 0)
    a.ldr(R3, SP, f["K4"])

    def four() -> None:
        a.ldr_after(R4, R0, 4)
        a.ldr_after(R5, R1, 4)
        a.usada8(R2, R4, R8, R2)
        for ror in (0, 8):
            a.uxtb16(R6, R4, ror)
            a.uxtb16(R7, R5, ror)
            a.smlad(R9, R6, R7, R9)

    halved_loop(a, "products", R3, four)
    start(a, f)
    a.ldr(R6, SP, f["q"])
    a.ldr(R7, R6)
    a.add_w(R9, R9, R2)
    a.add_w(R9, R9, R7)
    a.ldrd(R2, R3, SP, f.pair("scale", "base"))
    a.ldrd(R0, R1, SP, f.pair("c1", "c2"))
    if up:
        a.ldr_w(LR, SP, f["up"])
    _rescale_sum(a, R9, up, how)
    _clamp(a, R9, full)
    a.ldr(R5, SP, f["y"])
    a.strb_w(R9, R5)
    leave(a)
    return a
