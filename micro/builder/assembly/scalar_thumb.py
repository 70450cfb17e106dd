"""The scalar machine on ARMv6-M: Cortex-M0 and M0+. V are r0 to r7, H are r8 to r11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .driver import DRIVER
from .frame import Frame
from .scalar import BUFFERS, Scalar
from .thumb import R0, R1, R2, R4, SP, Thumb

INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class ScalarThumb(Thumb, Scalar):
    """See scalar.Scalar."""

    def enter(self, f: Frame, bases: Mapping[str, str]) -> None:
        for field, which in bases.items():
            self.ldr(R4, SP, f[field])
            self.add(R4, (R0, R1, R2)[BUFFERS.index(which)])
            self.str_(R4, SP, f[field])

    def leave(self, f: Frame) -> None:
        self.bl(DRIVER)

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

    def left_from(self, d: int, m: int, bits: int) -> None:
        self.lsls(d, m, bits)

    def right(self, d: int, m: int) -> None:
        self.asrs_reg(d, m)

    def right_by(self, d: int, m: int, bits: int) -> None:
        self.asrs(d, m, bits)

    def low_byte(self, d: int) -> None:
        self.uxtb(d, d)

    def saturate(self, d: int) -> None:
        self.mvns(d, d)
        self.asrs(d, d, 31)
        self.uxtb(d, d)

    def byte(self, d: int, base: int, offset: int = 0) -> None:
        self.ldrb(d, base, offset)

    def byte_at(self, d: int, base: int, index: int) -> None:
        self.ldrb_reg(d, base, index)

    def word(self, d: int, base: int, offset: int = 0) -> None:
        self.ldr(d, base, offset)

    def store_byte(self, d: int, base: int, offset: int = 0) -> None:
        self.strb(d, base, offset)

    def store_byte_at(self, d: int, base: int, index: int) -> None:
        self.strb_reg(d, base, index)

    def store_word(self, d: int, base: int, offset: int = 0) -> None:
        self.str_(d, base, offset)

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

    def go_if_positive_now(self, n: int, target: str, far: bool = False) -> None:
        self._go_if("gt", target, far)

    def move_words(self, source: int, to: int, between: Sequence[int]) -> None:
        self.ldmia(source, *between)
        self.stmia(to, *between)

    def take_words(self, source: int, words: Sequence[int]) -> None:
        self.ldmia(source, *words)

    def put_words(self, to: int, words: Sequence[int]) -> None:
        self.stmia(to, *words)

    def go_if_zero_now(self, n: int, target: str) -> None:
        self.b_if("eq", target)

    def _go_if(self, condition: str, target: str, far: bool) -> None:
        if not far:
            self.b_if(condition, target)
            return
        skip = f"past {self.size}"
        self.b_if(INVERSE[condition], skip)
        self.b(target)
        self.label(skip)
