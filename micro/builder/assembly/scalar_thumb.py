"""The scalar machine on ARMv6-M: Cortex-M0 and M0+. V are r0 to r7, H are r8 to r11."""

from __future__ import annotations

from collections.abc import Mapping

from .frame import Frame
from .scalar import BUFFERS, Scalar
from .thumb import LR, PC, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, SP, Thumb

INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class ScalarThumb(Thumb, Scalar):
    """See scalar.Scalar."""

    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        self.push(R4, R5, R6, R7, LR)
        for low, high in ((R4, R8), (R5, R9), (R6, R10), (R7, R11)):
            self.mov(low, high)
        self.push(R4, R5, R6, R7)
        self.sub_sp(f.size)
        self.ldmia(R3, R0, R1, R2, R4)
        for buffer in (R0, R1, R2):
            self.asrs(buffer, buffer, 1)
            self.lsls(buffer, buffer, 2)
        self.lsrs(R4, R4, 1)
        self.add(R1, R4)
        self.add_from_sp(R5, 0)
        self.movs(R6, len(f.fields))
        self.label("copy")
        self.ldmia(R3, R4)
        self.asrs(R4, R4, 1)
        self.str_(R4, R5)
        self.adds_imm(R5, 4)
        self.subs_imm(R6, 1)
        self.b_if("ne", "copy")
        for field, which in bases.items():
            self.ldr(R4, SP, f[field])
            self.add(R4, (R0, R1, R2)[BUFFERS.index(which)])
            self.str_(R4, SP, f[field])

    def leave(self, f: Frame) -> None:
        self.add_sp(f.size)
        self.pop(R4, R5, R6, R7)
        for low, high in ((R4, R8), (R5, R9), (R6, R10), (R7, R11)):
            self.mov(high, low)
        self.movs(R0, 1)
        self.pop(R4, R5, R6, R7, PC)

    def get(self, d: int, place: int) -> None:
        self.ldr(d, SP, place)

    def put(self, d: int, place: int) -> None:
        self.str_(d, SP, place)

    def copy(self, d: int, m: int) -> None:
        self.mov(d, m)

    def number(self, d: int, value: int) -> None:
        self.movs(d, value)

    def plus(self, d: int, m: int) -> None:
        self.add(d, m)

    def minus(self, d: int, m: int) -> None:
        self.subs(d, d, m)

    def step(self, d: int, value: int) -> None:
        if value >= 0:
            self.adds_imm(d, value)
        else:
            self.subs_imm(d, -value)

    def times(self, d: int, m: int) -> None:
        self.muls(d, m)

    def bitwise_and(self, d: int, m: int) -> None:
        self.ands(d, m)

    def left(self, d: int, bits: int) -> None:
        self.lsls(d, d, bits)

    def right(self, d: int, m: int) -> None:
        self.asrs_reg(d, m)

    def byte(self, d: int, base: int, offset: int = 0) -> None:
        self.ldrb(d, base, offset)

    def byte_at(self, d: int, base: int, index: int) -> None:
        self.ldrb_reg(d, base, index)

    def word(self, d: int, base: int, offset: int = 0) -> None:
        self.ldr(d, base, offset)

    def store_byte(self, d: int, base: int, offset: int = 0) -> None:
        self.strb(d, base, offset)

    def go(self, target: str) -> None:
        self.b(target)

    def go_if(self, condition: str, n: int, m: int, target: str, far: bool = False) -> None:
        self.cmp(n, m)
        self._go_if(condition, target, far)

    def go_if_zero(self, condition: str, n: int, target: str, far: bool = False) -> None:
        self.cmp_imm(n, 0)
        self._go_if(condition, target, far)

    def go_if_not_zero_now(self, n: int, target: str, far: bool = False) -> None:
        self._go_if("ne", target, far)  # the flags are those of the step

    def _go_if(self, condition: str, target: str, far: bool) -> None:
        if not far:
            self.b_if(condition, target)
            return
        skip = f"past {self.size}"
        self.b_if(INVERSE[condition], skip)
        self.b(target)
        self.label(skip)
