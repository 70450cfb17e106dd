"""The scalar machine on RISC-V. Only caller-saved registers are used; t6 is a temporary for operations of two
instructions."""

from __future__ import annotations

from collections.abc import Mapping

from .frame import Frame
from .rv32 import A0, A1, A2, A3, A4, A5, A6, A7, SP, T0, T1, T2, T3, T4, T6, ZERO, Rv32
from .scalar import BUFFERS, Scalar

REGISTERS = (A0, A1, A2, A4, A5, A6, A7, T0, T1, T2, T3, T4)
"""The registers of V0 to V7 and H0 to H3."""

MIRRORED = {"gt": "lt", "le": "ge"}


class ScalarRv32(Rv32, Scalar):
    """See scalar.Scalar."""

    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        # The calling convention requires a stack pointer that is a multiple of 16.
        self.addi(SP, SP, -f.size // 16 * 16)
        for k, buffer in enumerate((A0, A1, A2)):
            self.lw(buffer, A3, 4 * k)
            self.srai(buffer, buffer, 1)
            self.slli(buffer, buffer, 2)
        self.lw(A4, A3, 12)
        self.srli(A4, A4, 1)
        self.add(A1, A1, A4)
        self.addi(T0, SP, 0)
        self.addi(T1, SP, 4 * len(f.fields))
        self.label("copy")
        self.lw(A4, A3, 16)
        self.srai(A4, A4, 1)
        self.sw(A4, T0)
        self.addi(A3, A3, 4)
        self.addi(T0, T0, 4)
        self.b_if("ne", T0, T1, "copy")
        for field, which in bases.items():
            self.lw(A4, SP, f[field])
            self.add(A4, A4, (A0, A1, A2)[BUFFERS.index(which)])
            self.sw(A4, SP, f[field])

    def leave(self, f: Frame) -> None:
        self.addi(SP, SP, -(-f.size // 16) * 16)
        self.addi(A0, ZERO, 1)
        self.ret()

    def get(self, d: int, place: int) -> None:
        self.lw(REGISTERS[d], SP, place)

    def put(self, d: int, place: int) -> None:
        self.sw(REGISTERS[d], SP, place)

    def copy(self, d: int, m: int) -> None:
        self.addi(REGISTERS[d], REGISTERS[m], 0)

    def number(self, d: int, value: int) -> None:
        self.addi(REGISTERS[d], ZERO, value)

    def plus(self, d: int, m: int) -> None:
        self.add(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def minus(self, d: int, m: int) -> None:
        self.sub(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def step(self, d: int, value: int) -> None:
        self.addi(REGISTERS[d], REGISTERS[d], value)

    def times(self, d: int, m: int) -> None:
        self.mul(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def bitwise_and(self, d: int, m: int) -> None:
        self.and_(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def left(self, d: int, bits: int) -> None:
        self.slli(REGISTERS[d], REGISTERS[d], bits)

    def right(self, d: int, m: int) -> None:
        self.sra(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def byte(self, d: int, base: int, offset: int = 0) -> None:
        self.lbu(REGISTERS[d], REGISTERS[base], offset)

    def byte_at(self, d: int, base: int, index: int) -> None:
        self.add(T6, REGISTERS[base], REGISTERS[index])
        self.lbu(REGISTERS[d], T6)

    def word(self, d: int, base: int, offset: int = 0) -> None:
        self.lw(REGISTERS[d], REGISTERS[base], offset)

    def store_byte(self, d: int, base: int, offset: int = 0) -> None:
        self.sb(REGISTERS[d], REGISTERS[base], offset)

    def go(self, target: str) -> None:
        self.j(target)

    def go_if(self, condition: str, n: int, m: int, target: str, far: bool = False) -> None:
        self.b_if(condition, REGISTERS[n], REGISTERS[m], target)

    def go_if_zero(self, condition: str, n: int, target: str, far: bool = False) -> None:
        if condition in MIRRORED:
            self.b_if(MIRRORED[condition], ZERO, REGISTERS[n], target)
        else:
            self.b_if(condition, REGISTERS[n], ZERO, target)
