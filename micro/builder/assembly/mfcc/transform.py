"""The transform of pairs of samples as complex numbers, and the bins of the samples from that."""

from __future__ import annotations

from ..thumb import LR, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, SP, Thumb
from .block import Load, far, field, halves, restore, save, turn

FRAME = {
    name: 4 * k
    for k, name in enumerate(
        (
            *("c", "p", "s", "q", "c2", "p2", "s2", "q2", "mode"),
            *("a", "b", "z", "z_end", "end", "wave", "half", "k", "angle", "step", "quarter", "shift", "down"),
        )
    )
}
FRAME_SIZE = 4 * len(FRAME)


def _put(a: Thumb, d: int, name: str) -> None:
    a.str_(d, SP, FRAME[name])


def _get(a: Thumb, d: int, name: str) -> None:
    a.ldr(d, SP, FRAME[name])


def _factors(a: Thumb, suffix: str = "") -> tuple[Load, Load, Load, Load]:
    c, p, s, q = (lambda r, name=name + suffix: _get(a, r, name) for name in "cpsq")
    return c, p, s, q


def _butterfly(a: Thumb, mark: str, turned: bool) -> None:
    """All of one place in each transform. r6: the shift; r7: the first third of four parts; r8 to r11: steps of r7."""

    def take() -> None:
        a.ldmia(R7, R0, R1)

    def shift(*registers: int) -> None:
        for r in registers:
            a.asrs_reg(r, R6)

    a.label(mark)
    take()
    if turned:
        turn(a, R1, R0, _factors(a))
    shift(R0, R1)
    a.mov(R12, R0)
    a.mov(LR, R1)
    a.add(R7, R8)
    take()
    if turned:
        turn(a, R0, R1, _factors(a))
    shift(R0, R1)
    a.mov(R2, R12)
    a.mov(R3, LR)
    a.adds(R4, R2, R0)
    a.adds(R5, R3, R1)
    a.subs(R2, R2, R0)
    a.subs(R3, R3, R1)
    a.mov(R12, R4)
    a.mov(LR, R5)
    _put(a, R2, "a")
    _put(a, R3, "b")
    a.add(R7, R9)
    take()
    if turned:
        _get(a, R2, "mode")
        a.cmp_imm(R2, 1)
        a.b_if("hi", f"{mark}: quarter")  # turned by just that
        turn(a, R1, R0, _factors(a, "2"))
        _get(a, R2, "mode")
        a.cmp_imm(R2, 0)
        a.b_if("eq", f"{mark}: second")
        a.label(f"{mark}: quarter")
        a.mov(R2, R0)
        a.mov(R0, R1)
        a.rsbs(R1, R2)
        a.label(f"{mark}: second")
    shift(R0, R1)
    a.add(R7, R10)
    a.ldmia(R7, R2, R3)
    shift(R2, R3)
    a.adds(R4, R2, R0)
    a.adds(R5, R3, R1)
    a.subs(R2, R2, R0)
    a.subs(R3, R3, R1)
    a.mov(R0, R12)
    a.mov(R1, LR)
    a.subs(R0, R4, R0)
    a.subs(R1, R5, R1)
    a.add(R4, R12)
    a.add(R5, LR)
    a.subs_imm(R7, 8)
    a.stmia(R7, R4, R5)
    a.add(R7, R11)
    a.stmia(R7, R0, R1)
    _get(a, R4, "a")
    _get(a, R5, "b")
    a.adds(R0, R2, R5)
    a.subs(R1, R3, R4)
    a.subs(R2, R2, R5)
    a.adds(R3, R3, R4)
    a.add(R7, R10)
    a.stmia(R7, R0, R1)
    a.add(R7, R11)
    a.stmia(R7, R2, R3)
    a.add(R7, R11)
    a.add(R7, R8)
    a.adds_imm(R7, 8)
    _get(a, R5, "end")
    a.cmp(R7, R5)
    far(a, "cc", mark)


