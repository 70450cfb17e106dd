"""The driver on RISC-V."""

from __future__ import annotations

from ..frame import Frame
from ..rv32 import A0, A1, A2, A3, A4, A5, A6, A7, SP, T0, T1, T2, T3, T4, T5, T6, ZERO, Rv32
from . import ARGUMENTS, CHILDREN, DRIVER, GROUPS, KEPT, PLUS_I, PLUS_O, STATE
from .loops import AGAIN, REPEAT

WORDS = (A0, A1, A2, A4, A5, A6, A7)
"""The registers of the state's first words at the start."""


def _sign(flag: int) -> int:
    """By how much to shift a flag to the left so that it is the sign."""
    return 32 - flag.bit_length()


LOW = 11
"""Bits that an instruction can add, without a sign."""


def _aligned(a: Rv32, at: int, spare: int, second: int, *addresses: int) -> None:
    """Move addresses by `second` unless `at` is a multiple of four."""
    a.andi(spare, at, 2)
    a.b_if("eq", spare, ZERO, "aligned")
    low = (1 << LOW) - 1
    a.addi(spare, ZERO, second >> 2 * LOW)
    for bits in (LOW, 0):
        a.slli(spare, spare, LOW)
        a.addi(spare, spare, second >> bits & low)
    for address in addresses:
        a.add(address, address, spare)
    a.label("aligned")


def constant(table: int, second: int) -> Rv32:
    """See constants.CONSTANT."""
    a = Rv32()
    a.label("here")
    a.auipc(A0, 0)
    a.addi(A0, A0, table)
    _aligned(a, A0, A1, second, A0)
    a.srli(A0, A0, 1)
    a.addi(A0, A0, 1)
    a.ret()
    return a


def begin(frame: int, table: int, second: int) -> Rv32:
    """See driver.Begin. Kernels take their state's address from t5."""
    a, size = Rv32(), frame + 4 * len(STATE)
    a.addi(SP, SP, -size)
    a.addi(T0, ZERO, ARGUMENTS)
    a.b_if("lt", A1, T0, "kept")
    a.addi(T0, A0, 0)
    for k, buffer in enumerate((A0, A1, A2)):
        a.lw(buffer, A3, 4 * k)
        a.srai(buffer, buffer, 1)
        a.slli(buffer, buffer, 2)
    for k, number in enumerate((A4, A5, A6, A7)):
        a.lw(number, A3, 12 + 4 * k)
    a.addi(T1, A5, -1)  # both are small integers, and multiples of four
    a.addi(T2, A6, -1)
    a.or_(T1, T1, T2)
    a.andi(T1, T1, 7)
    a.b_if("ne", T1, ZERO, "other")
    for number in (A4, A5, A6, A7):
        a.srai(number, number, 1)
    a.add(A1, A1, A4)
    a.label("here")
    a.auipc(A4, 0)
    a.addi(A4, A4, table)
    a.add(A5, A5, A4)
    a.add(A6, A6, A4)
    if second:
        _aligned(a, A4, T1, second, A5, A6)
    a.b_if("lt", A6, A5, "keep")
    a.label("begin")
    for k, word in enumerate(WORDS):
        a.sw(word, SP, frame + 4 * k)
    a.addi(T1, ZERO, 0)
    a.label("put")
    a.sw(ZERO, SP, frame + _state("answer"))
    a.sw(T1, SP, frame + _state("then"))

    a.label(DRIVER)
    a.lw(T0, SP, frame + 4 * STATE.index("position"))
    a.lw(T1, SP, frame + 4 * STATE.index("end"))
    a.b_if("eq", T0, T1, "done")
    a.lw(T2, T0)
    a.addi(T0, T0, 4)
    a.addi(T3, SP, 0)
    a.srli(T4, T2, GROUPS)
    a.slli(T4, T4, GROUPS)
    a.label("group")
    a.slli(T5, T4, 1)
    a.b_if("eq", T5, ZERO, "filled")
    a.addi(T6, T4, 0)
    a.addi(T4, T5, 0)
    a.b_if("lt", T6, ZERO, "wide")
    a.lw(A0, T0)
    a.lw(A2, T0, 4)
    a.srai(A1, A0, 16)
    a.srai(A3, A2, 16)
    for word in (A0, A2):
        a.slli(word, word, 16)
        a.srai(word, word, 16)
    for k, word in enumerate((A0, A1, A2, A3)):
        a.sw(word, T3, 4 * k)
    a.addi(T0, T0, 8)
    a.addi(T3, T3, 16)
    a.j("group")
    a.label("wide")
    for k in range(4):
        a.lw(A0, T0, 4 * k)
        a.sw(A0, T3, 4 * k)
    a.addi(T0, T0, 16)
    a.addi(T3, T3, 16)
    a.j("group")
    a.label("filled")
    a.addi(T5, SP, frame)
    a.sw(T0, T5, _state("position"))
    for k, (flag, name) in enumerate(((PLUS_I, "i"), (PLUS_O, "o"))):
        a.slli(A0, T2, _sign(flag))
        a.b_if("ge", A0, ZERO, f"not moved {k}")
        a.lw(A0, SP, 4 * k)
        a.lw(A1, T5, _state(name))
        a.add(A0, A0, A1)
        a.sw(A0, SP, 4 * k)
        a.label(f"not moved {k}")
    for k, word in enumerate((A0, A1, A2, A3)):
        a.lw(word, T5, 4 * k)
    a.slli(T2, T2, 16)
    a.srli(T2, T2, 14)
    a.add(T2, T2, A3)
    a.jr(T2)
    a.label("done")
    a.lw(A0, SP, frame + _state("answer"))
    a.slli(A0, A0, 1)
    a.addi(A0, A0, 1)
    a.label("leave")
    a.addi(SP, SP, size)
    a.ret()
    _keep(a)
    _kept(a, frame)
    return a


