"""The driver on Thumb: ARMv6-M's instructions, which ARMv7E-M has too."""

from __future__ import annotations

from ..frame import Frame
from ..scalar_thumb import ScalarThumb
from ..thumb import LR, PC, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, SP, Thumb
from . import ARGUMENTS, CHILDREN, DRIVER, GROUPS, KEPT, PLUS_I, PLUS_O, STATE
from .loops import AGAIN, REPEAT

POSITION = 4 * STATE.index("position")
HIGH = ((R4, R8), (R5, R9), (R6, R10), (R7, R11))


def _sign(flag: int) -> int:
    """By how much to shift a flag to the left so that it is the sign."""
    return 32 - flag.bit_length()


def _aligned(a: Thumb, at: int, spare: int, second: int, *addresses: int) -> None:
    """Move addresses by `second` unless `at` is a multiple of four."""
    a.lsls(spare, at, 30)
    a.b_if("pl", "aligned")
    first, *rest = second.to_bytes(-(-second.bit_length() // 8), "big")
    a.movs(spare, first)
    for byte in rest:
        a.lsls(spare, spare, 8)
        a.adds_imm(spare, byte)
    for address in addresses:
        a.adds(address, address, spare)
    a.label("aligned")


def constant(table: int, second: int) -> Thumb:
    """See constants.CONSTANT."""
    a = Thumb()
    a.mov(R0, PC)
    a.label("here")
    a.adds_imm(R0, max(table - 2, 0))
    _aligned(a, R0, R1, second, R0)
    a.lsrs(R0, R0, 1)
    a.adds_imm(R0, 1)
    a.bx(LR)
    return a


def begin(frame: int, table: int, second: int) -> Thumb:
    """See driver.Begin."""
    a, size = Thumb(), frame + 4 * len(STATE)
    a.push(R4, R5, R6, R7, LR)
    for low, high in HIGH:
        a.mov(low, high)
    a.push(R4, R5, R6, R7)
    a.sub_sp(size)
    a.cmp_imm(R1, ARGUMENTS)
    a.b_if("cc", "kept")
    a.mov(R7, R0)
    a.ldmia(R3, R0, R1, R2, R4)
    for buffer in (R0, R1, R2):
        a.asrs(buffer, buffer, 1)
        a.lsls(buffer, buffer, 2)
    a.lsrs(R4, R4, 1)
    a.add(R1, R4)
    a.ldmia(R3, R4, R5, R6)
    a.mov(R8, R3)
    a.subs_imm(R4, 1)  # both are small integers, and multiples of four
    a.subs_imm(R5, 1)
    a.mov(R3, R4)
    a.orrs(R3, R5)
    a.lsls(R3, R3, 29)
    a.b_if("ne", "other")
    for number in (R4, R5, R6):
        a.asrs(number, number, 1)
    a.mov(R3, PC)
    a.label("here")  # pc is two instructions ahead
    far = 64 if second else 0  # what one instruction cannot add
    a.adds_imm(R3, max(table - 2 - far, 0))
    if far:
        a.adds_imm(R3, far)
    a.adds(R4, R4, R3)
    a.adds(R5, R5, R3)
    if second:
        a.mov(R9, R7)
        _aligned(a, R3, R7, second, R4, R5)
        a.mov(R7, R9)
    a.adds_imm(R3, 1)  # Thumb code
    a.cmp(R4, R5)
    a.b_if("gt", "keep")
    a.label("begin")
    a.add_from_sp(R7, frame)
    a.stmia(R7, R0, R1, R2, R3, R4, R5, R6)
    a.movs(R6, 0)
    a.label("put")
    a.adds_imm(R7, _behind("i", "answer"))
    a.movs(R5, 0)
    a.stmia(R7, R5, R6)

    a.label(DRIVER)
    a.add_from_sp(R7, frame + POSITION)
    a.ldr(R5, R7)
    a.ldr(R6, R7, 4)
    a.cmp(R5, R6)
    a.b_if("eq", "done")
    a.ldmia(R5, R4)
    a.mov(R7, SP)
    a.lsrs(R6, R4, GROUPS)
    a.lsls(R6, R6, GROUPS)
    a.label("group")
    a.lsls(R6, R6, 1)
    a.b_if("eq", "filled")
    a.b_if("cs", "wide")
    a.ldmia(R5, R0, R2)
    a.asrs(R1, R0, 16)
    a.sxth(R0, R0)
    a.asrs(R3, R2, 16)
    a.sxth(R2, R2)
    a.stmia(R7, R0, R1, R2, R3)
    a.b("group")
    a.label("wide")
    a.ldmia(R5, R0, R1, R2, R3)
    a.stmia(R7, R0, R1, R2, R3)
    a.b("group")
    a.label("filled")
    a.add_from_sp(R7, frame + POSITION)
    a.str_(R5, R7)
    a.lsls(R0, R4, 32 - GROUPS)
    a.lsrs(R0, R0, 48 - GROUPS)
    a.b_if("eq", "moved")
    for k, flag in enumerate((PLUS_I, PLUS_O)):
        a.lsls(R0, R4, _sign(flag))
        a.b_if("pl", f"not moved {k}")
        a.ldr(R0, SP, 4 * k)
        a.ldr(R1, R7, 8 + 4 * k)
        a.adds(R0, R0, R1)
        a.str_(R0, SP, 4 * k)
        a.label(f"not moved {k}")
    a.label("moved")
    a.subs_imm(R7, POSITION)
    a.ldmia(R7, R0, R1, R2, R3)
    a.lsls(R4, R4, 16)
    a.lsrs(R4, R4, 14)
    a.add(R4, R3)
    a.bx(R4)
    a.label("done")
    a.ldr(R0, R7, state("answer"))
    a.lsls(R0, R0, 1)
    a.adds_imm(R0, 1)
    a.label("leave")
    a.add_sp(size)
    a.pop(R4, R5, R6, R7)
    for low, high in HIGH:
        a.mov(high, low)
    a.pop(R4, R5, R6, R7, PC)
    _keep(a)
    _kept(a, frame)
    return a


def _kept(a: Thumb, frame: int) -> None:
    """Begin with the words that the function in r0 kept, and the numbers in the first of two arguments, at r3."""
    a.label("kept")
    a.cmp_imm(R1, 2)
    a.b_if("hi", "other")
    a.ldr(R7, R0, CHILDREN)
    a.b_if("eq", "numbers")
    a.ldmia(R7, R0, R1, R2, R3, R4, R5, R6)
    a.b("begin")
    a.label("numbers")
    a.ldr(R6, R3)
    a.lsls(R5, R6, 30)
    a.b_if("ne", "other")
    a.ldr(R5, R6)
    for kind in ("list", "array"):
        a.ldr(R4, R7, 4 * KEPT.index(f"from {kind}"))
        a.ldr(R3, R7, 4 * KEPT.index(kind))
        a.cmp(R5, R3)
        a.b_if("eq", "known")
    a.label("other")
    a.movs(R0, 5)
    a.b("leave")
    a.label("known")
    a.lsrs(R6, R6, 1)
    a.mov(R8, R4)
    a.ldr(R3, R7, 4 * KEPT.index("float"))
    a.ldr(R4, R7, 4 * KEPT.index("steps"))
    a.add_from_sp(R5, frame + 4 * STATE.index("o"))
    a.stmia(R5, R3, R4)
    a.ldmia(R7, R0, R1, R2, R3, R4, R5)
    a.add_from_sp(R7, frame)
    a.stmia(R7, R0, R1, R2, R3)
    a.mov(R0, R4)
    a.mov(R4, R8)
    a.stmia(R7, R4, R5, R6)
    a.mov(R6, R0)
    a.b("put")


def _keep(a: Thumb) -> None:
    """Keep the words of the state in the function, which is in r7."""
    a.label("keep")
    a.str_(R3, SP)
    a.mov(R3, R8)
    a.ldr(R3, R3)
    a.cmp(R3, R7)
    a.b_if("ne", "refuse")
    a.ldr(R3, R7, CHILDREN)
    a.cmp_imm(R3, 0)
    a.b_if("ne", "refuse")
    a.lsls(R6, R6, 2)
    a.str_(R6, R7, CHILDREN)
    a.mov(R7, R6)
    a.ldr(R3, SP)
    a.mov(R6, R4)
    a.mov(R4, R5)
    a.mov(R5, R6)
    a.movs(R6, 0)
    a.stmia(R7, R0, R1, R2, R3, R4, R5, R6)
    a.movs(R0, 3)
    a.b("leave")
    a.label("refuse")
    a.movs(R0, 1)
    a.b("leave")


def _behind(first: str, second: str) -> int:
    """How far a word of the state is from the end of another one."""
    return 4 * (STATE.index(second) - STATE.index(first) - 1)


def state(name: str) -> int:
    """The offset of a word of the state from r7 as the driver leaves it, behind the first four."""
    return 4 * STATE.index(name) - POSITION


def repeat() -> Thumb:
    """The begin of a loop: see loops.REPEAT."""
    a = ScalarThumb()
    for field, name in REPEAT.items():
        a.ldr(R0, SP, Frame(tuple(REPEAT))[field])
        a.str_(R0, R7, state(name))
    a.ldr(R0, R7, state("position"))
    a.str_(R0, R7, state("back"))
    a.bl(DRIVER)
    return a


def again() -> Thumb:
    """The end of a loop: see loops.AGAIN."""
    a = ScalarThumb()
    for name, step in AGAIN.items():
        a.ldr(R0, R7, state(name))
        a.ldr(R1, R7, state(step))
        a.adds(R0, R0, R1)
        a.str_(R0, R7, state(name))
    a.ldr(R0, R7, state("count"))
    a.subs_imm(R0, 1)
    a.str_(R0, R7, state("count"))
    a.b_if("eq", "ended")
    a.ldr(R0, R7, state("back"))
    a.str_(R0, R7, state("position"))
    a.label("ended")
    a.bl(DRIVER)
    return a