def _begin_transform(a: Thumb) -> None:
    """Fill the frame; the transforms of two, if their number is odd."""
    for name in ("z", "wave"):
        field(a, R1, name)
        _put(a, R1, name)
    field(a, R1, "length")
    a.lsls(R2, R1, 1)
    _put(a, R2, "quarter")
    a.lsls(R1, R1, 2)
    field(a, R2, "z")
    a.adds(R1, R1, R2)
    _put(a, R1, "z_end")
    a.movs(R3, 0)
    _put(a, R3, "down")
    field(a, R4, "is_odd")
    a.movs(R6, 1)
    a.movs(R7, 8)
    a.cmp_imm(R4, 0)
    a.b_if("eq", "stages")
    a.mov(R12, R1)
    a.mov(R0, R2)
    a.mov(R1, R2)
    a.label("twos")
    a.ldmia(R0, R2, R3, R4, R5)
    a.adds(R6, R2, R4)
    a.adds(R7, R3, R5)
    a.subs(R4, R2, R4)
    a.subs(R5, R3, R5)
    a.stmia(R1, R6, R7)
    a.stmia(R1, R4, R5)
    a.cmp(R0, R12)
    a.b_if("ne", "twos")
    a.movs(R6, 2)
    a.movs(R7, 16)
    a.label("stages")
    _put(a, R6, "shift")
    _put(a, R7, "half")


def _begin_stage(a: Thumb) -> None:
    """The steps between parts. half: in bytes."""
    _get(a, R0, "half")
    a.mov(R1, R0)
    a.subs_imm(R1, 8)
    a.mov(R8, R1)
    a.adds(R1, R1, R0)
    a.mov(R11, R1)
    a.adds(R2, R0, R0)
    a.adds_imm(R2, 8)
    a.rsbs(R2, R2)
    a.mov(R9, R2)
    a.mov(R2, R0)
    a.adds_imm(R2, 8)
    a.rsbs(R2, R2)
    a.mov(R10, R2)
    _get(a, R7, "z")
    a.adds(R7, R7, R0)
    a.adds(R7, R7, R0)
    _put(a, R7, "k")
    _get(a, R2, "z_end")
    a.adds(R2, R2, R0)
    a.adds(R2, R2, R0)
    _put(a, R2, "end")
    _get(a, R6, "shift")


def _take_factors(a: Thumb, suffix: str) -> None:
    """r0: where in the table, in bytes. Clobbers r2 to r6."""
    _get(a, R2, "wave")
    a.adds(R2, R2, R0)
    a.ldmia(R2, R3, R5)
    halves(a, R3, R4)
    halves(a, R5, R6)
    for r, name in ((R4, "c"), (R3, "p"), (R6, "s"), (R5, "q")):
        _put(a, r, name + suffix)


def _next_angle(a: Thumb) -> None:
    """Begin the next place in each transform."""
    _get(a, R0, "angle")
    _get(a, R1, "step")
    a.adds(R0, R0, R1)
    _put(a, R0, "angle")
    _take_factors(a, "")
    a.adds(R0, R0, R0)
    a.movs(R1, 0)
    _get(a, R2, "quarter")
    a.subs(R2, R0, R2)
    a.b_if("cc", "less")
    a.mov(R0, R2)
    a.movs(R1, 1)
    a.cmp_imm(R0, 0)
    a.b_if("ne", "less")
    a.movs(R1, 2)
    a.label("less")
    _put(a, R1, "mode")
    _take_factors(a, "2")
    _get(a, R6, "shift")
    _get(a, R7, "k")
    a.adds_imm(R7, 8)
    _put(a, R7, "k")


