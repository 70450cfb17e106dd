"""Common code of the kernels for ARMv7E-M: entry and exit, the sums of a window, and requantization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..quantization.doubled import HALF, SHIFT, DoubledRequant
from ..quantization.reference import Requant
from .driver import DRIVER
from .frame import Frame
from .thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, SP
from .thumb_dsp import ThumbDsp


def enter(a: ThumbDsp, f: Frame, bases: Mapping[str, int]) -> None:
    """Add the buffers' addresses (r0: A, r1: W, r2: T) to the fields in `bases`."""
    for name, base in bases.items():
        a.ldr(R4, SP, f[name])
        a.add(R4, base)
        a.str_(R4, SP, f[name])


def clamp_four(a: ThumbDsp, f: Frame) -> None:
    """Repeat the bytes `c1` and `c2` in their words, for four outputs at once. Clobbers r4."""
    for name in ("c1", "c2"):
        a.ldr(R4, SP, f[name])
        a.orr_w(R4, R4, R4, 8)
        a.orr_w(R4, R4, R4, 16)
        a.str_(R4, SP, f[name])


def leave(a: ThumbDsp) -> None:
    """Return to the driver."""
    a.b_w(DRIVER)


def halved_loop(a: ThumbDsp, name: str, count: int, body: Callable[[], None]) -> None:
    """Repeat `body` as often as register `count` says (at least once), two per iteration; lr is the counter."""
    a.lsrs_w(LR, count, 1)
    a.adc_w(LR, LR, 0)
    a.b_if_w("cs", f"{name} odd")
    a.label(f"{name} loop")
    body()
    a.label(f"{name} odd")
    body()
    a.subs_w(LR, LR, 1)
    a.b_if_w("ne", f"{name} loop")


WINDOW = ("n0", "n1", "run", "words", "after0", "after1", "K4")
"""The layout of a window: `n0` times `n1` runs of `run` bytes (`words` words, rounded up); what is added after each run
and after each n1 of them; the words of a whole window."""


def spread(a: ThumbDsp, f: Frame, gather: bool, step: int) -> None:
    """Write a window as pairs of 16-bit numbers, as UXTB16 produces them, two words per four bytes.

    r0: the window; r1: the destination, the next pair `step` bytes further; r2 becomes the sum of the bytes. gather:
    first copy the runs contiguously to `g`, zero-padded, if a run is not a whole number of words. Clobbers r3 to r10,
    lr.
    """
    a.mov_w(R8, 0)
    a.mov_w(R2, 0)

    def four() -> None:
        a.ldr_after(R4, R0, 4)
        a.usada8(R2, R4, R8, R2)
        a.uxtb16(R5, R4)
        a.uxtb16(R6, R4, 8)
        a.strd_after(R5, R6, R1, step)

    if gather:
        a.ldr(R3, SP, f["g"])
    a.ldr_w(R10, SP, f["n0"])
    a.label("rows of window")
    a.ldr_w(R9, SP, f["n1"])
    a.label("runs")
    a.ldr(R7, SP, f["words"])
    if gather:
        a.mov(R4, R3)
        a.label("copy run")
        a.ldr_after(R5, R0, 4)
        a.str_after(R5, R4, 4)
        a.subs_imm(R7, 1)
        a.b_if("ne", "copy run")
        a.ldr(R7, SP, f["run"])
        a.add(R3, R7)
    else:
        halved_loop(a, "run", R7, four)
    a.ldr(R7, SP, f["after1"])
    a.add(R0, R7)
    a.subs_w(R9, R9, 1)
    a.b_if("ne", "runs")
    a.ldr(R7, SP, f["after0"])
    a.add(R0, R7)
    a.subs_w(R10, R10, 1)
    a.b_if("ne", "rows of window")
    if gather:
        a.str_w(R8, R3, 0)
        a.ldr(R0, SP, f["g"])
        a.ldr(R7, SP, f["K4"])
        halved_loop(a, "run", R7, four)


def start(a: ThumbDsp, f: Frame) -> None:
    """Replace the bytes' sum in r2 by the term that a position adds to every bias: -wz * sum - lift. Clobbers r3."""
    a.ldr(R3, SP, f["wz"])
    a.muls(R2, R3)
    a.ldr(R3, SP, f["lift"])
    a.adds(R2, R2, R3)
    a.rsbs(R2, R2)


REQUANT = ("up", "scale", "base", "c1", "c2")
"""Fields of requantization: sums are shifted left by `up`, multipliers by `scale`, then the upper word of their
product, rounded, is added to `base`; `c1` and `c2` clamp it."""


