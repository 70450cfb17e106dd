"""RISC-V: the instructions of RV32I and M that kernels need.

Encodings: The RISC-V Instruction Set Manual, volume I, chapters 2 (RV32I) and 13 (M). Compressed forms are not used.
"""

from __future__ import annotations

from collections.abc import Callable

from .assembler import Assembler, check

ZERO, RA, SP, GP, TP, T0, T1, T2, S0, S1, A0, A1, A2, A3, A4, A5, A6, A7 = range(18)
T3, T4, T5, T6 = range(28, 32)

_NAMES = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()

BRANCHES = {"eq": 0, "ne": 1, "lt": 4, "ge": 5}


def name(register: int) -> str:
    """A register's name."""
    return _NAMES[register]


def _three(text: str, funct7: int, funct3: int) -> Callable[[Rv32, int, int, int], None]:
    """An instruction of three registers."""

    def append(self: Rv32, d: int, n: int, m: int) -> None:
        code = funct7 << 25 | m << 20 | n << 15 | funct3 << 12 | d << 7 | 0x33
        self._emit(f"{text} {name(d)}, {name(n)}, {name(m)}", code)

    return append


def _shift(text: str, high: int, funct3: int) -> Callable[[Rv32, int, int, int], None]:
    """A shift by a constant."""

    def append(self: Rv32, d: int, n: int, imm5: int) -> None:
        check("a shift", imm5, range(32))
        code = high << 25 | imm5 << 20 | n << 15 | funct3 << 12 | d << 7 | 0x13
        self._emit(f"{text} {name(d)}, {name(n)}, {imm5}", code)

    return append


class Rv32(Assembler):
    """RV32IM. d: the result; n, m: operands."""

    def _emit(self, text: str, code: int) -> None:
        self.emit(text, code.to_bytes(4, "little"))

    add = _three("add", 0, 0)
    sub = _three("sub", 0x20, 0)
    and_ = _three("and", 0, 7)
    or_ = _three("or", 0, 6)
    sll = _three("sll", 0, 1)
    sra = _three("sra", 0x20, 5)
    mul = _three("mul", 1, 0)
    slli = _shift("slli", 0, 1)
    srli = _shift("srli", 0, 5)
    srai = _shift("srai", 0x20, 5)

    def addi(self, d: int, n: int, imm12: int) -> None:
        check("imm12", imm12, range(-2048, 2048))
        self._emit(f"addi {name(d)}, {name(n)}, {imm12}", (imm12 & 0xFFF) << 20 | n << 15 | d << 7 | 0x13)

    def andi(self, d: int, n: int, imm12: int) -> None:
        check("imm12", imm12, range(-2048, 2048))
        self._emit(f"andi {name(d)}, {name(n)}, {imm12}", (imm12 & 0xFFF) << 20 | n << 15 | 7 << 12 | d << 7 | 0x13)

    def auipc(self, d: int, imm20: int) -> None:
        """d = the program counter + 4096 * imm20."""
        check("imm20", imm20, range(1 << 20))
        self._emit(f"auipc {name(d)}, {imm20}", imm20 << 12 | d << 7 | 0x17)

    def _load(self, text: str, funct3: int, t: int, n: int, offset: int) -> None:
        check("an offset", offset, range(-2048, 2048))
        self._emit(
            f"{text} {name(t)}, {offset}({name(n)})", (offset & 0xFFF) << 20 | n << 15 | funct3 << 12 | t << 7 | 3
        )

    def lbu(self, t: int, n: int, offset: int = 0) -> None:
        self._load("lbu", 4, t, n, offset)

    def lhu(self, t: int, n: int, offset: int = 0) -> None:
        self._load("lhu", 5, t, n, offset)

    def lw(self, t: int, n: int, offset: int = 0) -> None:
        self._load("lw", 2, t, n, offset)

    def _store(self, text: str, funct3: int, t: int, n: int, offset: int) -> None:
        check("an offset", offset, range(-2048, 2048))
        code = (offset >> 5 & 0x7F) << 25 | t << 20 | n << 15 | funct3 << 12 | (offset & 31) << 7 | 0x23
        self._emit(f"{text} {name(t)}, {offset}({name(n)})", code)

    def sb(self, t: int, n: int, offset: int = 0) -> None:
        self._store("sb", 0, t, n, offset)

    def sw(self, t: int, n: int, offset: int = 0) -> None:
        self._store("sw", 2, t, n, offset)

    def jr(self, n: int) -> None:
        self._emit(f"jr {name(n)}", n << 15 | 0x67)

    def jalr(self, n: int) -> None:
        """Call the address in a register. Changes ra."""
        self._emit(f"jalr {name(n)}", n << 15 | 1 << 7 | 0x67)

    def ret(self) -> None:
        self._emit("ret", 0x00008067)

    def j(self, target: str) -> None:
        """Up to 1 MB away."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance, range(-(1 << 20), 1 << 20, 2))
            code = (to >> 20 & 1) << 31 | (to >> 1 & 0x3FF) << 21 | (to >> 11 & 1) << 20 | (to >> 12 & 0xFF) << 12
            return (code | 0x6F).to_bytes(4, "little")

        self.branch("j", 4, target, encode)

    def b_if(self, condition: str, n: int, m: int, target: str) -> None:
        """Up to 4 KB away. condition: a key of BRANCHES, signed."""

        def encode(distance: int) -> bytes:
            to = check("a branch", distance, range(-4096, 4096, 2))
            code = (to >> 12 & 1) << 31 | (to >> 5 & 0x3F) << 25 | m << 20 | n << 15 | BRANCHES[condition] << 12
            return (code | (to >> 1 & 15) << 8 | (to >> 11 & 1) << 7 | 0x63).to_bytes(4, "little")

        self.branch(f"b{condition} {name(n)}, {name(m)},", 4, target, encode)
