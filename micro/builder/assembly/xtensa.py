"""Xtensa: the instructions of the core and of the 32-bit multiplication that kernels need, in 24 bits each.

Encodings: Xtensa Instruction Set Architecture Reference Manual, chapter 6. The 16-bit forms are not used.
"""

from __future__ import annotations

from .assembler import Assembler, check

A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15 = range(16)

BRANCHES = {"eq": 1, "ne": 9, "lt": 2, "ge": 10}
ZERO_BRANCHES = {"eq": 0, "ne": 1, "lt": 2, "ge": 3}


class Xtensa(Assembler):
    """d: the result; n, m: operands; t: what is loaded or stored."""

    def _emit(self, text: str, code: int) -> None:
        self.emit(text, code.to_bytes(3, "little"))

    def _rrr(self, text: str, op2: int, op1: int, r: int, s: int, t: int) -> None:
        self._emit(text, op2 << 20 | op1 << 16 | r << 12 | s << 8 | t << 4)

    def add(self, d: int, n: int, m: int) -> None:
        self._rrr(f"add a{d}, a{n}, a{m}", 8, 0, d, n, m)

    def sub(self, d: int, n: int, m: int) -> None:
        self._rrr(f"sub a{d}, a{n}, a{m}", 12, 0, d, n, m)

    def and_(self, d: int, n: int, m: int) -> None:
        self._rrr(f"and a{d}, a{n}, a{m}", 1, 0, d, n, m)

    def or_(self, d: int, n: int, m: int) -> None:
        self._rrr(f"or a{d}, a{n}, a{m}", 2, 0, d, n, m)

    def mull(self, d: int, n: int, m: int) -> None:
        """The lower word of the product."""
        self._rrr(f"mull a{d}, a{n}, a{m}", 8, 2, d, n, m)

    def ssr(self, n: int) -> None:
        """The shift of `sra`."""
        self._rrr(f"ssr a{n}", 4, 0, 0, n, 0)

    def sra(self, d: int, m: int) -> None:
        self._rrr(f"sra a{d}, a{m}", 11, 1, d, 0, m)

    def slli(self, d: int, n: int, imm5: int) -> None:
        check("a shift", imm5, range(1, 32))
        self._rrr(f"slli a{d}, a{n}, {imm5}", 32 - imm5 >> 4, 1, d, n, 32 - imm5 & 15)

    def srai(self, d: int, m: int, imm5: int) -> None:
        check("a shift", imm5, range(32))
        self._rrr(f"srai a{d}, a{m}, {imm5}", 2 | imm5 >> 4, 1, d, imm5 & 15, m)

    def _rri8(self, text: str, kind: int, t: int, s: int, imm8: int) -> None:
        self._emit(text, (imm8 & 255) << 16 | kind << 12 | s << 8 | t << 4 | 2)

    def addi(self, d: int, n: int, value: int) -> None:
        check("imm8", value, range(-128, 128))
        self._rri8(f"addi a{d}, a{n}, {value}", 12, d, n, value)

    def addmi(self, d: int, n: int, pages: int) -> None:
        """d = n + 256 * pages."""
        check("imm8", pages, range(-128, 128))
        self._rri8(f"addmi a{d}, a{n}, {256 * pages}", 13, d, n, pages)

    def movi(self, d: int, imm12: int) -> None:
        check("imm12", imm12, range(-2048, 2048))
        self._rri8(f"movi a{d}, {imm12}", 10, d, imm12 >> 8 & 15, imm12)

    def _memory(self, text: str, kind: int, t: int, n: int, offset: int, scale: int) -> None:
        check("an offset", offset, range(0, 256 * scale, scale))
        self._rri8(f"{text} a{t}, a{n}, {offset}", kind, t, n, offset // scale)

    def l8ui(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("l8ui", 0, t, n, offset, 1)

    def l32i(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("l32i", 2, t, n, offset, 4)

    def s8i(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("s8i", 4, t, n, offset, 1)

    def s32i(self, t: int, n: int, offset: int = 0) -> None:
        self._memory("s32i", 6, t, n, offset, 4)

    def entry(self, size: int) -> None:
        """The entry of a function with register windows: allocates a frame of `size` bytes."""
        check("a frame", size, range(0, 32768, 8))
        self._emit(f"entry a1, {size}", size // 8 << 12 | 1 << 8 | 0x36)

    def ret(self) -> None:
        self._emit("ret", 0x80)

    def retw(self) -> None:
        """The return of such a function."""
        self._emit("retw", 0x90)

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
