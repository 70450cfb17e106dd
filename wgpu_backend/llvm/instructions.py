"""Reads the code of the kernels' functions (../wasm/assembler.py) back into instructions."""

from __future__ import annotations

import struct
from typing import Any

from ..wasm.opcodes import OPCODES, WIDER

Instruction = tuple[Any, ...]
_NAMES = {code: (name, type, align) for name, (code, type, align) in {**OPCODES, **WIDER}.items()}


def decoded(code: bytes, lanes: int) -> list[Instruction]:
    """The instructions of some code: (its first byte, what follows), or (name, what follows) of the many that have
    a name here. lanes: numbers in a vector."""
    out: list[Instruction] = []
    at = 0
    while at < len(code):
        byte = code[at]
        at += 1
        if byte in (0x20, 0x21, 0x22, 0x0C, 0x0D):
            number, at = _unsigned(code, at)
            out.append((byte, number))
        elif byte in (0x02, 0x03, 0x04):
            out.append((byte, code[at]))
            at += 1
        elif byte in (0x05, 0x0B, 0x0F, 0x1B):
            out.append((byte,))
        elif byte in (0x41, 0x42):
            number, at = _signed(code, at)
            out.append((byte, number))
        elif byte in (0x43, 0x44):
            size = 4 if byte == 0x43 else 8
            out.append((byte, code[at : at + size]))
            at += size
        else:
            found, at = _named(code, at - 1, lanes)
            out.append(found)
    return out


def _named(code: bytes, at: int, lanes: int) -> tuple[Instruction, int]:
    """The instruction of a name, or a constant vector, that begins there, and where the next one does."""
    start = at
    at += 1
    if code[start] in (0xFC, 0xFD):
        _, at = _unsigned(code, at)
    key = code[start:at]
    if key == b"\xfd\x0c":
        return (code[start], struct.unpack("<4I", code[at : at + 16])), at + 16
    name, _, align = _NAMES[bytes(key)]
    lane = name.endswith("_lane")
    if align is not None:
        _, at = _unsigned(code, at)
        offset, at = _unsigned(code, at)
        return (name, offset, code[at] if lane else 0), at + lane
    if name == "i8x16.shuffle":
        return (name, code[at : at + 4 * lanes]), at + 4 * lanes
    return ((name, code[at]), at + 1) if lane else ((name,), at)


def placed(code: list[list[Instruction]], params: int) -> set[int]:
    """The locals that are set more than once, or read where they may not have been set. A parameter is set at once."""
    found: set[int] = set()
    scopes = [0]  # the open ones, the function's first
    opened = 0
    begun: dict[int, int] = dict.fromkeys(range(params), 0)  # local -> the scope in which it is set
    for chunk in code:
        for what, *given in chunk:
            if what in (0x21, 0x22):
                if given[0] in begun:
                    found.add(given[0])
                begun[given[0]] = scopes[-1]
            elif what == 0x20:
                if begun.get(given[0]) not in scopes:
                    found.add(given[0])
            elif what in (0x02, 0x03, 0x04):
                opened += 1
                scopes.append(opened)
            elif what == 0x05:
                opened += 1
                scopes[-1] = opened
            elif what == 0x0B:
                scopes.pop()
    return found


def _unsigned(code: bytes, at: int) -> tuple[int, int]:
    """(value, offset behind it) of an unsigned LEB128 number."""
    out = shift = 0
    while True:
        byte = code[at]
        at += 1
        out |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return out, at


def _signed(code: bytes, at: int) -> tuple[int, int]:
    """The same of a signed one."""
    begin = at
    out, at = _unsigned(code, at)
    return (out - (1 << 7 * (at - begin)) if code[at - 1] & 0x40 else out), at
