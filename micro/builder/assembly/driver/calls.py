"""Functions that call others, on the scalar machine: MicroPython's, as its table for viper code names them
(py/nativeglue.h), and the driver.

Their own words (`TOLD`) lie in memory; their address is kept where the driver's is.
"""

from __future__ import annotations

from abc import abstractmethod

from ..frame import Frame
from ..rv32 import A0, A1, A2, A3, RA, S0, T1
from ..rv32 import SP as STACK
from ..scalar import V7
from ..scalar_rv32 import REGISTERS
from ..thumb import LR, PC, R0, R1, R2, R3, R4, R5, R6, R7, SP
from ..thumb_vfp import ThumbVfp
from . import CHILDREN
from .numbers import Numbers, NumbersRv32, NumbersThumb

OWN = ("drive", "code", "bytes", "zero", "list", "float", "allocate", "get", "slow", "call", "step", "multiply")
"""The driver and its code; where the output's bytes or words are, and what is subtracted from them; MicroPython's types
of lists and of floats, and what allocates memory; `get` and `predict` in bytecode, and MicroPython's call of them; the
object by which numbers are multiplied, and MicroPython's product of two objects."""

STEP = ("mantissa", "exponent", "bits")
"""The step as a float: as listed.FIELDS, and its bits."""

INPUT = ("input", "array")
"""Where the input's bytes are, and MicroPython's type of arrays."""

TOLD = (*OWN, *STEP, *INPUT)

CONSTANTS = ("size", "offset", "reach", "reciprocal", "carried", "tie", "sign")
"""Words behind those of TOLD: how many numbers the input takes; the rest says converted.py."""

TOLD_RV32 = REGISTERS[V7]


class Calls(Numbers):
    """The scalar machine with calls. V7 is the address of the words of TOLD."""

    def told(self, d: int, name: str) -> None:
        """d = a word of TOLD or CONSTANTS."""
        self.word(d, V7, place(name))

    @abstractmethod
    def function(self, f: Frame) -> None:
        """Begin. V0: how many arguments there are, those by name from bit 8 on; V1: where they are."""

    @abstractmethod
    def call(self, name: str) -> None:
        """V0 = what a function of TOLD returns for V0, V1 and V2. Clobbers V1 to V6."""

    @abstractmethod
    def fourth(self, at: int) -> None:
        """The fourth argument of the next call = the word on the stack; only `told` of V0 and `number` of V1 may come
        between."""

    @abstractmethod
    def result(self, f: Frame) -> None:
        """Return V0."""


def place(name: str) -> int:
    """Where a word is."""
    return 4 * (*TOLD, *CONSTANTS).index(name)


ODD = 4
"""Bytes by which five saved registers are more than a multiple of eight, to which the stack pointer is aligned."""


class CallsThumb(NumbersThumb, Calls):
    def function(self, f: Frame) -> None:
        self.push(R4, R5, R6, R7, LR)
        self.sub_sp(f.size + ODD)
        self.ldr(R7, R0, CHILDREN)
        self.lsls(R2, R2, 8)
        self.orrs(R1, R2)
        self.mov(R0, R1)
        self.mov(R1, R3)

    def call(self, name: str) -> None:
        self.told(R4, name)
        self.blx(R4)

    def fourth(self, at: int) -> None:
        self.ldr(R3, SP, at)

    def result(self, f: Frame) -> None:
        self.add_sp(f.size + ODD)
        self.pop(R4, R5, R6, R7, PC)


class CallsVfp(CallsThumb, ThumbVfp):
    """Where numbers are converted by the floating-point unit."""


class CallsRv32(NumbersRv32, Calls):
    def function(self, f: Frame) -> None:
        size = _with_saved(f)
        self.addi(STACK, STACK, -size)
        self.sw(S0, STACK, size - 8)
        self.sw(RA, STACK, size - 4)
        self.lw(S0, A0, CHILDREN)
        self.slli(A2, A2, 8)
        self.or_(A0, A1, A2)
        self.addi(A1, A3, 0)
        self.addi(TOLD_RV32, S0, 0)

    def call(self, name: str) -> None:
        self.lw(T1, S0, place(name))
        self.jalr(T1)
        self.addi(TOLD_RV32, S0, 0)

    def fourth(self, at: int) -> None:
        self.lw(A3, STACK, at)

    def result(self, f: Frame) -> None:
        size = _with_saved(f)
        self.lw(S0, STACK, size - 8)
        self.lw(RA, STACK, size - 4)
        self.addi(STACK, STACK, size)
        self.ret()


def _with_saved(f: Frame) -> int:
    """The size of a frame and of two saved registers, which keeps the stack pointer aligned to 16 bytes."""
    return -(-(f.size + 8) // 16) * 16
