"""Xtensa: the instructions of the core and of the 32-bit multiplication that kernels need, in 24 bits each.

Encodings: Xtensa Instruction Set Architecture Reference Manual, chapter 6. The 16-bit forms are not used.
"""

from __future__ import annotations

from .assembler import Assembler, check, instruction

A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15 = range(16)

WORDS = range(0, 1024, 4)

BRANCHES = {"eq": 1, "ne": 9, "lt": 2, "ge": 10}
ZERO_BRANCHES = {"eq": 0, "ne": 1, "lt": 2, "ge": 3}


class Xtensa(Assembler):
    """d: the result; n, m: operands; t: what is loaded or stored."""

    unit = 3

    def register(self, number: int) -> str:
        return f"a{number}"

    def _emit(self, text: str, code: int) -> None:
        self.emit(text, code.to_bytes(3, "little"))

    add = instruction("add {d}, {n}, {m}", "10000000 dddd nnnn mmmm 0000")
    sub = instruction("sub {d}, {n}, {m}", "11000000 dddd nnnn mmmm 0000")
    and_ = instruction("and {d}, {n}, {m}", "00010000 dddd nnnn mmmm 0000")
    or_ = instruction("or {d}, {n}, {m}", "00100000 dddd nnnn mmmm 0000")
    mull = instruction("mull {d}, {n}, {m}", "10000010 dddd nnnn mmmm 0000")  # the lower word of the product
    ssr = instruction("ssr {n}", "010000000000 nnnn 00000000")  # the shift of `sra`
    sra = instruction("sra {d}, {m}", "10110001 dddd 0000 mmmm 0000")
    srai = instruction("srai {d}, {m}, {imm5}", "001 i 0001 dddd iiii mmmm 0000")
    addi = instruction("addi {d}, {n}, {value}", "vvvvvvvv 1100 nnnn dddd 0010", range(-128, 128))
    l8ui = instruction("l8ui {t}, {n}, {offset}", "oooooooo 0000 nnnn tttt 0010")
    l32i = instruction("l32i {t}, {n}, {offset}", "oooooooo 0010 nnnn tttt 0010", WORDS)
    s8i = instruction("s8i {t}, {n}, {offset}", "oooooooo 0100 nnnn tttt 0010")
    s32i = instruction("s32i {t}, {n}, {offset}", "oooooooo 0110 nnnn tttt 0010", WORDS)
    ret = instruction("ret", "000000000000000010000000")
    retw = instruction("retw", "000000000000000010010000")  # of such a function
    # of a function with register windows: allocates a frame
    entry = instruction("entry a1, {size}", "ssssssssssss 000100110110", range(0, 32768, 8))

    def slli(self, d: int, n: int, imm5: int) -> None:
        check("a shift", imm5, range(1, 32))
        code = (32 - imm5 >> 4) << 20 | 1 << 16 | d << 12 | n << 8 | (32 - imm5 & 15) << 4
        self._emit(f"slli a{d}, a{n}, {imm5}", code)

    def _rri8(self, text: str, kind: int, t: int, s: int, imm8: int) -> None:
        self._emit(text, (imm8 & 255) << 16 | kind << 12 | s << 8 | t << 4 | 2)

    def addmi(self, d: int, n: int, pages: int) -> None:
        """d = n + 256 * pages."""
        check("imm8", pages, range(-128, 128))
        self._rri8(f"addmi a{d}, a{n}, {256 * pages}", 13, d, n, pages)

    def movi(self, d: int, imm12: int) -> None:
        check("imm12", imm12, range(-2048, 2048))
        self._rri8(f"movi a{d}, {imm12}", 10, d, imm12 >> 8 & 15, imm12)

    def j(self, target: str) -> None:
        """Up to 128 KB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-(1 << 17), 1 << 17))
            return ((to & 0x3FFFF) << 6 | 6).to_bytes(3, "little")

        self.branch("j", 3, target, encode)

    def b_if(self, condition: str, n: int, m: int, target: str) -> None:
        """Up to 128 bytes away. condition: a key of BRANCHES, signed."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-128, 128))
            return ((to & 255) << 16 | BRANCHES[condition] << 12 | n << 8 | m << 4 | 7).to_bytes(3, "little")

        self.branch(f"b{condition} a{n}, a{m},", 3, target, encode)

    def b_if_zero(self, condition: str, n: int, target: str) -> None:
        """Up to 2 KB away. condition: a key of ZERO_BRANCHES, signed."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance - 4, range(-2048, 2048))
            return ((to & 0xFFF) << 12 | n << 8 | ZERO_BRANCHES[condition] << 6 | 0x16).to_bytes(3, "little")

        self.branch(f"b{condition}z a{n},", 3, target, encode)
