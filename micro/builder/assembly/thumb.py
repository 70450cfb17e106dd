"""Thumb: the instructions of ARMv6-M (Cortex-M0, M0+), and those of ARMv7E-M (Cortex-M4, M7, M33) that kernels need.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7. Instructions that ARMv6-M lacks are in
`ThumbDsp`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .assembler import Assembler, check

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP, LR, PC = range(16)

CONDITIONS = {
    "eq": 0,
    "ne": 1,
    "cs": 2,
    "cc": 3,
    "mi": 4,
    "pl": 5,
    "hi": 8,
    "ls": 9,
    "ge": 10,
    "lt": 11,
    "gt": 12,
    "le": 13,
}

_NAMES = [*(f"r{k}" for k in range(13)), "sp", "lr", "pc"]


def name(register: int) -> str:
    """A register's name."""
    return _NAMES[register]


def _names(registers: Sequence[int]) -> str:
    return "{" + ", ".join(map(name, sorted(registers))) + "}"


def _halves(*halves: int) -> bytes:
    return b"".join(h.to_bytes(2, "little") for h in halves)


def _low(*registers: int) -> None:
    for r in registers:
        check("a low register", r, range(8))


class Thumb(Assembler):
    """ARMv6-M."""

    def _one(self, text: str, half: int) -> None:
        self.emit(text, _halves(half))

    # -- moves ---------------------------------------------------------------------------------------------------------

    def mov(self, d: int, m: int) -> None:
        """Any registers; no flags."""
        self._one(f"mov {name(d)}, {name(m)}", 0x4600 | (d & 8) << 4 | m << 3 | d & 7)

    def movs(self, d: int, imm8: int) -> None:
        _low(d)
        self._one(f"movs {name(d)}, #{imm8}", 0x2000 | d << 8 | check("imm8", imm8, range(256)))

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def adds(self, d: int, n: int, m: int) -> None:
        _low(d, n, m)
        self._one(f"adds {name(d)}, {name(n)}, {name(m)}", 0x1800 | m << 6 | n << 3 | d)

    def subs(self, d: int, n: int, m: int) -> None:
        _low(d, n, m)
        self._one(f"subs {name(d)}, {name(n)}, {name(m)}", 0x1A00 | m << 6 | n << 3 | d)

    def adds_imm(self, d: int, imm8: int) -> None:
        _low(d)
        self._one(f"adds {name(d)}, #{imm8}", 0x3000 | d << 8 | check("imm8", imm8, range(256)))

    def subs_imm(self, d: int, imm8: int) -> None:
        _low(d)
        self._one(f"subs {name(d)}, #{imm8}", 0x3800 | d << 8 | check("imm8", imm8, range(256)))

    def add(self, d: int, m: int) -> None:
        """d += m, any registers; no flags."""
        self._one(f"add {name(d)}, {name(m)}", 0x4400 | (d & 8) << 4 | m << 3 | d & 7)

    def muls(self, d: int, n: int) -> None:
        """d *= n."""
        _low(d, n)
        self._one(f"muls {name(d)}, {name(n)}, {name(d)}", 0x4340 | n << 3 | d)

    def rsbs(self, d: int, n: int) -> None:
        """d = -n."""
        _low(d, n)
        self._one(f"rsbs {name(d)}, {name(n)}, #0", 0x4240 | n << 3 | d)

    def _logic(self, text: str, opcode: int, d: int, m: int) -> None:
        _low(d, m)
        self._one(f"{text} {name(d)}, {name(m)}", opcode | m << 3 | d)

    def ands(self, d: int, m: int) -> None:
        self._logic("ands", 0x4000, d, m)

    def orrs(self, d: int, m: int) -> None:
        self._logic("orrs", 0x4300, d, m)

    def bics(self, d: int, m: int) -> None:
        self._logic("bics", 0x4380, d, m)

    def mvns(self, d: int, m: int) -> None:
        self._logic("mvns", 0x43C0, d, m)

    def asrs_reg(self, d: int, m: int) -> None:
        self._logic("asrs", 0x4100, d, m)

    def lsls_reg(self, d: int, m: int) -> None:
        self._logic("lsls", 0x4080, d, m)

    def lsrs_reg(self, d: int, m: int) -> None:
        self._logic("lsrs", 0x40C0, d, m)

    def _shift(self, text: str, opcode: int, d: int, m: int, imm5: int) -> None:
        _low(d, m)
        check("a shift", imm5, range(1, 32))
        self._one(f"{text} {name(d)}, {name(m)}, #{imm5}", opcode | imm5 << 6 | m << 3 | d)

    def lsls(self, d: int, m: int, imm5: int) -> None:
        self._shift("lsls", 0x0000, d, m, imm5)

    def lsrs(self, d: int, m: int, imm5: int) -> None:
        self._shift("lsrs", 0x0800, d, m, imm5)

    def asrs(self, d: int, m: int, imm5: int) -> None:
        self._shift("asrs", 0x1000, d, m, imm5)

    def uxtb(self, d: int, m: int) -> None:
        self._logic("uxtb", 0xB2C0, d, m)

    def cmp(self, n: int, m: int) -> None:
        if n < 8 and m < 8:
            self._one(f"cmp {name(n)}, {name(m)}", 0x4280 | m << 3 | n)
        else:
            self._one(f"cmp {name(n)}, {name(m)}", 0x4500 | (n & 8) << 4 | m << 3 | n & 7)

    def cmp_imm(self, n: int, imm8: int) -> None:
        _low(n)
        self._one(f"cmp {name(n)}, #{imm8}", 0x2800 | n << 8 | check("imm8", imm8, range(256)))

    # -- loads and stores ----------------------------------------------------------------------------------------------

    def _memory(self, text: str, opcode: int, t: int, n: int, offset: int, scale: int) -> None:
        _low(t, n)
        check("an offset", offset, range(0, 32 * scale, scale))
        self._one(f"{text} {name(t)}, [{name(n)}, #{offset}]", opcode | offset // scale << 6 | n << 3 | t)

    def ldr(self, t: int, n: int, offset: int = 0) -> None:
        if n == SP:
            check("an offset", offset, range(0, 1024, 4))
            _low(t)
            self._one(f"ldr {name(t)}, [sp, #{offset}]", 0x9800 | t << 8 | offset // 4)
        else:
            self._memory("ldr", 0x6800, t, n, offset, 4)

    def str_(self, t: int, n: int, offset: int = 0) -> None:
        if n == SP:
            check("an offset", offset, range(0, 1024, 4))
            _low(t)
            self._one(f"str {name(t)}, [sp, #{offset}]", 0x9000 | t << 8 | offset // 4)
        else:
            self._memory("str", 0x6000, t, n, offset, 4)

    def ldrb(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("ldrb", 0x7800, t, n, offset, 1)

    def strb(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("strb", 0x7000, t, n, offset, 1)

    def _indexed(self, text: str, opcode: int, t: int, n: int, m: int) -> None:
        _low(t, n, m)
        self._one(f"{text} {name(t)}, [{name(n)}, {name(m)}]", opcode | m << 6 | n << 3 | t)

    def ldr_reg(self, t: int, n: int, m: int) -> None:
        self._indexed("ldr", 0x5800, t, n, m)

    def ldrb_reg(self, t: int, n: int, m: int) -> None:
        self._indexed("ldrb", 0x5C00, t, n, m)

    def strb_reg(self, t: int, n: int, m: int) -> None:
        self._indexed("strb", 0x5400, t, n, m)

    def ldmia(self, n: int, *registers: int) -> None:
        """n ends after the last word."""
        _low(n, *registers)
        if n in registers:
            raise ValueError("the base register is also in the list")
        self._one(f"ldmia {name(n)}!, {_names(registers)}", 0xC800 | n << 8 | sum(1 << r for r in registers))

    # -- the stack -----------------------------------------------------------------------------------------------------

    def push(self, *registers: int) -> None:
        """Low registers, and lr."""
        _low(*(r for r in registers if r != LR))
        self._one(f"push {_names(registers)}", 0xB400 | sum(1 << r if r != LR else 0x100 for r in registers))

    def pop(self, *registers: int) -> None:
        """Low registers, and pc."""
        _low(*(r for r in registers if r != PC))
        self._one(f"pop {_names(registers)}", 0xBC00 | sum(1 << r if r != PC else 0x100 for r in registers))

    def sub_sp(self, size: int) -> None:
        """At most 508 bytes per instruction."""
        while size:
            part = min(size, 508)
            check("a frame", part, range(0, 512, 4))
            self._one(f"sub sp, #{part}", 0xB080 | part // 4)
            size -= part

    def add_sp(self, size: int) -> None:
        while size:
            part = min(size, 508)
            check("a frame", part, range(0, 512, 4))
            self._one(f"add sp, #{part}", 0xB000 | part // 4)
            size -= part

    def add_from_sp(self, d: int, offset: int) -> None:
        """d = sp + offset."""
        _low(d)
        check("an offset", offset, range(0, 1024, 4))
        self._one(f"add {name(d)}, sp, #{offset}", 0xA800 | d << 8 | offset // 4)

    # -- branches ------------------------------------------------------------------------------------------------------

    def b(self, target: str) -> None:
        """Up to 2 KB away."""

        def encode(distance: int) -> bytes:
            check("a branch", distance - 4, range(-2048, 2047, 2))
            return _halves(0xE000 | (distance - 4 >> 1) & 0x7FF)

        self.branch("b", 2, target, encode)

    def b_if(self, condition: str, target: str) -> None:
        """Up to 254 bytes away."""

        def encode(distance: int) -> bytes:
            check("a branch", distance - 4, range(-256, 255, 2))
            return _halves(0xD000 | CONDITIONS[condition] << 8 | (distance - 4 >> 1) & 0xFF)

        self.branch(f"b{condition}", 2, target, encode)


class ThumbDsp(Thumb):
    """ARMv7E-M: everything of ARMv6-M, wide encodings, and the DSP extension."""

    def _two(self, text: str, first: int, second: int) -> None:
        self.emit(text, _halves(first, second))

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def add_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"add.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEB00 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def sub_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"sub.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEBA0 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def rsb_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        """d = (m << lsl) - n."""
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"rsb {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEBC0 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
        )

    def orr_w(self, d: int, n: int, m: int, lsl: int = 0) -> None:
        shift = f", lsl #{lsl}" if lsl else ""
        self._two(
            f"orr.w {name(d)}, {name(n)}, {name(m)}{shift}",
            0xEA40 | n,
            (lsl >> 2) << 12 | d << 8 | (lsl & 3) << 6 | m,
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

    def uqadd8(self, d: int, n: int, m: int) -> None:
        self._bytes("uqadd8", 0xFA80, 0xF050, d, n, m)

    def uqsub8(self, d: int, n: int, m: int) -> None:
        self._bytes("uqsub8", 0xFAC0, 0xF050, d, n, m)

    def sel(self, d: int, n: int, m: int) -> None:
        self._bytes("sel", 0xFAA0, 0xF080, d, n, m)

    def usat(self, d: int, bits: int, n: int) -> None:
        """Clamp to 0 … 2**bits - 1."""
        self._two(f"usat {name(d)}, #{bits}, {name(n)}", 0xF380 | n, d << 8 | check("bits", bits, range(32)))

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

    def ldr_index(self, t: int, n: int, m: int, lsl: int = 0) -> None:
        self._two(
            f"ldr.w {name(t)}, [{name(n)}, {name(m)}, lsl #{lsl}]",
            0xF850 | n,
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
            f"ldmia.w {name(n)}{mark}, {_names(registers)}",
            0xE890 | (0x20 if writeback else 0) | n,
            sum(1 << r for r in registers),
        )

    def push_w(self, *registers: int) -> None:
        self._two(f"push.w {_names(registers)}", 0xE92D, sum(1 << r for r in registers))

    def pop_w(self, *registers: int) -> None:
        self._two(f"pop.w {_names(registers)}", 0xE8BD, sum(1 << r for r in registers))

    # -- branches ------------------------------------------------------------------------------------------------------

    def b_if_w(self, condition: str, target: str) -> None:
        """Up to 1 MB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-(1 << 20), 1 << 20, 2))
            sign, j2, j1 = to >> 20 & 1, to >> 19 & 1, to >> 18 & 1
            return _halves(
                0xF000 | sign << 10 | CONDITIONS[condition] << 6 | to >> 12 & 0x3F,
                0x8000 | j1 << 13 | j2 << 11 | to >> 1 & 0x7FF,
            )

        self.branch(f"b{condition}.w", 4, target, encode)

    def b_w(self, target: str) -> None:
        """Up to 16 MB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-(1 << 24), 1 << 24, 2))
            sign, i1, i2 = to >> 24 & 1, to >> 23 & 1, to >> 22 & 1
            j1, j2 = (1 - i1) ^ sign, (1 - i2) ^ sign
            return _halves(0xF000 | sign << 10 | to >> 12 & 0x3FF, 0x9000 | j1 << 13 | j2 << 11 | to >> 1 & 0x7FF)

        self.branch("b.w", 4, target, encode)
