"""The scalar machine on RISC-V. Only caller-saved registers are used; t6 is a temporary for operations of two
instructions."""

from __future__ import annotations

from collections.abc import Mapping

from .driver import DRIVER
from .frame import Frame
from .rv32 import A0, A1, A2, A4, A5, A6, A7, SP, T0, T1, T2, T3, T4, T6, ZERO, Rv32
from .scalar import BUFFERS, Scalar

REGISTERS = (A0, A1, A2, A4, A5, A6, A7, T0, T1, T2, T3, T4)
"""The registers of V0 to V7 and H0 to H3."""

MIRRORED = {"gt": "lt", "le": "ge"}


class ScalarRv32(Rv32, Scalar):
    """See scalar.Scalar."""

    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        for field, which in bases.items():
            self.lw(A4, SP, f[field])
            self.add(A4, A4, (A0, A1, A2)[BUFFERS.index(which)])
            self.sw(A4, SP, f[field])

    def leave(self, f: Frame) -> None:
        self.j(DRIVER)

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

    def left_from(self, d: int, m: int, bits: int) -> None:
        self.slli(REGISTERS[d], REGISTERS[m], bits)

    def right(self, d: int, m: int) -> None:
        self.sra(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def right_by(self, d: int, m: int, bits: int) -> None:
        self.srai(REGISTERS[d], REGISTERS[m], bits)

    def low_byte(self, d: int) -> None:
        self.andi(REGISTERS[d], REGISTERS[d], 255)

    def saturate(self, d: int) -> None:
        self.srai(REGISTERS[d], REGISTERS[d], 31)
        self.addi(REGISTERS[d], REGISTERS[d], 1)
        self.sub(REGISTERS[d], ZERO, REGISTERS[d])
        self.low_byte(d)

    def byte(self, d: int, base: int, offset: int = 0) -> None:
        self.lbu(REGISTERS[d], REGISTERS[base], offset)

    def byte_at(self, d: int, base: int, index: int) -> None:
        self.add(T6, REGISTERS[base], REGISTERS[index])
        self.lbu(REGISTERS[d], T6)

    def word(self, d: int, base: int, offset: int = 0) -> None:
        self.lw(REGISTERS[d], REGISTERS[base], offset)

    def store_byte(self, d: int, base: int, offset: int = 0) -> None:
        self.sb(REGISTERS[d], REGISTERS[base], offset)

    def store_byte_at(self, d: int, base: int, index: int) -> None:
        self.add(T6, REGISTERS[base], REGISTERS[index])
        self.sb(REGISTERS[d], T6)

    def store_word(self, d: int, base: int, offset: int = 0) -> None:
        self.sw(REGISTERS[d], REGISTERS[base], offset)

    def go(self, target: str) -> None:
        self.j(target)

    def go_if(self, condition: str, n: int, m: int, target: str, far: bool = False) -> None:
        self.b_if(condition, REGISTERS[n], REGISTERS[m], target)

    def go_if_zero(self, condition: str, n: int, target: str, far: bool = False) -> None:
        if condition in MIRRORED:
            self.b_if(MIRRORED[condition], ZERO, REGISTERS[n], target)
        else:
            self.b_if(condition, REGISTERS[n], ZERO, target)
