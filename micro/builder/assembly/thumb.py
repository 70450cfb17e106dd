"""Thumb: the instructions of ARMv6-M (Cortex-M0, M0+) that kernels need. thumb_dsp.py has those of ARMv7E-M.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .assembler import Assembler, check

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP, LR, PC = range(16)

_CONDITIONS = "eq ne cs cc mi pl vs vc hi ls ge lt gt le"
CONDITIONS = {condition: k for k, condition in enumerate(_CONDITIONS.split()) if condition[0] != "v"}

_NAMES = [*(f"r{k}" for k in range(13)), "sp", "lr", "pc"]


def name(register: int) -> str:
    """A register's name."""
    return _NAMES[register]


def names(registers: Sequence[int]) -> str:
    return "{" + ", ".join(map(name, sorted(registers))) + "}"


def halves(*halves: int) -> bytes:
    return b"".join(h.to_bytes(2, "little") for h in halves)


def far_branch(kind: int, reach: int) -> Callable[[int], bytes]:
    """The encoding of a branch of two halves. kind: bits of the second one; reach: how far away it is at most."""

    def encode(distance: int) -> bytes:
        to = check("a branch", distance - 4, range(-reach, reach, 2))
        sign, i1, i2 = to >> 24 & 1, to >> 23 & 1, to >> 22 & 1
        j1, j2 = (1 - i1) ^ sign, (1 - i2) ^ sign
        return halves(0xF000 | sign << 10 | to >> 12 & 0x3FF, kind | j1 << 13 | j2 << 11 | to >> 1 & 0x7FF)

    return encode


def _low(*registers: int) -> None:
    for r in registers:
        check("a low register", r, range(8))


def _pair(text: str, opcode: int) -> Callable[[Thumb, int, int], None]:
    """An instruction of two low registers."""

    def append(self: Thumb, d: int, m: int) -> None:
        _low(d, m)
        self._one(f"{text} {name(d)}, {name(m)}", opcode | m << 3 | d)

    return append


def _shift(text: str, opcode: int) -> Callable[[Thumb, int, int, int], None]:
    """A shift by a constant."""

    def append(self: Thumb, d: int, m: int, imm5: int) -> None:
        _low(d, m)
        check("a shift", imm5, range(1, 32))
        self._one(f"{text} {name(d)}, {name(m)}, #{imm5}", opcode | imm5 << 6 | m << 3 | d)

    return append


def _indexed(text: str, opcode: int) -> Callable[[Thumb, int, int, int], None]:
    """A load or store at n + m."""

    def append(self: Thumb, t: int, n: int, m: int) -> None:
        _low(t, n, m)
        self._one(f"{text} {name(t)}, [{name(n)}, {name(m)}]", opcode | m << 6 | n << 3 | t)

    return append


