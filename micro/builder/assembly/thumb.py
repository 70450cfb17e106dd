"""Thumb: the instructions of ARMv6-M (Cortex-M0, M0+) that kernels need. thumb_dsp.py has those of ARMv7E-M.

Encodings: ARMv7-M Architecture Reference Manual (ARM DDI 0403), chapter A7.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .assembler import Assembler, check, instruction

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


SHIFTS, WORDS = range(1, 32), range(0, 1024, 4)


class Thumb(Assembler):
    """ARMv6-M."""

    unit = 2

    def register(self, number: int) -> str:
        return name(number)

    def _one(self, text: str, half: int) -> None:
        self.emit(text, halves(half))

    # -- moves ---------------------------------------------------------------------------------------------------------

    mov = instruction("mov {d}, {m}", "01000110 d mmmm ddd")  # any registers; no flags
    movs = instruction("movs {d}, #{imm8}", "00100 ddd iiiiiiii")

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    adds = instruction("adds {d}, {n}, {m}", "0001100 mmm nnn ddd")
    subs = instruction("subs {d}, {n}, {m}", "0001101 mmm nnn ddd")
    adds_imm = instruction("adds {d}, #{imm8}", "00110 ddd iiiiiiii")
    subs_imm = instruction("subs {d}, #{imm8}", "00111 ddd iiiiiiii")
    add = instruction("add {d}, {m}", "01000100 d mmmm ddd")  # d += m, any registers; no flags
    muls = instruction("muls {d}, {n}, {d}", "0100001101 nnn ddd")  # d *= n
    rsbs = instruction("rsbs {d}, {n}, #0", "0100001001 nnn ddd")  # d = -n
    adcs = instruction("adcs {d}, {m}", "0100000101 mmm ddd")
    ands = instruction("ands {d}, {m}", "0100000000 mmm ddd")
    eors = instruction("eors {d}, {m}", "0100000001 mmm ddd")
    orrs = instruction("orrs {d}, {m}", "0100001100 mmm ddd")
    bics = instruction("bics {d}, {m}", "0100001110 mmm ddd")
    mvns = instruction("mvns {d}, {m}", "0100001111 mmm ddd")
    asrs_reg = instruction("asrs {d}, {m}", "0100000100 mmm ddd")
    lsls_reg = instruction("lsls {d}, {m}", "0100000010 mmm ddd")
    sxth = instruction("sxth {d}, {m}", "1011001000 mmm ddd")
    uxtb = instruction("uxtb {d}, {m}", "1011001011 mmm ddd")
    lsls = instruction("lsls {d}, {m}, #{imm5}", "00000 iiiii mmm ddd", SHIFTS)
    lsrs = instruction("lsrs {d}, {m}, #{imm5}", "00001 iiiii mmm ddd", SHIFTS)
    asrs = instruction("asrs {d}, {m}, #{imm5}", "00010 iiiii mmm ddd", SHIFTS)
    cmp_imm = instruction("cmp {n}, #{imm8}", "00101 nnn iiiiiiii")
    _cmp_low = instruction("cmp {n}, {m}", "0100001010 mmm nnn")
    _cmp_any = instruction("cmp {n}, {m}", "01000101 n mmmm nnn")

    def cmp(self, n: int, m: int) -> None:
        (self._cmp_low if n < 8 and m < 8 else self._cmp_any)(n, m)

    # -- loads and stores ----------------------------------------------------------------------------------------------

    _ldr = instruction("ldr {t}, [{n}, #{offset}]", "01101 ooooo nnn ttt", range(0, 128, 4))
    _str = instruction("str {t}, [{n}, #{offset}]", "01100 ooooo nnn ttt", range(0, 128, 4))
    _ldr_sp = instruction("ldr {t}, [sp, #{offset}]", "10011 ttt oooooooo", WORDS)
    _str_sp = instruction("str {t}, [sp, #{offset}]", "10010 ttt oooooooo", WORDS)
    ldrb = instruction("ldrb {t}, [{n}, #{offset}]", "01111 ooooo nnn ttt")
    ldrh = instruction("ldrh {t}, [{n}, #{offset}]", "10001 ooooo nnn ttt", range(0, 64, 2))
    strb = instruction("strb {t}, [{n}, #{offset}]", "01110 ooooo nnn ttt")
    ldr_reg = instruction("ldr {t}, [{n}, {m}]", "0101100 mmm nnn ttt")
    ldrsh_reg = instruction("ldrsh {t}, [{n}, {m}]", "0101111 mmm nnn ttt")
    ldrb_reg = instruction("ldrb {t}, [{n}, {m}]", "0101110 mmm nnn ttt")
    strb_reg = instruction("strb {t}, [{n}, {m}]", "0101010 mmm nnn ttt")
    add_from_sp = instruction("add {d}, sp, #{offset}", "10101 ddd oooooooo", WORDS)  # d = sp + offset

    def ldr(self, t: int, n: int, offset: int = 0) -> None:
        self._ldr_sp(t, offset) if n == SP else self._ldr(t, n, offset)

    def str_(self, t: int, n: int, offset: int = 0) -> None:
        self._str_sp(t, offset) if n == SP else self._str(t, n, offset)

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

    # -- other cores ---------------------------------------------------------------------------------------------------

    wfe = instruction("wfe", "1011111100100000")  # sleep until an event, if there was none
    sev = instruction("sev", "1011111101000000")  # an event for every core
    dmb = instruction("dmb", "11110011101111111000111101011111")  # memory accesses before it come before those after it
    dsb = instruction("dsb", "11110011101111111000111101001111")  # memory accesses before it are complete

    # -- branches ------------------------------------------------------------------------------------------------------

    bx = instruction("bx {m}", "010001110 mmmm 000")  # to the address in a register, its lowest bit set
    # call the address in a low register, its lowest bit set; changes lr
    blx = instruction("blx {m}", "0100011110 mmm 000")

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
