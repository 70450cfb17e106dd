"""Depthwise convolution of three rows for ARMv7E-M, for fewer than four channels: one channel at a time, two rows and
two columns of its outputs at once.

Four rows of a column of activations serve two rows of outputs. They are loaded byte by byte into two words, each of two
halves: rows 0 and 1, and rows 2 and 3. SMLAD then multiplies two of them by two weights; the row at the edge of a
window is multiplied alone. If the number of rows or columns is odd, the last two overlap those before.
"""

from __future__ import annotations

from ..kernels.depthwise import Depthwise
from ..quantization.doubled import DoubledRequant
from .dsp import REQUANT, clamp_four, enter, leave, shifted
from .dsp_depthwise import load_numbers
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP
from .thumb_dsp import ThumbDsp

ROWS = 3
"""Rows of a window."""

MOST_COLUMNS = 8
"""Wider windows would make the kernel long."""

FIRST, SECOND = (R3, R4), (R5, R6)
"""The sums of two neighboring columns, in the first row of outputs and in the second."""

WEIGHTS = ((R9, R10), (R11, R12))
"""Those of a column, and of the next: rows 0 and 1 in one word, rows 1 and 2 in the other."""


def fits(layer: Depthwise) -> bool:
    """Whether the kernel computes such a layer."""
    window, requant = layer.window, layer.requant
    shifts = requant.shifted if isinstance(requant, DoubledRequant) else True
    enough = all(n > 3 or n == 2 for n in window.output(*layer.image[:2]))  # of three, one would be computed twice
    small = window.kernel[0] == ROWS and window.kernel[1] <= MOST_COLUMNS
    steps = (*window.strides, *window.dilations)
    return layer.image[2] < 4 and small and enough and steps == (1, 1, 1, 1) and shifts


def frame(columns: int, how: str = "") -> Frame:
    """As dsp_depthwise.frame. columns: of a window; P: from one row of activations to the next; yP, yC: from one output
    to those below, and below to the right; xrow, yrow: from two rows to the next two; last: from a row's first position
    to its last pair.
    """
    return Frame(
        ("x", "y", "w", "q", "lift", "C", "P", "yP", "yC", "rows", "last", "xrow", "yrow", "wz") + REQUANT,
        ("at", "row", "from", "end", "line", "b0", "b1", "m0") + (("right0",) if how else ()),
        8 * columns,
    )


def depthwise(columns: int, channels: int, up: bool, full: bool, how: str) -> ThumbDsp:
    """columns: of a window; full: outputs range over whole bytes; how: "" or "shifted"."""
    a, f = ThumbDsp(), frame(columns, how)
    enter(a, f, {"x": R0, "y": R0, "w": R1, "q": R2})
    if not full:
        clamp_four(a, f)
    a.movs(R0, 0)
    a.str_(R0, SP, f["at"])

    a.label("channel")
    load_numbers(a, f, 1, how)
    a.ldr(R4, SP, f["b0"])
    a.str_(R4, SP, f["b1"])
    _load_weights(a, f, columns)
    a.ldr(R1, SP, f["at"])
    a.ldr(R0, SP, f["x"])
    a.add(R0, R1)
    a.ldr(R4, SP, f["y"])
    a.add(R4, R1)
    a.ldr(R5, SP, f["rows"])
    a.str_(R5, SP, f["row"])
    a.ldr(R1, SP, f["P"])
    a.add_w(R2, R1, R1, 1)

    a.label("rows")
    a.str_(R4, SP, f["line"])
    a.mov(LR, R4)
    a.str_(R0, SP, f["from"])
    a.ldr(R4, SP, f["last"])
    a.add(R4, R0)
    a.str_(R4, SP, f["end"])
    a.label("four")
    a.ldrd(FIRST[1], SECOND[1], SP, f.pair("b0", "b1"))
    _products(a, f, columns, channels)
    _rescale(a, f, up, how)
    _store(a, f, channels, full)
    a.ldr(R7, SP, f["end"])
    a.cmp(R0, R7)
    a.b_if_w("ls", "four")
    a.subs(R3, R0, R7)
    a.cmp_imm(R3, channels)
    a.b_if("ne", "rows done")
    a.mov(R0, R7)
    a.subw(LR, LR, channels)
    a.b_w("four")

    a.label("rows done")
    a.ldr(R0, SP, f["from"])
    a.ldr(R4, SP, f["line"])
    for name, place in (("xrow", R0), ("yrow", R4)):
        a.ldr(R5, SP, f[name])
        a.add(place, R5)
    a.ldr(R5, SP, f["row"])
    a.subs_imm(R5, 2)
    a.b_if("eq", "channel done")
    a.cmp_imm(R5, 1)
    a.b_if("ne", "two rows")
    a.sub_w(R0, R0, R1)
    a.ldr(R5, SP, f["yP"])
    a.subs(R4, R4, R5)
    a.movs(R5, 2)
    a.label("two rows")
    a.str_(R5, SP, f["row"])
    a.b_w("rows")

    a.label("channel done")
    a.ldr(R0, SP, f["at"])
    a.adds_imm(R0, 1)
    a.str_(R0, SP, f["at"])
    a.cmp_imm(R0, channels)
    a.b_if_w("ne", "channel")
    leave(a)
    return a