def requant_fields(r: Requant) -> dict[str, int] | None:
    """Values of REQUANT, or None if SMMLAR does not give the reference's results.

    SMMLAR rounds half up at bit 32, which is `(s * m + 2**(shift-1)) >> shift` for `m << (32 - shift)`. If that does
    not fit a word (ratios of 0.5 and more), the sum is shifted instead, which is safe because `Requant` bounds `s * m`.
    To clamp to low..high, the difference to low is saturated to a byte, `c1 = 255 - (high - low)` is added with
    saturation, and `c2 = 255 - high` is subtracted.
    """
    if isinstance(r, DoubledRequant):
        base = r.zero - r.low
        base = 2 * base + 1 if r.shifted else base  # with the half that rounds
        return {"up": 0, "scale": 0, "base": base, "c1": 255 - (r.high - r.low), "c2": 255 - r.high}
    if r.shift > 32 or r.rest < 2:
        return None
    most = max(r.multipliers)
    up = next(u for u in range(33 - r.shift) if most << 32 - r.shift - u < 1 << 31)
    c1, c2 = 255 - (r.high - r.low), 255 - r.high
    return {"up": up, "scale": 32 - r.shift - up, "base": r.zero - r.low, "c1": c1, "c2": c2}


def multiplier(a: ThumbDsp, words: int) -> None:
    """For TensorFlow Lite's arithmetic: load from a channel's words after its bias, at `words`, the multiplier into r7,
    its left shift into r2 and its right shift into r8. Clobbers nothing else."""
    a.ldrd(R7, R8, words, 4)
    a.lsl_w(R2, R8, 32 - HALF - SHIFT)
    a.lsr_w(R2, R2, 32 - HALF)
    a.orr_w(R7, R2, R7, HALF)
    a.lsr_w(R2, R8, HALF + SHIFT)
    a.addw(R8, R8, 1)
    a.lsl_w(R8, R8, 32 - SHIFT)
    a.lsr_w(R8, R8, 32 - SHIFT)


def shifted_multiplier(a: ThumbDsp, words: int) -> None:
    """As `multiplier` where there are no left shifts. r8: the right shift less one in the lowest byte, which is what
    instructions shift by. r2 stays."""
    a.ldrd(R7, R8, words, 4)
    a.lsl_w(R7, R7, HALF)
    a.orr_lsr(R7, R7, R8, SHIFT)


def shifted(a: ThumbDsp, sums: Sequence[int], base: int) -> None:
    """As `doubled`, with the numbers of `shifted_multiplier` in r7 and r8, and the half that rounds in `base`."""
    for s in sums:
        a.lsl_w(s, s, 1)
        a.smmulr(s, s, R7)
        a.add_sign(s, s, s)
        a.asr_reg(s, s, R8)
        a.add_w(s, s, base)
        a.asr_w(s, s, 1)


def rescaled(a: ThumbDsp, sums: Sequence[int], words: int, base: int, how: str) -> None:
    """Rescale sums of one channel to the output's scale as TensorFlow Lite does, and add register `base`. how:
    "shifted" (DoubledRequant), or how often is rounded. Clobbers r2, r6, r7, r8 and lr."""
    if how == "shifted":
        shifted_multiplier(a, words)
        shifted(a, sums, base)
    else:
        _doubled(a, sums, words, base, how == "twice")


def _doubled(a: ThumbDsp, sums: Sequence[int], words: int, base: int, twice: bool) -> None:
    """Rescale sums of one channel to the output's scale as TensorFlow Lite does, and add register `base`.

    SMMULR rounds half up at bit 32, so a sum shifted left by one more bit has its product rounded at bit 31. To round
    ties away from zero, a negative number is decremented before rounding, unless nothing is shifted. Without `twice`
    the product is shifted and rounded only once. Clobbers r2, r6, r7, r8 and lr.
    """
    multiplier(a, words)
    if twice:
        a.addw(R2, R2, 1)
        for s in sums:
            a.lsl_reg(s, s, R2)
            a.smmulr(s, s, R7)
    else:
        a.sub_w(R8, R8, R2)
        a.addw(R8, R8, 3)
    a.mov_w(LR, 1)
    a.lsl_reg(LR, LR, R8)
    a.lsr_w(LR, LR, 1)
    if twice:
        a.usat(R2, 1, LR)
    for s in sums:
        if twice:
            a.asr_w(R6, s, 31)
            a.ands(R6, R2)
            a.sub_w(R6, LR, R6)
            a.add_w(s, s, R6)
        else:
            a.smull(R6, s, s, R7)
            a.lsr_w(R6, R6, 28)
            a.orr_w(s, R6, s, 4)
            a.add_w(s, s, LR)
        a.asr_reg(s, s, R8)
        a.add_w(s, s, base)
