"""The values of a function that is written as LLVM IR: their names and types."""

from __future__ import annotations

import struct

SCALARS = {"i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}


class Values:
    """stack: (name, LLVM type) of the values that are not used yet; lanes: numbers of 32 bits in a vector; declared:
    the declarations of LLVM's functions that are called."""

    def __init__(self, lanes: int, declared: set[str]) -> None:
        self.lanes = lanes
        self.declared = declared
        self.lines: list[str] = []
        self.stack: list[tuple[str, str]] = []
        self.count = 0
        self.whole = f"<{lanes} x i32>"
        self.floats = f"<{lanes} x float>"

    def type(self, name: str) -> str:
        return SCALARS.get(name) or self.whole

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        """The name of a new value."""
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def push(self, type: str, text: str) -> None:
        self.stack.append((self.let(text), type))

    def pop(self, type: str) -> str:
        """The value on top of the stack, as a type of the same size."""
        name, known = self.stack.pop()
        return name if known == type else self.let(f"bitcast {known} {name} to {type}")

    def pops(self, type: str, count: int) -> list[str]:
        return [self.pop(type) for _ in range(count)][::-1]

    def intrinsic(self, name: str, type: str, result: str, *arguments: tuple[str, str]) -> None:
        """Push the result of LLVM's function of that name for a type."""
        kind = suffix(type)
        if name.startswith("fpto"):
            kind = suffix(result) + "." + kind
        whole = f"@llvm.{name}.{kind}"
        self.declared.add(f"declare {result} {whole}({', '.join([t for t, _ in arguments])})")
        self.push(result, f"call {result} {whole}({', '.join([t + ' ' + a for t, a in arguments])})")

    def splat(self, value: str, type: str) -> None:
        element = type[type.index("x ") + 2 : -1]
        one = self.let(f"insertelement {type} poison, {element} {value}, i32 0")
        count = type[1 : type.index(" x")]
        self.push(type, f"shufflevector {type} {one}, {type} poison, <{count} x i32> zeroinitializer")


def _short(type: str) -> str:
    return {"float": "f32", "double": "f64"}.get(type, type)


def suffix(type: str) -> str:
    if type[0] != "<":
        return _short(type)
    count, _, element = type[1:-1].partition(" x ")
    return f"v{count}{_short(element)}"


def float_text(data: bytes) -> str:
    """The text of a float32 or float64: LLVM writes both as the bits of a float64."""
    value = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if value != value:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
