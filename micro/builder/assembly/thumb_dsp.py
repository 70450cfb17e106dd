"""Thumb on Cortex-M4, M7 and M33: the instructions of ARMv7E-M that kernels need, beyond those of ARMv6-M.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from .assembler import check
from .thumb import CONDITIONS, Thumb, far_branch, halves, name, names


class ThumbDsp(Thumb):
    """ARMv7E-M: everything of ARMv6-M, wide encodings, and the DSP extension."""

    def _two(self, text: str, first: int, second: int) -> None:
        self.emit(text, halves(first, second))

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def add_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"add.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEB00 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def add_sign(self, d: int, n: int, m: int) -> None:
        """d = n - 1 if m is negative, else n."""
        self._two(f"add.w {name(d)}, {name(n)}, {name(m)}, asr #31", 0xEB00 | n, 0x70E0 | d << 8 | m)

    def sub_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"sub.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEBA0 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def add_asr(self, d: int, n: int, m: int, imm5: int) -> None:
        """d = n + (m >> imm5)."""
        check("a shift", imm5, range(1, 32))
        self._two(
            f"add.w {name(d)}, {name(n)}, {name(m)}, asr #{imm5}",
            0xEB00 | n,
            (imm5 >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | 0x20 | m,
        )

    def orr_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"orr.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEA40 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def orr_lsr(self, d: int, n: int, m: int, imm5: int) -> None:
        """d = n | m >> imm5."""
        check("a shift", imm5, range(1, 32))
        self._two(
            f"orr.w {name(d)}, {name(n)}, {name(m)}, lsr #{imm5}",
            0xEA40 | n,
            (imm5 >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | 0x10 | m,
        )

    def and_w(self, d: int, n: int, m: int) -> None:
        self._two(f"and.w {name(d)}, {name(n)}, {name(m)}", 0xEA00 | n, d << 8 | m)

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

    def _shift_w(self, text: str, kind: int, d: int, m: int, imm5: int) -> None:
        check("a shift", imm5, range(1, 32))
        self._two(
            f"{text} {name(d)}, {name(m)}, #{imm5}",
            0xEA4F,
            (imm5 >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | kind << 4 | m,
        )

    def lsl_w(self, d: int, m: int, imm5: int) -> None:
        self._shift_w("lsl.w", 0, d, m, imm5)

    def lsr_w(self, d: int, m: int, imm5: int) -> None:
        self._shift_w("lsr.w", 1, d, m, imm5)

    def asr_w(self, d: int, m: int, imm5: int) -> None:
        self._shift_w("asr.w", 2, d, m, imm5)

    def lsrs_w(self, d: int, m: int, imm5: int) -> None:
        """Sets the carry to the last bit shifted out."""
        check("a shift", imm5, range(1, 32))
        self._two(
            f"lsrs.w {name(d)}, {name(m)}, #{imm5}",
            0xEA5F,
            (imm5 >> 2) << 12 | d << 8 | (imm5 & 3) << 6 | 1 << 4 | m,
        )

    def lsl_reg(self, d: int, n: int, m: int) -> None:
        self._two(f"lsl.w {name(d)}, {name(n)}, {name(m)}", 0xFA00 | n, 0xF000 | d << 8 | m)

    def asr_reg(self, d: int, n: int, m: int) -> None:
        self._two(f"asr.w {name(d)}, {name(n)}, {name(m)}", 0xFA40 | n, 0xF000 | d << 8 | m)

    def mul(self, d: int, n: int, m: int) -> None:
        self._two(f"mul {name(d)}, {name(n)}, {name(m)}", 0xFB00 | n, 0xF000 | d << 8 | m)

    def mla(self, d: int, n: int, m: int, a: int) -> None:
        self._two(f"mla {name(d)}, {name(n)}, {name(m)}, {name(a)}", 0xFB00 | n, a << 12 | d << 8 | m)

    # -- the DSP extension ---------------------------------------------------------------------------------------------

    def _four(self, text: str, first: int, second: int, d: int, n: int, m: int, a: int) -> None:
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}, {name(a)}", first | n, second | a << 12 | d << 8 | m)

    def smlad(self, d: int, n: int, m: int, a: int) -> None:
        """d = a + both products of signed halves."""
        self._four("smlad", 0xFB20, 0, d, n, m, a)

    def smlabb(self, d: int, n: int, m: int, a: int) -> None:
        self._four("smlabb", 0xFB10, 0, d, n, m, a)

    def smlatt(self, d: int, n: int, m: int, a: int) -> None:
        self._four("smlatt", 0xFB10, 0x30, d, n, m, a)

    def smlabt(self, d: int, n: int, m: int, a: int) -> None:
        """The lower half of n, the upper one of m."""
        self._four("smlabt", 0xFB10, 0x10, d, n, m, a)

    def smlatb(self, d: int, n: int, m: int, a: int) -> None:
        """The upper half of n, the lower one of m."""
        self._four("smlatb", 0xFB10, 0x20, d, n, m, a)

    def smmlar(self, d: int, n: int, m: int, a: int) -> None:
        """d = a + the upper word of n * m, rounded half up."""
        self._four("smmlar", 0xFB50, 0x10, d, n, m, a)

    def smmulr(self, d: int, n: int, m: int) -> None:
        """d = the upper word of n * m, rounded half up."""
        self._two(f"smmulr {name(d)}, {name(n)}, {name(m)}", 0xFB50 | n, 0xF010 | d << 8 | m)

    def usada8(self, d: int, n: int, m: int, a: int) -> None:
        """d = a + the sum of |n - m| over the bytes."""
        self._four("usada8", 0xFB70, 0, d, n, m, a)

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

    def pkhbt(self, d: int, n: int, m: int) -> None:
        """d = the lower half of n, and above it that of m."""
        self._two(f"pkhbt {name(d)}, {name(n)}, {name(m)}, lsl #16", 0xEAC0 | n, 0x4000 | d << 8 | m)

    def pkhtb(self, d: int, n: int, m: int) -> None:
        """d = the upper half of m, and above it that of n."""
        self._two(f"pkhtb {name(d)}, {name(n)}, {name(m)}, asr #16", 0xEAC0 | n, 0x4020 | d << 8 | m)

    def eor_bytes(self, d: int, n: int, imm8: int) -> None:
        """With the same byte four times."""
        byte = check("imm8", imm8, range(1, 256))
        self._two(f"eor.w {name(d)}, {name(n)}, #{byte * 0x01010101}", 0xF080 | n, 0x3000 | d << 8 | byte)

    def uxtab16(self, d: int, n: int, m: int, ror: int = 0) -> None:
        """d = n + those halves."""
        text = f", ror #{ror}" if ror else ""
        self._two(f"uxtab16 {name(d)}, {name(n)}, {name(m)}{text}", 0xFA30 | n, 0xF080 | d << 8 | ror // 8 << 4 | m)

    def _bytes(self, text: str, first: int, second: int, d: int, n: int, m: int) -> None:
        self._two(f"{text} {name(d)}, {name(n)}, {name(m)}", first | n, second | d << 8 | m)

    def uadd8(self, d: int, n: int, m: int) -> None:
        self._bytes("uadd8", 0xFA80, 0xF040, d, n, m)

    def usub8(self, d: int, n: int, m: int) -> None:
        """Bytes; sets the flags that SEL chooses by."""
        self._bytes("usub8", 0xFAC0, 0xF040, d, n, m)

    def ssub16(self, d: int, n: int, m: int) -> None:
        """Halves."""
        self._bytes("ssub16", 0xFAD0, 0xF000, d, n, m)

    def uqadd8(self, d: int, n: int, m: int) -> None:
        self._bytes("uqadd8", 0xFA80, 0xF050, d, n, m)

    def uqsub8(self, d: int, n: int, m: int) -> None:
        self._bytes("uqsub8", 0xFAC0, 0xF050, d, n, m)

    def sel(self, d: int, n: int, m: int) -> None:
        self._bytes("sel", 0xFAA0, 0xF080, d, n, m)

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

    def ldr_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"ldr.w {name(t)}, [{name(n)}, #{offset}]", 0xF8D0 | n, t << 12 | check("an offset", offset, range(4096))
        )

    def str_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"str.w {name(t)}, [{name(n)}, #{offset}]", 0xF8C0 | n, t << 12 | check("an offset", offset, range(4096))
        )

    def strb_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"strb.w {name(t)}, [{name(n)}, #{offset}]", 0xF880 | n, t << 12 | check("an offset", offset, range(4096))
        )

    def strh_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"strh.w {name(t)}, [{name(n)}, #{offset}]", 0xF8A0 | n, t << 12 | check("an offset", offset, range(4096))
        )

    def ldrb_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"ldrb.w {name(t)}, [{name(n)}, #{offset}]", 0xF890 | n, t << 12 | check("an offset", offset, range(4096))
        )

    def ldrh_w(self, t: int, n: int, offset: int = 0) -> None:
        self._two(
            f"ldrh.w {name(t)}, [{name(n)}, #{offset}]", 0xF8B0 | n, t << 12 | check("an offset", offset, range(4096))
        )

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

    def _after(self, text: str, opcode: int, t: int, n: int, step: int) -> None:
        """Post-indexed: n += step afterwards."""
        check("a step", step, range(-255, 256))
        up = 0x200 if step >= 0 else 0
        self._two(f"{text} {name(t)}, [{name(n)}], #{step}", opcode | n, t << 12 | 0x900 | up | abs(step))

    def ldr_after(self, t: int, n: int, step: int) -> None:
        self._after("ldr", 0xF850, t, n, step)

    def str_after(self, t: int, n: int, step: int) -> None:
        self._after("str", 0xF840, t, n, step)

    def ldrb_after(self, t: int, n: int, step: int) -> None:
        self._after("ldrb", 0xF810, t, n, step)

    def ldrsh_after(self, t: int, n: int, step: int) -> None:
        """A signed half."""
        self._after("ldrsh", 0xF930, t, n, step)

    def strb_after(self, t: int, n: int, step: int) -> None:
        self._after("strb", 0xF800, t, n, step)

    def strh_after(self, t: int, n: int, step: int) -> None:
        self._after("strh", 0xF820, t, n, step)

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
