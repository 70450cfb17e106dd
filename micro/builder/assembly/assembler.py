"""The base of all assemblers: labels, branches, and the listing.

Instructions are methods named as in the manuals; tests compare each encoding with GNU's assembler.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

Encode = Callable[[int], bytes]


@dataclass(frozen=True)
class Instruction:
    """code: its bytes; a branch has `encode` instead, a function of the distance from the branch to `target`."""

    text: str
    code: bytes
    target: str = ""
    encode: Encode | None = None


class Assembler:
    """A function being assembled. A label is any string; positions are byte offsets from the first instruction."""

    unit: ClassVar[int]
    """Bytes of what is stored with the lowest byte first."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.size = 0

    def register(self, number: int) -> str:
        """A register's name."""
        raise NotImplementedError

    def emit(self, text: str, code: bytes) -> None:
        """Append an instruction."""
        self.instructions.append(Instruction(text, code))
        self.size += len(code)

    def branch(self, text: str, size: int, target: str, encode: Encode) -> None:
        """Append a branch of `size` bytes."""
        self.instructions.append(Instruction(text, bytes(size), target, encode))
        self.size += size

    def label(self, name: str) -> None:
        """Set a label here."""
        assert name not in self.labels, name
        self.labels[name] = self.size

    def listing(self, outside: Mapping[str, int] | None = None) -> list[tuple[str, bytes]]:
        """Every instruction in the manual's syntax (branches as `b .+8`), with its bytes. outside: the places of labels
        that are not in this function; a branch to an unknown one is `b label`, in zeros."""
        labels, out, place = {**(outside or {}), **self.labels}, [], 0
        for one in self.instructions:
            if one.encode is None:
                out.append((one.text, one.code))
            elif one.target not in labels:
                out.append((f"{one.text} {one.target}", one.code))
            else:
                distance = labels[one.target] - place
                out.append((f"{one.text} .{distance:+d}", one.encode(distance)))
            place += len(one.code)
        return out

    def code(self, outside: Mapping[str, int] | None = None) -> bytes:
        """The machine code."""
        return b"".join(code for _, code in self.listing(outside))

    def text(self, name: str) -> str:
        """The function in the syntax of GNU's assembler."""
        targets = {place: label for label, place in self.labels.items()}
        lines, place = [f"{name}:"], 0
        for text, code in self.listing():
            if place in targets:
                lines.append(f"    // {targets[place]}")
            lines.append(f"    {text}")
            place += len(code)
        return "\n".join(lines) + "\n"


def instruction(text: str, bits: str, numbers: range | None = None) -> Callable[..., None]:
    """A method that appends an instruction.

    text: its syntax, with operands in braces; what follows "?" is there unless the number is zero. An operand of one
    letter is a register; one with a longer name is a number and the last argument, which may be left out if it is an
    offset, a shift or a rotation. bits: the encoding as in the manual, with an operand's first letter for each of its
    bits, the highest first. numbers: which numbers it takes, a range whose step is the unit of what is encoded.
    """
    bits = bits.replace(" ", "")
    operands = sorted(dict.fromkeys(re.findall(r"{(\w+)}", text)), key=lambda operand: len(operand) > 1)
    places = [_places(bits, operand[0]) for operand in operands]
    allowed = [range(1 << bits.count(operand[0])) for operand in operands]
    if numbers is not None:
        allowed[-1] = numbers
    fixed = int(re.sub("[^1]", "0", bits), 2)
    always, _, more = text.partition("?")

    def append(self: Assembler, *given: int) -> None:
        given += (0,) * (optional and len(given) < len(operands))
        code, names = fixed, {}
        for operand, at, values, value in zip(operands, places, allowed, given, strict=True):
            if value not in values:
                check(f"{operand} of {text}", value, values)
            for low, mask, place in at:
                code |= (value // values.step >> low & mask) << place
            names[operand] = str(value) if len(operand) > 1 else self.register(value)
        shown = always + more if more and given[-1] else always
        data = code.to_bytes(len(bits) // 8, "little")
        units = range(len(data) - self.unit, -1, -self.unit)
        self.emit(shown.format(**names), b"".join(data[k : k + self.unit] for k in units))

    optional = bool(operands) and operands[-1] in ("offset", "lsl", "ror")
    kind, none = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(name, kind, default=0 if optional and name == operands[-1] else none)
        for name in ("self", *operands)
    ]
    append.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return append


def _places(bits: str, letter: str) -> list[tuple[int, int, int]]:
    """Where the parts of an operand are in an encoding: each part's lowest bit, its mask, its place."""
    found, low = [], 0
    for part in reversed(list(re.finditer(f"{letter}+", bits))):
        width = part.end() - part.start()
        found.append((low, (1 << width) - 1, len(bits) - part.end()))
        low += width
    return found


def check(what: str, value: int, choices: Sequence[int]) -> int:
    """`value`, if an instruction can encode it. Raises ValueError otherwise."""
    if value not in choices:
        raise ValueError(f"{what} is {value}, which the instruction cannot encode")
    return value
