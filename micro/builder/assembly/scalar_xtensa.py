"""The scalar machine on Xtensa: with register windows (ESP32, ESP32-S3), and without (ESP8266)."""

from __future__ import annotations

from collections.abc import Mapping

from .frame import Frame
from .scalar import BUFFERS, Scalar
from .xtensa import A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, Xtensa

REGISTERS = (A2, A3, A4, A6, A7, A8, A9, A10, A11, A12, A13, A14)
"""The registers of V0 to V7 and H0 to H3; a15 is a temporary for operations of two instructions."""

SAVED = (A12, A13, A14, A15)
"""The registers that a function without windows must preserve."""

INVERSE = {"gt": "ge", "le": "lt"}
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class ScalarXtensa(Xtensa, Scalar):
    """See scalar.Scalar. Without windows."""

    def begin(self, f: Frame) -> None:
        """Allocate the frame."""
        self.addmi(A1, A1, -self._pages(f))
        for k, register in enumerate(SAVED):
            self.s32i(register, A1, f.size + 4 * k)

    def end(self, f: Frame) -> None:
        """Free it and return."""
        for k, register in enumerate(SAVED):
            self.l32i(register, A1, f.size + 4 * k)
        self.addmi(A1, A1, self._pages(f))
        self.ret()

    @staticmethod
    def _pages(f: Frame) -> int:
        return -(-(f.size + 4 * len(SAVED)) // 256)

    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        self.begin(f)
        for k, buffer in enumerate((A2, A3, A4)):
            self.l32i(buffer, A5, 4 * k)
            self.srai(buffer, buffer, 1)
            self.slli(buffer, buffer, 2)
        self.l32i(A6, A5, 12)
        self.srai(A6, A6, 1)
        self.add(A3, A3, A6)
        self.or_(A7, A1, A1)
        self.movi(A8, len(f.fields))
        self.label("copy")
        self.l32i(A6, A5, 16)
        self.srai(A6, A6, 1)
        self.s32i(A6, A7)
        self.addi(A5, A5, 4)
        self.addi(A7, A7, 4)
        self.addi(A8, A8, -1)
        self.b_if_zero("ne", A8, "copy")
        for field, which in bases.items():
            self.l32i(A6, A1, f[field])
            self.add(A6, A6, (A2, A3, A4)[BUFFERS.index(which)])
            self.s32i(A6, A1, f[field])

    def leave(self, f: Frame) -> None:
        self.movi(A2, 1)
        self.end(f)

    def get(self, d: int, place: int) -> None:
        self.l32i(REGISTERS[d], A1, place)

    def put(self, d: int, place: int) -> None:
        self.s32i(REGISTERS[d], A1, place)

    def copy(self, d: int, m: int) -> None:
        self.or_(REGISTERS[d], REGISTERS[m], REGISTERS[m])

    def number(self, d: int, value: int) -> None:
        self.movi(REGISTERS[d], value)

    def plus(self, d: int, m: int) -> None:
        self.add(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def minus(self, d: int, m: int) -> None:
        self.sub(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def step(self, d: int, value: int) -> None:
        self.addi(REGISTERS[d], REGISTERS[d], value)

    def times(self, d: int, m: int) -> None:
        self.mull(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def bitwise_and(self, d: int, m: int) -> None:
        self.and_(REGISTERS[d], REGISTERS[d], REGISTERS[m])

    def left(self, d: int, bits: int) -> None:
        self.slli(REGISTERS[d], REGISTERS[d], bits)

    def right(self, d: int, m: int) -> None:
        self.ssr(REGISTERS[m])
        self.sra(REGISTERS[d], REGISTERS[d])

    def right_by(self, d: int, m: int, bits: int) -> None:
        self.srai(REGISTERS[d], REGISTERS[m], bits)

    def low_byte(self, d: int) -> None:
        self.movi(A15, 255)
        self.and_(REGISTERS[d], REGISTERS[d], A15)

    def saturate(self, d: int) -> None:
        self.srai(REGISTERS[d], REGISTERS[d], 31)
        self.movi(A15, -1)
        self.sub(REGISTERS[d], A15, REGISTERS[d])
        self.low_byte(d)

    def byte(self, d: int, base: int, offset: int = 0) -> None:
        self.l8ui(REGISTERS[d], REGISTERS[base], offset)

    def byte_at(self, d: int, base: int, index: int) -> None:
        self.add(A15, REGISTERS[base], REGISTERS[index])
        self.l8ui(REGISTERS[d], A15)

    def word(self, d: int, base: int, offset: int = 0) -> None:
        self.l32i(REGISTERS[d], REGISTERS[base], offset)

    def store_byte(self, d: int, base: int, offset: int = 0) -> None:
        self.s8i(REGISTERS[d], REGISTERS[base], offset)

    def store_byte_at(self, d: int, base: int, index: int) -> None:
        self.add(A15, REGISTERS[base], REGISTERS[index])
        self.s8i(REGISTERS[d], A15)

    def store_word(self, d: int, base: int, offset: int = 0) -> None:
        self.s32i(REGISTERS[d], REGISTERS[base], offset)

    def go(self, target: str) -> None:
        self.j(target)

    def go_if(self, condition: str, n: int, m: int, target: str, far: bool = False) -> None:
        self.b_if(condition, REGISTERS[n], REGISTERS[m], target)

    def go_if_zero(self, condition: str, n: int, target: str, far: bool = False) -> None:
        if far:  # a branch reaches 2 KB, a jump 128
            skip = f"past {self.size}"
            self.go_if_zero(OPPOSITE[condition], n, skip)
            self.j(target)
            self.label(skip)
        elif condition in INVERSE:  # of one less
            self.addi(A15, REGISTERS[n], -1)
            self.b_if_zero(INVERSE[condition], A15, target)
        else:
            self.b_if_zero(condition, REGISTERS[n], target)


class ScalarXtensaWindowed(ScalarXtensa):
    """With windows: all registers are the function's own."""

    def begin(self, f: Frame) -> None:
        self.entry(f.size + 32)

    def end(self, f: Frame) -> None:
        self.retw()
