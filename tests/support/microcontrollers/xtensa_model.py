"""A model of Xtensa's instructions, written from the manual (Xtensa Instruction Set Architecture Reference Manual).

It decodes bytes on its own, sharing nothing with the assembler, and does what the manual says of each instruction that
kernels use. `call` runs a function as MicroPython calls one: `f(self, n_args, n_kw, args)`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

WORD = 0xFFFFFFFF
CODE, STACK, ARGUMENTS, RETURN = 0x40080000, 0x3FFE0000, 0x3FFE8000, 0x40001000


def signed(value: int, bits: int = 32) -> int:
    """The number that `bits` bits stand for."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


class Xtensa:
    """A core and its memory: `memory` holds blocks by their addresses; every access must lie in one of them."""

    def __init__(self, memory: dict[int, bytearray]) -> None:
        self.memory = {**memory, STACK - 4096: bytearray(4096)}
        self.a = [0] * 16
        self.sar = 0
        self.steps = 0

    def call(self, code: bytes, arguments: Sequence[int], windowed: bool) -> int:
        """Run `code` with small integers as arguments; the object it returns. Checks what a caller relies on."""
        block = struct.pack(f"<{len(arguments)}I", *((v << 1 | 1) & WORD for v in arguments))
        self.memory[ARGUMENTS] = bytearray(block)
        self.a = [0x1000 + k for k in range(16)]
        kept = self.a[12:]
        self.a[0], self.a[1] = RETURN, STACK - 64
        self.a[2:6] = 0, len(arguments), 0, ARGUMENTS
        at = CODE
        while at != RETURN:
            instruction = code[at - CODE : at - CODE + 3]
            assert len(instruction) == 3, f"ran past the end at {at - CODE}"
            at = self.step(int.from_bytes(instruction, "little"), at, windowed)
            self.steps += 1
        if not windowed:
            assert self.a[12:] == kept and self.a[1] == STACK - 64, "registers of the caller changed"
        return self.a[2]

    def step(self, code: int, at: int, windowed: bool) -> int:
        """Do one instruction; where the next one lies."""
        op0, t, s, r = code & 15, code >> 4 & 15, code >> 8 & 15, code >> 12 & 15
        imm8 = code >> 16 & 255
        if op0 == 0:
            return self._rrr(code, t, s, r, at, windowed)
        if op0 == 2:
            self._rri8(r, t, s, imm8)
            return at + 3
        if op0 == 6:
            n, m = code >> 4 & 3, code >> 6 & 3
            if n == 0:
                return at + 4 + signed(code >> 6, 18)
            if n == 1:
                value = signed(self.a[s])
                taken = (value == 0, value != 0, value < 0, value >= 0)[m]
                return at + 4 + signed(code >> 12, 12) if taken else at + 3
            assert n == 3 and m == 0 and windowed, "no instruction that kernels use"
            assert s == 1 and at == CODE and at % 4 == 0, "a misplaced ENTRY"
            self.a[1] -= (code >> 12) * 8
            return at + 3
        assert op0 == 7, f"unknown instruction {code:06x}"
        n, m = signed(self.a[s]), signed(self.a[t])
        taken = {1: n == m, 9: n != m, 2: n < m, 10: n >= m}[r]
        return at + 4 + signed(imm8, 8) if taken else at + 3

    def _rrr(self, code: int, t: int, s: int, r: int, at: int, windowed: bool) -> int:
        a, op1, op2 = self.a, code >> 16 & 15, code >> 20
        if code == 0x80:
            assert not windowed
            return a[0]
        if code == 0x90:
            assert windowed
            return RETURN
        if op1 == 0 and op2 == 8:
            a[r] = a[s] + a[t] & WORD
        elif op1 == 0 and op2 == 12:
            a[r] = a[s] - a[t] & WORD
        elif op1 == 0 and op2 == 1:
            a[r] = a[s] & a[t]
        elif op1 == 0 and op2 == 2:
            a[r] = a[s] | a[t]
        elif op1 == 0 and op2 == 4 and r == 0:
            self.sar = a[s] & 31
        elif op1 == 2 and op2 == 8:
            a[r] = a[s] * a[t] & WORD
        elif op1 == 1 and op2 in (0, 1):
            a[r] = a[s] << 32 - ((op2 & 1) << 4 | t) & WORD
        elif op1 == 1 and op2 in (2, 3):
            a[r] = signed(a[t]) >> ((op2 & 1) << 4 | s) & WORD
        elif op1 == 1 and op2 == 11:
            a[r] = signed(a[t]) >> self.sar & WORD
        else:
            raise AssertionError(f"unknown instruction {code:06x}")
        return at + 3

    def _rri8(self, kind: int, t: int, s: int, imm8: int) -> None:
        a = self.a
        if kind == 10:
            a[t] = signed(s << 8 | imm8, 12) & WORD
        elif kind == 12:
            a[t] = a[s] + signed(imm8, 8) & WORD
        elif kind == 13:
            a[t] = a[s] + (signed(imm8, 8) << 8) & WORD
        elif kind == 0:
            a[t] = self._bytes(a[s] + imm8, 1)[0]
        elif kind == 2:
            a[t] = int.from_bytes(self._bytes(a[s] + 4 * imm8, 4), "little")
        elif kind == 4:
            self._bytes(a[s] + imm8, 1)[:] = bytes([a[t] & 255])
        elif kind == 6:
            self._bytes(a[s] + 4 * imm8, 4)[:] = a[t].to_bytes(4, "little")
        else:
            raise AssertionError(f"unknown load, store or immediate {kind}")

    def _bytes(self, address: int, size: int) -> memoryview:
        address &= WORD
        assert address % size == 0, f"{address:#x} is no multiple of {size}: the processor raises an exception"
        for start, block in self.memory.items():
            if start <= address and address + size <= start + len(block):
                return memoryview(block)[address - start : address - start + size]
        raise AssertionError(f"no memory at {address:#x}")
