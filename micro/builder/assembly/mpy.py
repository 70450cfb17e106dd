"""Machine code in .mpy files: replacing the code of functions in a compiled module.

mpy-cross compiles an empty viper function for each kernel; this module replaces its code with the kernel's. Firmware
calls both in the same way, `f(self, n_args, n_kw, args)`. Functions made by `@micropython.asm_thumb` are unsuitable:
firmware for the ESP32 and the Unix port is built without the inline assembler and calls them wrongly.

The format is that of MicroPython's py/persistentcode.c, version 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emberlet.errors import FormatError

VIPER = 2
_STRINGS = range(5, 10)
_TUPLE = 10


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise FormatError(f"the .mpy file ends at byte {len(self.data)}, expected {count} more")
        self.at += count
        return part

    def uint(self) -> int:
        value = 0
        while True:
            byte = self.take(1)[0]
            value = value << 7 | byte & 127
            if byte < 128:
                return value


def uint(value: int) -> bytes:
    """An unsigned number, seven bits per byte, the highest first."""
    out = [value & 127]
    while value := value >> 7:
        out.append(value & 127 | 128)
    return bytes(reversed(out))


def with_machine_code(mpy: bytes, functions: Sequence[str], code: Mapping[str, bytes]) -> bytes:
    """The .mpy file with other code in some functions.

    functions: the names of the module's functions, in their order; code: machine code by name.

    Raises:
        FormatError: the file is not a .mpy file of version 6, or a function in `code` is not a viper function.
    """
    r = _Reader(mpy)
    if r.take(2) != b"M\x06":
        raise FormatError("expected a .mpy file of version 6")
    flags = r.take(2)[0]
    if flags & 0x40:
        r.uint()  # flags of the architecture
    strings, objects = r.uint(), r.uint()
    for _ in range(strings):
        length = r.uint()
        if not length & 1:
            r.take((length >> 1) + 1)
    for _ in range(objects):
        _skip_object(r)
    head = r.uint()
    has_children = head & 4
    if head & 3:
        raise FormatError("expected a module in bytecode")
    r.take(head >> 3)
    count = r.uint() if has_children else 0
    if count != len(functions):
        raise FormatError(f"the .mpy file has {count} functions, expected {len(functions)}")
    parts, start = [], 0
    for name in functions:
        if name in code:
            parts.append(mpy[start : r.at])
            own = r.uint()
            if own & 3 != VIPER or own & 4:
                raise FormatError(f"{name} is not a separate viper function")
            r.take(own >> 3)
            parts.append(uint(len(code[name]) << 3 | VIPER) + code[name])
            start = r.at
            r.uint()
        else:
            _skip_code(r)
    return b"".join([*parts, mpy[start:]])


def _skip_object(r: _Reader) -> None:
    kind = r.take(1)[0]
    if kind == _TUPLE:
        for _ in range(r.uint()):
            _skip_object(r)
    elif kind in _STRINGS:
        length = r.uint()
        r.take(length + (1 if kind in (5, 6) else 0))


def _skip_code(r: _Reader) -> None:
    head = r.uint()
    r.take(head >> 3)
    if head & 3:
        r.uint()  # the prelude's offset, or the scope's flags
    if head & 4:
        for _ in range(r.uint()):
            _skip_code(r)