class Thumb(Assembler):
    """ARMv6-M."""

    def _one(self, text: str, half: int) -> None:
        self.emit(text, halves(half))

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

    adcs = _pair("adcs", 0x4140)
    ands = _pair("ands", 0x4000)
    eors = _pair("eors", 0x4040)
    orrs = _pair("orrs", 0x4300)
    bics = _pair("bics", 0x4380)
    mvns = _pair("mvns", 0x43C0)
    asrs_reg = _pair("asrs", 0x4100)
    lsls_reg = _pair("lsls", 0x4080)
    sxth = _pair("sxth", 0xB200)
    uxtb = _pair("uxtb", 0xB2C0)
    lsls = _shift("lsls", 0x0000)
    lsrs = _shift("lsrs", 0x0800)
    asrs = _shift("asrs", 0x1000)

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

    def _word(self, text: str, opcode: int, t: int, n: int, offset: int) -> None:
        if n != SP:
            self._memory(text, opcode, t, n, offset, 4)
            return
        check("an offset", offset, range(0, 1024, 4))
        _low(t)
        self._one(f"{text} {name(t)}, [sp, #{offset}]", 0x3000 + opcode | t << 8 | offset // 4)

    def ldr(self, t: int, n: int, offset: int = 0) -> None:
        self._word("ldr", 0x6800, t, n, offset)

    def str_(self, t: int, n: int, offset: int = 0) -> None:
        self._word("str", 0x6000, t, n, offset)

    def ldrb(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("ldrb", 0x7800, t, n, offset, 1)

    def ldrh(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("ldrh", 0x8800, t, n, offset, 2)

    def strb(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("strb", 0x7000, t, n, offset, 1)

    ldr_reg = _indexed("ldr", 0x5800)
    ldrsh_reg = _indexed("ldrsh", 0x5E00)
    ldrb_reg = _indexed("ldrb", 0x5C00)
    strb_reg = _indexed("strb", 0x5400)

    def _several(self, text: str, opcode: int, n: int, registers: Sequence[int]) -> None:
        _low(n, *registers)
        if n in registers:
            raise ValueError("the base register is also in the list")
        self._one(f"{text} {name(n)}!, {names(registers)}", opcode | n << 8 | sum(1 << r for r in registers))

    def ldmia(self, n: int, *registers: int) -> None:
        """n ends after the last word."""
        self._several("ldmia", 0xC800, n, registers)

    def ldmia_over(self, n: int, *registers: int) -> None:
        """n is one of them."""
        _low(n, *registers)
        if n not in registers:
            raise ValueError("the base register is not in the list")
        self._one(f"ldmia {name(n)}, {names(registers)}", 0xC800 | n << 8 | sum(1 << r for r in registers))

    def stmia(self, n: int, *registers: int) -> None:
        """n ends after the last word."""
        self._several("stmia", 0xC000, n, registers)

    # -- the stack -----------------------------------------------------------------------------------------------------

    def push(self, *registers: int) -> None:
        """Low registers, and lr."""
        _low(*(r for r in registers if r != LR))
        self._one(f"push {names(registers)}", 0xB400 | sum(1 << r if r != LR else 0x100 for r in registers))

    def pop(self, *registers: int) -> None:
        """Low registers, and pc."""
        _low(*(r for r in registers if r != PC))
        self._one(f"pop {names(registers)}", 0xBC00 | sum(1 << r if r != PC else 0x100 for r in registers))

    def _move_sp(self, text: str, opcode: int, size: int) -> None:
        while size:
            part = min(size, 508)
            check("a frame", part, range(0, 512, 4))
            self._one(f"{text} sp, #{part}", opcode | part // 4)
            size -= part

    def sub_sp(self, size: int) -> None:
        """At most 508 bytes per instruction."""
        self._move_sp("sub", 0xB080, size)

    def add_sp(self, size: int) -> None:
        self._move_sp("add", 0xB000, size)

    def add_from_sp(self, d: int, offset: int) -> None:
        """d = sp + offset."""
        _low(d)
        check("an offset", offset, range(0, 1024, 4))
        self._one(f"add {name(d)}, sp, #{offset}", 0xA800 | d << 8 | offset // 4)

    # -- other cores ---------------------------------------------------------------------------------------------------

    def wfe(self) -> None:
        """Sleep until an event, if there was none."""
        self._one("wfe", 0xBF20)

    def sev(self) -> None:
        """An event for every core."""
        self._one("sev", 0xBF40)

    def dmb(self) -> None:
        """Memory accesses before it come before those after it."""
        self.emit("dmb", halves(0xF3BF, 0x8F5F))

    def dsb(self) -> None:
        """Memory accesses before it are complete."""
        self.emit("dsb", halves(0xF3BF, 0x8F4F))

    # -- branches ------------------------------------------------------------------------------------------------------

    def bx(self, m: int) -> None:
        """To the address in a register, its lowest bit set."""
        self._one(f"bx {name(m)}", 0x4700 | m << 3)

    def blx(self, m: int) -> None:
        """Call the address in a low register, its lowest bit set. Changes lr."""
        _low(m)
        self._one(f"blx {name(m)}", 0x4780 | m << 3)

    def bl(self, target: str) -> None:
        """Up to 4 MB away. Changes lr."""
        self.branch("bl", 4, target, far_branch(0xD000, 1 << 22))

    def b(self, target: str) -> None:
        """Up to 2 KB away."""

        def encode(distance: int) -> bytes:
            check("a branch", distance - 4, range(-2048, 2047, 2))
            return halves(0xE000 | (distance - 4 >> 1) & 0x7FF)

        self.branch("b", 2, target, encode)

    def b_if(self, condition: str, target: str) -> None:
        """Up to 254 bytes away."""

        def encode(distance: int) -> bytes:
            check("a branch", distance - 4, range(-256, 255, 2))
            return halves(0xD000 | CONDITIONS[condition] << 8 | (distance - 4 >> 1) & 0xFF)

        self.branch(f"b{condition}", 2, target, encode)
