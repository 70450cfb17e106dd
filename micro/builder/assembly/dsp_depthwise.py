"""Depthwise convolution for ARMv7E-M: four channels at a time.

A group's weights are copied to the stack once, signed and in the order in which UXTB16 unpacks a word of activations:
channels 0 and 2 in one word, 1 and 3 in the next. SMLABB and SMLATT then multiply matching halves. If the number of
channels is not a multiple of four, the last group overlaps the one before. Fewer than four are computed as four, of
which the others, from the bytes that follow, are not written.
"""

from __future__ import annotations

from .dsp import REQUANT, clamp_four, enter, leave, multiplier, shifted, shifted_multiplier
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

SUMS = (R3, R4, R5, R6)
"""The sums of channels 0, 1, 2 and 3 of a group."""

MOST_TAPS = 100
"""Larger windows would need more stack than a small board can spare."""


NUMBERS = {
    "": (("m0",), ("m1",), ("m2",), ("m3",)),
    "twice": tuple((f"m{k}", f"left{k}", f"right{k}", f"half{k}") for k in range(4)),
    "shifted": tuple((f"m{k}", f"right{k}") for k in range(4)),
}
"""How sums are rescaled, as in dsp_dot.DOUBLED -> each channel's multiplier and shifts."""


def frame(taps: int, how: str = "") -> Frame:
    """x, y: the first window and output, of channel 0; w, q: as in dsp_dot.CONV; C, N: channels of a pixel, of the
    output; dx: bytes from one column of the window to the next; dy: from one row to the next, less the steps taken
    within the row; rows, cols: positions; xstep: from one position to the next; xrow: what is added after a row; ygap:
    the same in the output; wz: the byte that stands for a weight of zero. Last come the biases and multipliers of four
    channels, and the weights.
    """
    return Frame(
        ("x", "y", "w", "q", "lift", "C", "dx", "dy", "rows", "cols", "xstep", "xrow", "ystep", "ygap", "wz") + REQUANT,
        ("at", "row", "b0", "b1", "b2", "b3") + tuple(name for names in NUMBERS[how] for name in names),
        8 * taps,
    )