def transformed() -> Thumb:
    """Returns by how much the numbers were shifted to the right."""
    a = Thumb()
    save(a, FRAME_SIZE)
    _begin_transform(a)
    a.label("stage")
    _begin_stage(a)
    _butterfly(a, "plain", False)
    _get(a, R0, "down")
    _get(a, R1, "shift")
    a.adds(R0, R0, R1)
    _put(a, R0, "down")
    # The table's step is quarter / half, whose quotient is found by doubling.
    _get(a, R0, "half")
    _get(a, R1, "quarter")
    a.label("halve")
    a.cmp_imm(R0, 8)
    a.b_if("eq", "halved")
    a.lsrs(R0, R0, 1)
    a.lsrs(R1, R1, 1)
    a.b("halve")
    a.label("halved")
    _put(a, R1, "step")
    a.movs(R2, 0)
    _put(a, R2, "angle")
    a.label("angle")
    _get(a, R0, "z")
    _get(a, R1, "half")
    a.adds(R0, R0, R1)
    a.adds(R0, R0, R1)
    a.adds(R0, R0, R1)
    a.subs_imm(R0, 8)
    _get(a, R2, "k")
    a.cmp(R2, R0)
    far(a, "eq", "ended")
    _next_angle(a)
    _butterfly(a, "turned", True)
    a.b("angle")
    a.label("ended")
    _get(a, R1, "half")
    a.lsls(R1, R1, 2)
    _put(a, R1, "half")
    _get(a, R2, "quarter")
    a.adds(R2, R2, R2)
    a.cmp(R1, R2)
    a.b_if("eq", "done")
    a.movs(R0, 2)
    a.cmp_imm(R1, 8 * 16)
    a.b_if("cs", "next")
    _get(a, R0, "z")
    _get(a, R1, "z_end")
    _largest(a, 27, "")
    a.label("next")
    _put(a, R0, "shift")
    a.b("stage")
    a.label("done")
    _get(a, R0, "down")
    restore(a, FRAME_SIZE)
    return a


def _largest(a: Thumb, bits: int, mark: str) -> None:
    """r0: by how much z has to be shifted to the right to be below 2**bits. r0: z; r1: its end. Clobbers r2 to r7."""
    a.movs(R6, 0)
    a.label(f"look {mark}")
    a.ldmia(R0, R2, R3, R4, R5)
    for r in (R2, R3, R4, R5):
        a.asrs(R7, r, 31)
        a.eors(R7, r)
        a.orrs(R6, R7)
    a.cmp(R0, R1)
    a.b_if("cc", f"look {mark}")
    a.movs(R0, 0)
    a.lsrs(R6, R6, bits)
    a.b_if("eq", f"looked {mark}")
    a.label(f"shift {mark}")
    a.adds_imm(R0, 1)
    a.lsrs(R6, R6, 1)
    a.b_if("ne", f"shift {mark}")
    a.label(f"looked {mark}")


def parted() -> Thumb:
    """Returns by how much the numbers were shifted to the right."""
    a = Thumb()
    save(a, 0)
    field(a, R1, "wave")
    a.adds_imm(R1, 8)
    a.mov(R12, R1)
    field(a, R1, "length")
    a.lsls(R1, R1, 2)
    field(a, R0, "z")
    a.mov(R8, R0)
    a.adds(R1, R1, R0)
    a.mov(R9, R1)
    _largest(a, 26, "")
    a.push(R0)
    a.mov(R6, R8)
    a.adds_imm(R6, 8)
    a.mov(R7, R9)
    a.subs_imm(R7, 8)
    a.sub_sp(16)
    a.label("pair")
    a.mov(R0, R12)
    a.ldmia(R0, R2, R4)
    a.mov(R12, R0)
    halves(a, R2, R3)
    halves(a, R4, R5)
    for k, r in enumerate((R3, R2, R5, R4)):
        a.str_(r, SP, 4 * k)
    a.ldr(R5, SP, 16)
    a.ldmia(R6, R0, R1)
    a.ldmia(R7, R2, R3)
    for r in (R0, R1, R2, R3):
        a.asrs_reg(r, R5)
    a.adds(R4, R0, R2)
    a.subs(R5, R1, R3)
    a.subs(R0, R0, R2)
    a.adds(R1, R1, R3)
    a.mov(R10, R4)
    a.mov(R11, R5)
    c, p, s, q = (lambda r, k=k: a.ldr(r, SP, 4 * k) for k in range(4))
    turn(a, R1, R0, (c, p, s, q))
    a.mov(R2, R10)
    a.mov(R3, R11)
    a.adds(R4, R2, R1)
    a.subs(R5, R3, R0)
    a.subs(R2, R2, R1)
    a.adds(R3, R3, R0)
    a.subs_imm(R6, 8)
    a.stmia(R6, R4, R5)
    a.subs_imm(R7, 8)
    a.stmia(R7, R2, R3)
    a.subs_imm(R7, 16)
    a.cmp(R6, R7)
    far(a, "ls", "pair")
    a.add_sp(16)
    a.pop(R0)
    restore(a, 0)
    return a