def _kept(a: Rv32, frame: int) -> None:
    """Begin with the words that the function in a0 kept, and the numbers in the first of two arguments, at a3."""
    a.label("kept")
    a.addi(T0, ZERO, 2)
    a.b_if("lt", T0, A1, "other")
    a.addi(T3, T0, 0)
    a.lw(T0, A0, CHILDREN)
    a.addi(T2, A1, 0)
    a.addi(T1, A3, 0)
    for k, word in enumerate(WORDS):
        a.lw(word, T0, 4 * k)
    a.b_if("lt", T2, T3, "begin")
    a.lw(A7, T1)
    a.andi(T1, A7, 3)
    a.b_if("ne", T1, ZERO, "other")
    a.lw(T2, A7)
    a.addi(T1, A5, 0)
    for kind in ("list", "array"):
        a.lw(A5, T0, 4 * KEPT.index(f"from {kind}"))
        a.lw(T3, T0, 4 * KEPT.index(kind))
        a.b_if("eq", T2, T3, "known")
    a.label("other")
    a.addi(A0, ZERO, 5)
    a.j("leave")
    a.label("known")
    a.srli(A7, A7, 1)
    for k, word in enumerate(WORDS):
        a.sw(word, SP, frame + 4 * k)
    for name, to in (("float", "o"), ("steps", "count")):
        a.lw(T2, T0, 4 * KEPT.index(name))
        a.sw(T2, SP, frame + _state(to))
    a.j("put")


def _keep(a: Rv32) -> None:
    """Keep the words of the state in the function, which is in t0."""
    a.label("keep")
    a.lw(T1, A3, 4 * ARGUMENTS)
    a.lw(T2, T0, CHILDREN)
    a.b_if("ne", T1, T0, "refuse")
    a.b_if("ne", T2, ZERO, "refuse")
    a.slli(T1, A7, 2)
    a.sw(T1, T0, CHILDREN)
    for k, word in enumerate((A0, A1, A2, A4, A6, A5, ZERO)):
        a.sw(word, T1, 4 * k)
    a.addi(A0, ZERO, 3)
    a.j("leave")
    a.label("refuse")
    a.addi(A0, ZERO, 1)
    a.j("leave")


def _state(name: str) -> int:
    return 4 * STATE.index(name)


def repeat() -> Rv32:
    """The begin of a loop: see loops.REPEAT."""
    a = Rv32()
    for field, name in REPEAT.items():
        a.lw(A0, SP, Frame(tuple(REPEAT))[field])
        a.sw(A0, T5, _state(name))
    a.lw(A0, T5, _state("position"))
    a.sw(A0, T5, _state("back"))
    a.j(DRIVER)
    return a


def again() -> Rv32:
    """The end of a loop: see loops.AGAIN."""
    a = Rv32()
    for name, step in AGAIN.items():
        a.lw(A0, T5, _state(name))
        a.lw(A1, T5, _state(step))
        a.add(A0, A0, A1)
        a.sw(A0, T5, _state(name))
    a.lw(A0, T5, _state("count"))
    a.addi(A0, A0, -1)
    a.sw(A0, T5, _state("count"))
    a.b_if("eq", A0, ZERO, "ended")
    a.lw(A0, T5, _state("back"))
    a.sw(A0, T5, _state("position"))
    a.label("ended")
    a.j(DRIVER)
    return a