def columns_stepped(columns: int) -> int:
    """The columns by which the kernel's pointer advances within a row of the window: by two whenever the next one is
    three ahead."""
    return max(0, (columns - 2) // 2 * 2)


def depthwise(kh: int, kw: int, channels: int, up: bool, how: str) -> ThumbDsp:
    """A window of kh rows and kw columns. channels: 4 or, if there are fewer, their number; how: a key of NUMBERS."""
    a, taps = ThumbDsp(), kh * kw
    f = frame(taps, how)
    weights = f.block
    enter(a, f, {"x": R0, "y": R0, "w": R1, "q": R2})
    clamp_four(a, f)
    a.movs(R4, 0)
    a.str_(R4, SP, f["at"])

    a.label("group")
    load_weights(a, f, taps, channels)
    load_numbers(a, f, channels, how)

    a.ldr(R4, SP, f["x"])
    a.add_w(R0, R4, R0)
    a.ldr(R4, SP, f["y"])
    a.ldr(R5, SP, f["at"])
    a.add_w(LR, R4, R5)
    a.ldr(R2, SP, f["dx"])
    a.ldr_w(R11, SP, f["dy"])
    a.ldr(R4, SP, f["rows"])
    a.str_(R4, SP, f["row"])
    a.add_from_sp(R4, f["b0"])
    a.mov(R12, R4)

    a.label("row")
    a.ldr(R1, SP, f["cols"])
    a.label("position")
    a.push(R1)
    _position(a, f, kh, kw, channels, up, how, weights, 4)
    a.pop(R1)
    a.subs_imm(R1, 1)
    a.b_if_w("ne", "position")
    a.ldr(R4, SP, f["xrow"])
    a.add(R0, R4)
    a.ldr(R4, SP, f["ygap"])
    a.add(LR, R4)
    a.ldr(R4, SP, f["row"])
    a.subs_imm(R4, 1)
    a.str_(R4, SP, f["row"])
    a.b_if_w("ne", "row")

    next_group(a, f)
    return a


def load_weights(a: ThumbDsp, f: Frame, taps: int, channels: int) -> None:
    """Copy the weights of some channels to the stack, from bytes in rows of `taps` to signed halves. The first channel
    is in r0 and stays there. Clobbers r1 to r7 and r12."""
    a.ldr(R0, SP, f["at"])
    a.movs(R1, taps)
    a.muls(R1, R0)
    a.ldr(R2, SP, f["w"])
    a.add(R2, R1)
    a.ldr(R1, SP, f["wz"])
    a.orr_w(R1, R1, R1, 16)
    a.add_from_sp(R3, f.block)
    a.mov_w(R12, taps)
    registers = (R4, R5, R6, R7)
    for r in registers[channels:]:
        a.movs(r, 0)
    a.label("weights")
    for k, r in enumerate(registers[1:channels]):
        a.ldrb_w(r, R2, taps * (k + 1))
    a.ldrb_after(R4, R2, 1)
    for even, odd in ((R4, R6), (R5, R7)):
        a.orr_w(even, even, odd, 16)
        a.ssub16(even, even, R1)
    a.strd_after(R4, R5, R3, 8)
    a.subs_w(R12, R12, 1)
    a.b_if("ne", "weights")


def next_group(a: ThumbDsp, f: Frame) -> None:
    """Go on to the label "group" with the next four channels, or return to the driver."""
    a.ldr(R0, SP, f["at"])
    a.adds_imm(R0, 4)
    a.ldr(R1, SP, f["C"])
    a.cmp(R0, R1)
    a.b_if("cs", "done")
    a.subs_imm(R1, 4)
    a.cmp(R0, R1)
    a.b_if("ls", "whole")
    a.mov(R0, R1)
    a.label("whole")
    a.str_(R0, SP, f["at"])
    a.b_w("group")
    a.label("done")
    leave(a)


def load_numbers(a: ThumbDsp, f: Frame, channels: int, how: str) -> None:
    """Copy the biases and multipliers of some channels, the first of which is in r0, to the stack."""
    a.ldr(R1, SP, f["q"])
    a.add_w(R1, R1, R0, 3)
    if how:
        a.add_w(R1, R1, R0, 2)
    a.ldr(R3, SP, f["lift"])
    if not how:
        a.ldr(R2, SP, f["scale"])
    for k in range(channels):
        a.ldr(R4, R1)
        a.subs(R4, R4, R3)
        a.str_(R4, SP, f[f"b{k}"])
        if not how:
            a.ldr(R5, R1, 4)
            a.lsls_reg(R5, R2)
            a.str_(R5, SP, f[f"m{k}"])
            a.adds_imm(R1, 8)
            continue
        if how == "shifted":
            shifted_multiplier(a, R1)
            a.strd(R7, R8, SP, f.pair(f"m{k}", f"right{k}"))
            a.adds_imm(R1, 12)
            continue
        multiplier(a, R1)
        a.addw(R2, R2, 1)
        a.movs(R5, 1)
        a.lsl_reg(R5, R5, R8)
        a.lsrs(R5, R5, 1)
        a.strd(R7, R2, SP, f.pair(f"m{k}", f"left{k}"))
        a.strd(R8, R5, SP, f.pair(f"right{k}", f"half{k}"))
        a.adds_imm(R1, 12)


def load_column(a: ThumbDsp, d: int, base: int, moving: int, column: int) -> int:
    """Load the word of a column of the window, dx in r2. base: the register with the address of the row's columns so
    far; moving: the one for the next address, of which the function returns which it is."""
    ahead = column - columns_stepped(column)
    if ahead == 3:
        a.add_w(moving, base, R2, 1)
        base, ahead = moving, 1
    if ahead:
        a.ldr_index(d, base, R2, ahead - 1)
    else:
        a.ldr_w(d, base)
    return base


def _products(a: ThumbDsp, kh: int, kw: int, weights: int) -> None:
    """Add the window's products to the SUMS. weights: where these are on the stack."""
    base = R0
    for i in range(kh):
        if i:
            a.add_w(R1, base, R11)
            base = R1
        for j in range(kw):
            base = load_column(a, R7, base, R1, j)
            a.ldrd(R9, R10, SP, weights + 8 * (i * kw + j))
            a.uxtb16(R8, R7, 8)
            a.uxtb16(R7, R7)
            a.smlabb(R3, R7, R9, R3)
            a.smlatt(R5, R7, R9, R5)
            a.smlabb(R4, R8, R10, R4)
            a.smlatt(R6, R8, R10, R6)


def _position(
    a: ThumbDsp, f: Frame, kh: int, kw: int, channels: int, up: bool, how: str, weights: int, pushed: int
) -> None:
    """Four outputs: x at r0, dx in r2, dy in r11, y in lr, the biases at r12. Moves r0 and lr on."""
    a.ldm(R12, *SUMS)
    _products(a, kh, kw, weights + pushed)
    if up:
        a.ldr(R1, SP, f["up"] + pushed)
        for s in SUMS:
            a.lsl_reg(s, s, R1)
    a.ldr(R1, SP, f["base"] + pushed)
    if how == "shifted":
        for k, s in enumerate(SUMS):
            a.ldrd(R7, R8, SP, f.pair(f"m{k}", f"right{k}") + pushed)
            shifted(a, (s,), R1)
            a.usat(s, 8, s)
    elif how:
        for k, s in enumerate(SUMS):
            _doubled(a, f, k, s, pushed)
    else:
        a.ldrd(R7, R8, SP, f.pair("m0", "m1") + pushed)
        a.ldrd(R9, R10, SP, f.pair("m2", "m3") + pushed)
        for s, m in zip(SUMS, (R7, R8, R9, R10), strict=True):
            a.smmlar(s, s, m, R1)
            a.usat(s, 8, s)
    a.orr_w(R3, R3, R4, 8)
    a.orr_w(R3, R3, R5, 16)
    a.orr_w(R3, R3, R6, 24)
    a.ldrd(R7, R8, SP, f.pair("c1", "c2") + pushed)
    a.uqadd8(R3, R3, R7)
    a.usub8(R3, R3, R8)
    a.ldr(R4, SP, f["ystep"] + pushed)
    if channels == 4:
        a.str_w(R3, LR)
    for k in range(channels % 4):
        a.strb_w(R3, LR, k)
        a.lsrs(R3, R3, 8)
    a.add(LR, R4)
    a.ldr(R4, SP, f["xstep"] + pushed)
    a.add(R0, R4)


def _doubled(a: ThumbDsp, f: Frame, k: int, s: int, pushed: int) -> None:
    """dsp.doubled for channel k of the group, saturated to a byte. Clobbers r7 to r10; base in r1."""
    a.ldrd(R7, R8, SP, f.pair(f"m{k}", f"left{k}") + pushed)
    a.lsl_reg(s, s, R8)
    a.smmulr(s, s, R7)
    a.ldrd(R7, R8, SP, f.pair(f"right{k}", f"half{k}") + pushed)
    a.usat(R9, 1, R8)
    a.asr_w(R10, s, 31)
    a.and_w(R9, R9, R10)
    a.sub_w(R8, R8, R9)
    a.add_w(s, s, R8)
    a.asr_reg(s, s, R7)
    a.add_w(s, s, R1)
    a.usat(s, 8, s)
