"""RISC-V: the instructions of RV32I and M that kernels need.

Encodings: The RISC-V Instruction Set Manual, volume I, chapters 2 (RV32I) and 13 (M). Compressed forms are not used.
"""

from __future__ import annotations

from .assembler import Assembler, check, instruction

ZERO, RA, SP, GP, TP, T0, T1, T2, S0, S1, A0, A1, A2, A3, A4, A5, A6, A7 = range(18)
T3, T4, T5, T6 = range(28, 32)

_NAMES = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()

BRANCHES = {"eq": 0, "ne": 1, "lt": 4, "ge": 5}


def name(register: int) -> str:
    """A register's name."""
    return _NAMES[register]


SIGNED = range(-2048, 2048)


class Rv32(Assembler):
    """RV32IM. d: the result; n, m: operands."""

    unit = 4

    def register(self, number: int) -> str:
        return name(number)

    add = instruction("add {d}, {n}, {m}", "0000000 mmmmm nnnnn 000 ddddd 0110011")
    sub = instruction("sub {d}, {n}, {m}", "0100000 mmmmm nnnnn 000 ddddd 0110011")
    and_ = instruction("and {d}, {n}, {m}", "0000000 mmmmm nnnnn 111 ddddd 0110011")
    or_ = instruction("or {d}, {n}, {m}", "0000000 mmmmm nnnnn 110 ddddd 0110011")
    sll = instruction("sll {d}, {n}, {m}", "0000000 mmmmm nnnnn 001 ddddd 0110011")
    sra = instruction("sra {d}, {n}, {m}", "0100000 mmmmm nnnnn 101 ddddd 0110011")
    mul = instruction("mul {d}, {n}, {m}", "0000001 mmmmm nnnnn 000 ddddd 0110011")
    slli = instruction("slli {d}, {n}, {imm5}", "0000000 iiiii nnnnn 001 ddddd 0010011")
    srli = instruction("srli {d}, {n}, {imm5}", "0000000 iiiii nnnnn 101 ddddd 0010011")
    srai = instruction("srai {d}, {n}, {imm5}", "0100000 iiiii nnnnn 101 ddddd 0010011")
    addi = instruction("addi {d}, {n}, {imm12}", "iiiiiiiiiiii nnnnn 000 ddddd 0010011", SIGNED)
    andi = instruction("andi {d}, {n}, {imm12}", "iiiiiiiiiiii nnnnn 111 ddddd 0010011", SIGNED)
    # d = the program counter + 4096 * imm20
    auipc = instruction("auipc {d}, {imm20}", "iiiiiiiiiiiiiiiiiiii ddddd 0010111")
    lbu = instruction("lbu {t}, {offset}({n})", "oooooooooooo nnnnn 100 ttttt 0000011", SIGNED)
    lhu = instruction("lhu {t}, {offset}({n})", "oooooooooooo nnnnn 101 ttttt 0000011", SIGNED)
    lw = instruction("lw {t}, {offset}({n})", "oooooooooooo nnnnn 010 ttttt 0000011", SIGNED)
    sb = instruction("sb {t}, {offset}({n})", "ooooooo ttttt nnnnn 000 ooooo 0100011", SIGNED)
    sw = instruction("sw {t}, {offset}({n})", "ooooooo ttttt nnnnn 010 ooooo 0100011", SIGNED)
    jr = instruction("jr {n}", "000000000000 nnnnn 000000001100111")
    jalr = instruction("jalr {n}", "000000000000 nnnnn 000000011100111")  # call the address in a register; changes ra
    ret = instruction("ret", "00000000000000001000000001100111")

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
