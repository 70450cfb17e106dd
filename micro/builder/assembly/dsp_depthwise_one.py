"""Depthwise convolution for ARMv7E-M at a single position, as in streams: no weight is used twice, so that none is
copied to the stack first, as dsp_depthwise does.

Four channels at a time, and four weights of each. Four words of activations, each of four channels, are transposed by
halves, and unpacked bytes of two weights then meet those of one channel in SMLAD. The weights left over are multiplied
one by one.
"""

from __future__ import annotations

from ..kernels.depthwise import Depthwise
from ..kernels.layer import View
from ..quantization.doubled import DoubledRequant
from ..quantization.reference import ZERO
from .dsp import REQUANT, clamp_four, enter, shifted, shifted_multiplier
from .dsp_depthwise import SUMS, next_group
from .frame import Frame
from .thumb import LR, R0, R1, R2, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

FRAME = Frame(("x", "y", "w", "q", "lift", "C", "step") + REQUANT, ("at",))
"""As dsp_depthwise.frame. step: bytes from one element of a channel's window to the next."""


def step_of(layer: Depthwise, x: View) -> int | None:
    """`step`, or None if the layer has several positions or its window more than one step."""
    window, (kh, kw) = layer.window, layer.window.kernel
    down, across = window.dilations[0] * x.pitch, window.dilations[1] * layer.image[2]
    if window.output(*layer.image[:2]) != (1, 1):
        return None
    if kw == 1:
        return down
    return across if kh == 1 or down == kw * across else None


def fits(layer: Depthwise) -> bool:
    """Whether the kernel computes such a layer: its channels, weights and arithmetic."""
    shifts = layer.requant.shifted if isinstance(layer.requant, DoubledRequant) else True
    return layer.image[2] >= 4 and layer.weight_zero == ZERO and shifts


def depthwise(taps: int, up: bool, full: bool, how: str) -> ThumbDsp:
    """up, full, how: as in dsp_depthwise_pairs.depthwise."""
    a, f, each = ThumbDsp(), FRAME, 12 if how else 8
    enter(a, f, {"x": R0, "y": R0, "w": R1, "q": R2})
    if not full:
        clamp_four(a, f)
    a.movs(R0, 0)
    a.str_(R0, SP, f["at"])

    a.label("group")
    a.ldr(R0, SP, f["at"])
    a.ldr(R1, SP, f["w"])
    a.movs(R2, taps)
    a.muls(R2, R0)
    a.add(R1, R2)
    _words(a, f, how)
    a.ldr(R2, SP, f["lift"])
    for k, s in enumerate(SUMS):
        a.ldr(s, R7, each * k)
        a.subs(s, s, R2)
    a.ldr(R2, SP, f["x"])
    a.add(R0, R2)
    a.ldr(R2, SP, f["step"])
    for k in range(0, taps - 3, 4):
        _four_weights(a, taps, k)
    for k in range(taps // 4 * 4, taps):
        _one_weight(a, taps, k)

    a.ldr(R0, SP, f["at"])
    _words(a, f, how)
    a.mov(R9, R7)
    a.ldr(R1, SP, f["base"])
    if not how:
        a.ldrd(R10, R11, SP, f.pair("up", "scale"))
    for k, s in enumerate(SUMS):
        if how:
            shifted_multiplier(a, R9)
            shifted(a, (s,), R1)
            a.addw(R9, R9, each)
        else:
            a.ldr_w(R7, R9, each * k + 4)
            a.lsl_reg(R7, R7, R11)
            if up:
                a.lsl_reg(s, s, R10)
            a.smmlar(s, s, R7, R1)
        a.usat(s, 8, s)
    for k, s in enumerate(SUMS[1:]):
        a.orr_w(SUMS[0], SUMS[0], s, 8 * k + 8)
    if not full:
        a.ldrd(R7, R8, SP, f.pair("c1", "c2"))
        a.uqadd8(SUMS[0], SUMS[0], R7)
        a.usub8(SUMS[0], SUMS[0], R8)
    a.ldr(R7, SP, f["y"])
    a.str_index(SUMS[0], R7, R0)
    next_group(a, f)
    return a


def _words(a: ThumbDsp, f: Frame, how: str) -> None:
    """Where the biases and multipliers of the group at r0 are, in r7."""
    a.ldr(R7, SP, f["q"])
    a.add_w(R7, R7, R0, 3)
    if how:
        a.add_w(R7, R7, R0, 2)


def _four_weights(a: ThumbDsp, taps: int, k: int) -> None:
    """Add four products of each channel, from its weight `k`; x in r0, which moves on, the group's weights in r1, the
    step in r2. Clobbers r7 to r12 and lr."""
    a.ldr_w(R8, R0)
    a.ldr_index(R9, R0, R2)
    a.ldr_index(R10, R0, R2, 1)
    a.add_w(R0, R0, R2, 1)
    a.ldr_index(R11, R0, R2)
    a.add_w(R0, R0, R2, 1)
    # Channels 0 and 1 of elements 0 and 2 to r7, channels 2 and 3 to r10; those of elements 1 and 3 to r8 and r11.
    a.pkhbt(R7, R8, R10)
    a.pkhtb(R10, R10, R8)
    a.pkhbt(R8, R9, R11)
    a.pkhtb(R11, R11, R9)
    for channel, s in enumerate(SUMS):
        a.ldr_w(R12, R1, taps * channel + k)
        a.eor_bytes(R12, R12, ZERO)
        even, odd = (R10, R11) if channel > 1 else (R7, R8)
        for ror, pair in ((0, even), (8, odd)):
            a.sxtb16(R9, R12, ror)
            a.uxtb16(LR, pair, 8 * (channel % 2))
            a.smlad(s, LR, R9, s)


def _one_weight(a: ThumbDsp, taps: int, k: int) -> None:
    """As _four_weights, for one weight of each channel."""
    a.ldr_w(R7, R0)
    a.add(R0, R2)
    a.uxtb16(R8, R7, 8)
    a.uxtb16(R7, R7)
    for channel, s in enumerate(SUMS):
        a.ldrb_w(R12, R1, taps * channel + k)
        a.subw(R12, R12, ZERO)
        (a.smlatb if channel > 1 else a.smlabb)(s, R8 if channel % 2 else R7, R12, s)
