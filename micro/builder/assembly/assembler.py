"""The base of all assemblers: labels, branches, and the listing.

Instructions are methods named as in the manuals; tests compare each encoding with GNU's assembler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.size = 0

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


def check(what: str, value: int, choices: Sequence[int]) -> int:
    """`value`, if an instruction can encode it. Raises ValueError otherwise."""
    if value not in choices:
        raise ValueError(f"{what} is {value}, which the instruction cannot encode")
    return value
