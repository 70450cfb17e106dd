"""Thumb on Cortex-M4, M7 and M33: the instructions of ARMv7E-M that kernels need, beyond those of ARMv6-M.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from collections.abc import Callable

from .assembler import check
from .thumb import CONDITIONS, Thumb, far_branch, halves, name, names


def _three(text: str, first: int, second: int = 0, tail: str = "") -> Callable[[ThumbDsp, int, int, int], None]:
    """An instruction of three registers. tail: of its text."""

    def append(self: ThumbDsp, d: int, n: int, m: int) -> None:
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}{tail}", first | n, second | d << 8 | m)

    return append


def _four(text: str, first: int, second: int = 0) -> Callable[[ThumbDsp, int, int, int, int], None]:
    """An instruction of four registers."""

    def append(self: ThumbDsp, d: int, n: int, m: int, a: int) -> None:
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}, {name(a)}", first | n, second | a << 12 | d << 8 | m)

    return append


def _shift_w(text: str, first: int, kind: int) -> Callable[[ThumbDsp, int, int, int], None]:
    """A shift by a constant."""

    def append(self: ThumbDsp, d: int, m: int, imm5: int) -> None:
        check("a shift", imm5, range(1, 32))
        self._two(f"{text} {name(d)}, {name(m)}, #{imm5}", first, _shifted(d, m, imm5, kind))

    return append


def _operand(text: str, first: int, how: str, kind: int) -> Callable[[ThumbDsp, int, int, int, int], None]:
    """An instruction whose last operand is shifted to the right by a constant."""

    def append(self: ThumbDsp, d: int, n: int, m: int, imm5: int) -> None:
        check("a shift", imm5, range(1, 32))
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}, {how} #{imm5}", first | n, _shifted(d, m, imm5, kind))

    return append


def _shifted(d: int, m: int, imm5: int, kind: int) -> int:
    """The second half of an instruction with a shifted operand. kind: 0 for lsl, 1 for lsr, 2 for asr."""
    return (imm5 >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | kind << 4 | m


def _after(text: str, opcode: int) -> Callable[[ThumbDsp, int, int, int], None]:
    """A load or store, and n += step afterwards."""

    def append(self: ThumbDsp, t: int, n: int, step: int) -> None:
        check("a step", step, range(-255, 256))
        up = 0x200 if step >= 0 else 0
        self._two(f"{text} {name(t)}, [{name(n)}], #{step}", opcode | n, t << 12 | 0x900 | up | abs(step))

    return append


class ThumbDsp(Thumb):
    """ARMv7E-M: everything of ARMv6-M, wide encodings, and the DSP extension."""

    def _two(self, text: str, first: int, second: int) -> None:
        self.emit(text, halves(first, second))

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def _left(self, text: str, first: int, d: int, n: int, m: int, lsl: int) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}{shift}", first | n, _shifted(d, m, lsl, 0))

    def add_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        self._left("add.w", 0xEB00, d, n, m, lsl)

    def sub_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        self._left("sub.w", 0xEBA0, d, n, m, lsl)

    def orr_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        self._left("orr.w", 0xEA40, d, n, m, lsl)

    add_asr = _operand("add.w", 0xEB00, "asr", 2)  # d = n + (m >> imm5)
    orr_lsr = _operand("orr.w", 0xEA40, "lsr", 1)  # d = n | m >> imm5
    add_sign = _three("add.w", 0xEB00, 0x70E0, ", asr #31")  # d = n - 1 if m is negative, else n
    and_w = _three("and.w", 0xEA00)

    def _plain12(self, text: str, opcode: int, d: int, n: int, imm12: int) -> None:
        check("imm12", imm12, range(4096))
        self._two(
            f"{text} {name(d)}, {name(n)}, #{imm12}",
            opcode | (imm12 >> 11) << 10 | n,
            (imm12 >> 8 & 7) << 12 | d << 8 | imm12 & 255,
        )

    def addw(self, d: int, n: int, imm12: int) -> None:
        self._plain12("addw", 0xF200, d, n, imm12)

    def subw(self, d: int, n: int, imm12: int) -> None:
        self._plain12("subw", 0xF2A0, d, n, imm12)

    def subs_w(self, d: int, n: int, imm8: int) -> None:
        self._two(f"subs.w {name(d)}, {name(n)}, #{imm8}", 0xF1B0 | n, d << 8 | check("imm8", imm8, range(256)))

    def adc_w(self, d: int, n: int, imm8: int) -> None:
        self._two(f"adc.w {name(d)}, {name(n)}, #{imm8}", 0xF140 | n, d << 8 | check("imm8", imm8, range(256)))

    def mov_w(self, d: int, imm8: int) -> None:
        self._two(f"mov.w {name(d)}, #{imm8}", 0xF04F, d << 8 | check("imm8", imm8, range(256)))

    def _const(self, text: str, first: int, d: int, const: int) -> None:
        shift = max(const.bit_length() - 8, 0)
        check("a constant's lower bits", const & (1 << shift) - 1, (0,))
        imm12 = (32 - shift & 31) << 7 | const >> shift & (127 if shift else 255)
        self._two(f"{text}, #{const}", first | (imm12 >> 11) << 10, (imm12 >> 8 & 7) << 12 | d << 8 | imm12 & 255)

    def mov_const(self, d: int, const: int) -> None:
        """Of eight bits, at any place."""
        self._const(f"mov.w {name(d)}", 0xF04F, d, const)

    def add_const(self, d: int, n: int, const: int) -> None:
        self._const(f"add.w {name(d)}, {name(n)}", 0xF100 | n, d, const)

    def sub_const(self, d: int, n: int, const: int) -> None:
        self._const(f"sub.w {name(d)}, {name(n)}", 0xF1A0 | n, d, const)

    lsl_w = _shift_w("lsl.w", 0xEA4F, 0)
    lsr_w = _shift_w("lsr.w", 0xEA4F, 1)
    asr_w = _shift_w("asr.w", 0xEA4F, 2)
    lsrs_w = _shift_w("lsrs.w", 0xEA5F, 1)  # sets the carry to the last bit shifted out
    lsl_reg = _three("lsl.w", 0xFA00, 0xF000)
    asr_reg = _three("asr.w", 0xFA40, 0xF000)
    mul = _three("mul", 0xFB00, 0xF000)
    mla = _four("mla", 0xFB00)

    # -- the DSP extension ---------------------------------------------------------------------------------------------

    smlad = _four("smlad", 0xFB20)  # d = a + both products of signed halves
    smlabb = _four("smlabb", 0xFB10)
    smlatt = _four("smlatt", 0xFB10, 0x30)
    smlabt = _four("smlabt", 0xFB10, 0x10)  # the lower half of n, the upper one of m
    smlatb = _four("smlatb", 0xFB10, 0x20)  # the upper half of n, the lower one of m
    smmlar = _four("smmlar", 0xFB50, 0x10)  # d = a + the upper word of n * m, rounded half up
    smmulr = _three("smmulr", 0xFB50, 0xF010)  # d = the upper word of n * m, rounded half up
    usada8 = _four("usada8", 0xFB70)  # d = a + the sum of |n - m| over the bytes
    pkhbt = _three("pkhbt", 0xEAC0, 0x4000, ", lsl #16")  # d = the lower half of n, and above it that of m
    pkhtb = _three("pkhtb", 0xEAC0, 0x4020, ", asr #16")  # d = the upper half of m, and above it that of n
    uadd8 = _three("uadd8", 0xFA80, 0xF040)
    usub8 = _three("usub8", 0xFAC0, 0xF040)  # sets the flags that SEL chooses by
    ssub16 = _three("ssub16", 0xFAD0, 0xF000)
    uqadd8 = _three("uqadd8", 0xFA80, 0xF050)
    uqsub8 = _three("uqsub8", 0xFAC0, 0xF050)
    sel = _three("sel", 0xFAA0, 0xF080)

    def smull(self, low: int, high: int, n: int, m: int) -> None:
        self._two(f"smull {name(low)}, {name(high)}, {name(n)}, {name(m)}", 0xFB80 | n, low << 12 | high << 8 | m)

    def uxtb16(self, d: int, m: int, ror: int = 0) -> None:
        """Bytes 0 and 2 (with ror 8: 1 and 3) as two halves."""
        text = f", ror #{ror}" if ror else ""
        self._two(f"uxtb16 {name(d)}, {name(m)}{text}", 0xFA3F, 0xF080 | d << 8 | ror // 8 << 4 | m)

    def sxtb16(self, d: int, m: int, ror: int = 0) -> None:
        """The same, signed."""
        text = f", ror #{ror}" if ror else ""
        self._two(f"sxtb16 {name(d)}, {name(m)}{text}", 0xFA2F, 0xF080 | d << 8 | ror // 8 << 4 | m)

    def eor_bytes(self, d: int, n: int, imm8: int) -> None:
        """With the same byte four times."""
        byte = check("imm8", imm8, range(1, 256))
        self._two(f"eor.w {name(d)}, {name(n)}, #{byte * 0x01010101}", 0xF080 | n, 0x3000 | d << 8 | byte)

    def uxtab16(self, d: int, n: int, m: int, ror: int = 0) -> None:
        """d = n + those halves."""
        text = f", ror #{ror}" if ror else ""
        self._two(f"uxtab16 {name(d)}, {name(n)}, {name(m)}{text}", 0xFA30 | n, 0xF080 | d << 8 | ror // 8 << 4 | m)

    def _saturate(self, text: str, opcode: int, d: int, bits: int, n: int, imm5: int) -> None:
        shift = f", asr #{imm5}" if imm5 else ""
        self._two(
            f"{text} {name(d)}, #{bits}, {name(n)}{shift}",
            opcode | (0x20 if imm5 else 0) | n,
            (check("a shift", imm5, range(32)) >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | bits - (opcode == 0xF300),
        )

    def usat(self, d: int, bits: int, n: int, imm5: int = 0) -> None:
        """Shift to the right, then clamp to 0 … 2**bits - 1."""
        check("bits", bits, range(32))
        self._saturate("usat", 0xF380, d, bits, n, imm5)

    def ssat(self, d: int, bits: int, n: int, imm5: int = 0) -> None:
        """Shift to the right, then clamp to `bits` signed bits."""
        check("bits", bits, range(1, 33))
        self._saturate("ssat", 0xF300, d, bits, n, imm5)

    # -- loads and stores ----------------------------------------------------------------------------------------------

    def _near(self, text: str, first: int, t: int, n: int, offset: int) -> None:
        check("an offset", offset, range(4096))
        self._two(f"{text} {name(t)}, [{name(n)}, #{offset}]", first | n, t << 12 | offset)

    def ldr_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("ldr.w", 0xF8D0, t, n, offset)

    def str_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("str.w", 0xF8C0, t, n, offset)

    def strb_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("strb.w", 0xF880, t, n, offset)

    def strh_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("strh.w", 0xF8A0, t, n, offset)

    def ldrb_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("ldrb.w", 0xF890, t, n, offset)

    def ldrh_w(self, t: int, n: int, offset: int = 0) -> None:
        self._near("ldrh.w", 0xF8B0, t, n, offset)

    def ldr_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"ldr.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF850 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    def ldrb_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"ldrb.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF810 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    def ldrh_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"ldrh.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF830 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    def str_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"str.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF840 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    def strb_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"strb.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF800 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    def strh_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"strh.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF820 | n,
            t << 12 | check("a shift", lsl, range(4)) << 4 | m,
        )

    ldr_after = _after("ldr", 0xF850)
    str_after = _after("str", 0xF840)
    ldrb_after = _after("ldrb", 0xF810)
    ldrsh_after = _after("ldrsh", 0xF930)  # a signed half
    strb_after = _after("strb", 0xF800)
    strh_after = _after("strh", 0xF820)

    def ldrd(self, t: int, t2: int, n: int, offset: int = 0) -> None:
        check("an offset", offset, range(0, 1024, 4))
        self._two(f"ldrd {name(t)}, {name(t2)}, [{name(n)}, #{offset}]", 0xE9D0 | n, t << 12 | t2 << 8 | offset // 4)

    def strd(self, t: int, t2: int, n: int, offset: int = 0) -> None:
        check("an offset", offset, range(0, 1024, 4))
        self._two(f"strd {name(t)}, {name(t2)}, [{name(n)}, #{offset}]", 0xE9C0 | n, t << 12 | t2 << 8 | offset // 4)

    def ldrd_after(self, t: int, t2: int, n: int, step: int) -> None:
        check("a step", step, range(0, 1024, 4))
        self._two(f"ldrd {name(t)}, {name(t2)}, [{name(n)}], #{step}", 0xE8F0 | n, t << 12 | t2 << 8 | step // 4)

    def strd_after(self, t: int, t2: int, n: int, step: int) -> None:
        check("a step", step, range(0, 1024, 4))
        self._two(f"strd {name(t)}, {name(t2)}, [{name(n)}], #{step}", 0xE8E0 | n, t << 12 | t2 << 8 | step // 4)

    def ldm(self, n: int, *registers: int, writeback: bool = False) -> None:
        mark = "!" if writeback else ""
        self._two(
            f"ldmia.w {name(n)}{mark}, {names(registers)}",
            0xE890 | (0x20 if writeback else 0) | n,
            sum(1 << r for r in registers),
        )

    # -- branches ------------------------------------------------------------------------------------------------------

    def b_if_w(self, condition: str, target: str) -> None:
        """Up to 1 MB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-(1 << 20), 1 << 20, 2))
            sign, j2, j1 = to >> 20 & 1, to >> 19 & 1, to >> 18 & 1
            return halves(
                0xF000 | sign << 10 | CONDITIONS[condition] << 6 | to >> 12 & 0x3F,
                0x8000 | j1 << 13 | j2 << 11 | to >> 1 & 0x7FF,
            )

        self.branch(f"b{condition}.w", 4, target, encode)

    def b_w(self, target: str) -> None:
        """Up to 16 MB away."""
        self.branch("b.w", 4, target, far_branch(0x9000, 1 << 24))