def _load_weights(a: ThumbDsp, f: Frame, columns: int) -> None:
    """Copy a channel's weights to the stack as signed halves: for each column rows 0 and 1, then rows 1 and 2. The
    channel is in r0. Clobbers r1 to r7."""
    a.movs(R1, ROWS * columns)
    a.muls(R1, R0)
    a.ldr(R2, SP, f["w"])
    a.add(R2, R1)
    a.ldr(R1, SP, f["wz"])
    a.add_from_sp(R3, f.block)
    a.movs(R7, columns)
    a.label("weights")
    a.ldrb_w(R5, R2, columns)
    a.ldrb_w(R6, R2, 2 * columns)
    a.ldrb_after(R4, R2, 1)
    for row in (R4, R5, R6):
        a.subs(row, row, R1)
    a.pkhbt(R4, R4, R5)
    a.pkhbt(R5, R5, R6)
    a.strd_after(R4, R5, R3, 8)
    a.subs_imm(R7, 1)
    a.b_if("ne", "weights")


def _products(a: ThumbDsp, f: Frame, columns: int, channels: int) -> None:
    """Add the products of four windows; x in r0, which moves on by two positions, P in r1, three times P in r2. The
    bias is in the second sum of each row. A column's weights serve the first windows, and with the next column the
    second ones."""
    for j in range(columns + 1):
        if j < columns:
            a.ldrd(*WEIGHTS[j % 2], SP, f.block + 8 * j)
        # Rows 2 and 3, then rows 0 and 1: the last load moves on.
        a.ldrb_index(R7, R0, R1, 1)
        a.ldrb_index(R8, R0, R2)
        a.orr_w(R7, R7, R8, 16)
        for first, second, _, below in _windows(j, columns):
            a.smlabt(first, R7, below, FIRST[1] if j == 0 else first)
            a.smlad(second, R7, below, SECOND[1] if j == 0 else second)
        a.ldrb_index(R8, R0, R1)
        a.ldrb_after(R7, R0, channels if j < columns else channels * (2 - columns))
        a.orr_w(R7, R7, R8, 16)
        for first, second, above, _ in _windows(j, columns):
            a.smlad(first, R7, above, first)
            a.smlatb(second, R7, above, second)


def _windows(j: int, columns: int) -> list[tuple[int, int, int, int]]:
    """The windows that have column j: the sums of both rows, and the weights of that column."""
    return [(FIRST[k], SECOND[k], *WEIGHTS[(j - k) % 2]) for k in (0, 1) if 0 <= j - k < columns]


def _rescale(a: ThumbDsp, f: Frame, up: bool, how: str) -> None:
    """Multiply the sums by the channel's multiplier, add `base`, and saturate them to bytes."""
    sums = (*FIRST, *SECOND)
    a.ldr_w(R9, SP, f["base"])
    if how:
        a.ldrd(R7, R8, SP, f.pair("m0", "right0"))
        shifted(a, sums, R9)
    else:
        a.ldr(R7, SP, f["m0"])
        if up:
            a.ldr_w(R8, SP, f["up"])
        for s in sums:
            if up:
                a.lsl_reg(s, s, R8)
            a.smmlar(s, s, R7, R9)
    for s in sums:
        a.usat(s, 8, s)


def _store(a: ThumbDsp, f: Frame, channels: int, full: bool) -> None:
    """Clamp the bytes and write them; y in lr, which moves on by two positions."""
    sums = (*FIRST, *SECOND)
    if not full:
        for k, s in enumerate(sums[1:]):
            a.orr_w(R3, R3, s, 8 * k + 8)
        a.ldrd(R7, R8, SP, f.pair("c1", "c2"))
        a.uqadd8(R3, R3, R7)
        a.usub8(R3, R3, R8)
        for k, s in enumerate(sums[1:]):
            a.lsrs(s, R3, 8 * k + 8)
    a.ldrd(R7, R8, SP, f.pair("yP", "yC"))
    a.strb_w(R4, LR, channels)
    a.strb_index(R5, LR, R7)
    a.strb_index(R6, LR, R8)
    a.strb_after(R3, LR, 2 * channels)
