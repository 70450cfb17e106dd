"""`predict` as one function in machine code, where one call of the driver converts the numbers and runs the model.

It calls the driver as `drive(numbers, 0)`, then MicroPython's own functions, which its table for viper code names
(py/nativeglue.h): they make the list, and each number of it as the product of the output's step and a small integer.
Whatever the driver refuses, and other arguments than one, go to `predict` in bytecode, which says what is wrong.

What it needs lies in the words of TOLD, whose address is kept where the driver's own is.
"""

from __future__ import annotations

from ..rv32 import A0, A1, A2, A3, RA, S0, S1, SP, T0, T1, T2, ZERO, Rv32
from ..thumb import LR, PC, R0, R1, R2, R3, R4, R5, R6, R7, Thumb
from ..thumb import SP as STACK
from . import CHILDREN

TOLD = ("drive", "code", "count", "bytes", "zero", "step", "multiply", "list", "slow", "call")
"""The driver and its code; how many numbers there are, and where their bytes or words are; what is subtracted from
them, and the object by which they are multiplied; MicroPython's product of two objects, and its new list; `predict` in
bytecode, and MicroPython's call of it."""

BINARY_OP, NEW_LIST, CALL = 18, 20, 27
"""Their places in MicroPython's table of functions."""

MULTIPLY = 29
"""MicroPython's number for a product (py/runtime0.h)."""

ITEMS = 12
"""Where a list has the address of its items (py/objlist.h)."""


def _told(name: str) -> int:
    return 4 * TOLD.index(name)


def thumb(words: bool) -> Thumb:
    """On ARM. words: whether the output's elements are words, which may be unaligned, or bytes."""
    a = Thumb()
    a.push(R4, R5, R6, R7, LR)
    a.sub_sp(12)
    a.ldr(R7, R0, CHILDREN)
    a.lsls(R2, R2, 8)
    a.orrs(R1, R2)  # as MicroPython's call takes the numbers of arguments
    a.mov(R6, R3)
    a.cmp_imm(R1, 1)
    a.b_if("ne", "slow")
    a.ldr(R0, R7, _told("drive"))
    a.movs(R1, 2)
    a.ldr(R4, R7, _told("code"))
    a.blx(R4)
    a.movs(R1, 1)
    a.cmp(R0, R1)  # a small zero
    a.b_if("ne", "slow")
    a.ldr(R0, R7, _told("count"))
    a.movs(R1, 0)
    a.ldr(R4, R7, _told("list"))
    a.blx(R4)
    a.str_(R0, STACK)
    a.ldr(R5, R0, ITEMS)
    a.ldr(R4, R7, _told("bytes"))
    a.ldr(R6, R7, _told("count"))
    a.label("next")
    a.ldrb(R2, R4)
    for k in (1, 2, 3) if words else ():
        a.ldrb(R0, R4, k)
        a.lsls(R0, R0, 8 * k)
        a.orrs(R2, R0)
    a.adds_imm(R4, 4 if words else 1)
    a.ldr(R0, R7, _told("zero"))
    a.subs(R2, R2, R0)
    a.lsls(R2, R2, 1)
    a.adds_imm(R2, 1)
    a.ldr(R1, R7, _told("step"))
    a.movs(R0, MULTIPLY)
    a.ldr(R3, R7, _told("multiply"))
    a.blx(R3)
    a.stmia(R5, R0)
    a.subs_imm(R6, 1)
    a.b_if("ne", "next")
    a.ldr(R0, STACK)
    a.label("leave")
    a.add_sp(12)
    a.pop(R4, R5, R6, R7, PC)
    a.label("slow")
    a.ldr(R0, R7, _told("slow"))
    a.mov(R2, R6)
    a.ldr(R4, R7, _told("call"))
    a.blx(R4)
    a.b("leave")
    return a


LIST, NUMBERS, FROM, SAVED = 0, 4, 8, 20
"""On the stack: the list, where its next number goes and comes from, and s1, s0 and ra."""


def rv32(words: bool) -> Rv32:
    """On RISC-V, as `thumb`."""
    a, saved = Rv32(), (S1, S0, RA)
    a.addi(SP, SP, -32)
    for k, register in enumerate(saved):
        a.sw(register, SP, SAVED + 4 * k)
    a.lw(S0, A0, CHILDREN)
    a.slli(A2, A2, 8)
    a.or_(A1, A1, A2)
    a.addi(S1, A3, 0)
    a.addi(T0, ZERO, 1)
    a.b_if("ne", A1, T0, "slow")
    a.lw(A0, S0, _told("drive"))
    a.addi(A1, ZERO, 2)
    a.lw(T0, S0, _told("code"))
    a.jalr(T0)
    a.addi(A1, ZERO, 1)
    a.b_if("ne", A0, A1, "slow")
    a.lw(A0, S0, _told("count"))
    a.addi(A1, ZERO, 0)
    a.lw(T0, S0, _told("list"))
    a.jalr(T0)
    a.sw(A0, SP, LIST)
    a.lw(T1, A0, ITEMS)
    a.sw(T1, SP, NUMBERS)
    a.lw(T1, S0, _told("bytes"))
    a.sw(T1, SP, FROM)
    a.lw(S1, S0, _told("count"))
    a.label("next")
    a.lw(T1, SP, FROM)
    a.lbu(A2, T1)
    for k in (1, 2, 3) if words else ():
        a.lbu(T2, T1, k)
        a.slli(T2, T2, 8 * k)
        a.or_(A2, A2, T2)
    a.addi(T1, T1, 4 if words else 1)
    a.sw(T1, SP, FROM)
    a.lw(T2, S0, _told("zero"))
    a.sub(A2, A2, T2)
    a.slli(A2, A2, 1)
    a.addi(A2, A2, 1)
    a.lw(A1, S0, _told("step"))
    a.addi(A0, ZERO, MULTIPLY)
    a.lw(T0, S0, _told("multiply"))
    a.jalr(T0)
    a.lw(T1, SP, NUMBERS)
    a.sw(A0, T1)
    a.addi(T1, T1, 4)
    a.sw(T1, SP, NUMBERS)
    a.addi(S1, S1, -1)
    a.b_if("ne", S1, ZERO, "next")
    a.lw(A0, SP, LIST)
    a.label("leave")
    for k, register in enumerate(saved):
        a.lw(register, SP, SAVED + 4 * k)
    a.addi(SP, SP, 32)
    a.ret()
    a.label("slow")
    a.lw(A0, S0, _told("slow"))
    a.addi(A2, S1, 0)
    a.lw(T0, S0, _told("call"))
    a.jalr(T0)
    a.j("leave")
    return a
