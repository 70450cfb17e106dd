"""Writes a kernel's source in three dialects of MicroPython from one template.

- `viper`: machine code. A pointer is a `ptr8`; moving it is an addition; an offset under 32 is part of the load.
- `bytecode`: every port. A pointer is an index into the buffer it belongs to.
- `float32`: bytecode over arrays of floats.

The buffers are A (the arena of activations), W (weights) and T (32-bit words: biases, multipliers). A kernel's
arguments are the buffers and then the offsets of its tensors in them, so layers of one shape share one kernel. Most
ports keep the first three arguments in registers (two of them in a precompiled file); `registers` names those that the
inner loop uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

NEAR = 32
"""A byte load takes an offset below this within one instruction on every Thumb processor."""


@dataclass(frozen=True)
class Pointer:
    """A position in one of the buffers; what `name` holds depends on the dialect. width: bytes of an element."""

    name: str
    buffer: str
    width: int = 1


X, Y, Z, P = (Pointer(name, "A") for name in "xyzp")
WEIGHTS = TABLE = Pointer("w", "W")


class Writer:
    """The lines of one kernel. `registers`: the pointers or integers ("s") in the first three arguments.

    places: the names of the integer arguments, in order.
    """

    def __init__(self, dialect: str, registers: Sequence[Pointer | str], places: Sequence[str]) -> None:
        self.viper = dialect == "viper"
        self.float = dialect == "float32"
        self.dialect = dialect
        self.lines: list[str] = []
        self._indent = 1
        self.registers = tuple(registers)
        self.places = tuple(places)
        self.buffers = self._buffers()
        if self.viper:
            held = {p.buffer: p.name for p in self.registers if isinstance(p, Pointer)}
            for buffer in self.buffers:
                self.line(f"{buffer} = int({held.get(buffer, '_' + buffer)})")

    def _buffers(self) -> tuple[str, ...]:
        """The buffers in the order of the arguments."""
        first = [p.buffer for p in self.registers if isinstance(p, Pointer)]
        return tuple(dict.fromkeys([*first, "A", "W", "T"]))

    def parameters(self) -> list[str]:
        """The kernel's parameters."""
        if not self.viper:
            return [*self.buffers, *self.places]
        held = [f"{p.name}: ptr8" if isinstance(p, Pointer) else f"{p}: int" for p in self.registers]
        covered = {p.buffer for p in self.registers if isinstance(p, Pointer)}
        rest = [f"_{b}: ptr8" for b in self.buffers if b not in covered]
        return [*held, *rest, *(f"{p}: int" for p in self.places)]

    def arguments(self) -> list[str]:
        """The arguments of a call before the offsets."""
        if not self.viper:
            return list(self.buffers)
        held = [p.buffer if isinstance(p, Pointer) else "0" for p in self.registers]
        return [*held, *(b for b in self.buffers if b not in held)]

    def call(self, name: str, places: Mapping[str, int | str]) -> str:
        """A call of the kernel with these offsets."""
        return f"{name}({', '.join([*self.arguments(), *(str(places[p]) for p in self.places)])})"

    def source(self, name: str) -> str:
        """The whole function."""
        head = "@micropython.viper\n" if self.viper else ""
        return f"{head}def {name}({', '.join(self.parameters())}):\n" + "\n".join(self.lines) + "\n"

    # -- lines --------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block: `with w.block("if s < 0"):`."""
        self.line(head + ":")
        self._indent += 1
        yield
        self._indent -= 1

    @contextmanager
    def times(self, counter: str, n: int) -> Iterator[None]:
        """A loop of n iterations; no loop if n is 1."""
        if n == 1:
            yield
            return
        self.line(f"{counter} = {n}")
        with self.block(f"while {counter}"):
            yield
            self.line(f"{counter} -= 1")

    # -- pointers -----------------------------------------------------------------------------------------------------

    def place(self, name: str, step: int = 0) -> str:
        """The address `step` elements after a place (one of the kernel's arguments)."""
        buffer = "W" if name == "wo" else "A"
        address = f"{buffer} + {name}" if self.viper else name
        return f"{address} {_signed(step)}" if step else address

    def address(self, p: Pointer) -> str:
        """Where p points, as an integer expression to keep in a local and pass to `go`."""
        return f"int({p.name})" if self.viper else p.name

    def go(self, p: Pointer, address: str) -> None:
        """Point p at a result of `address` or `place`."""
        self.line(f"{p.name} = ptr8({address})" if self.viper else f"{p.name} = {address}")

    def move(self, p: Pointer, step: int | str) -> None:
        """Move p by a number of elements."""
        if step == 0:
            return
        if isinstance(step, int):
            step *= p.width
        if self.viper:
            self.line(f"{p.name} = ptr8({self.address(p)} {_signed(step)})")
        elif isinstance(step, int) and step < 0:
            self.line(f"{p.name} -= {-step}")
        else:
            self.line(f"{p.name} += {step}")

    def go_all(self, *places: tuple[Pointer, str]) -> None:
        """As `go`, each pointer in turn."""
        for p, address in places:
            self.go(p, address)

    def move_all(self, *moves: tuple[Pointer, int | str]) -> None:
        """As `move`, each pointer in turn."""
        for p, step in moves:
            self.move(p, step)

    def load(self, p: Pointer, k: int | str = 0) -> str:
        """The element k after p, as an expression."""
        if self.viper:
            return f"{p.name}[{k}]"
        return f"{p.buffer}[{p.name}]" if k == 0 else f"{p.buffer}[{p.name} {_signed(k)}]"

    def store(self, p: Pointer, value: str, k: int = 0) -> None:
        self.line(f"{self.load(p, k)} = {value}")

    # -- words --------------------------------------------------------------------------------------------------------

    def table(self, name: str, place: str) -> None:
        """Make `name` point at words of T; a place counts words."""
        self.line(f"{name} = ptr32(T + ({place} << 2))" if self.viper else f"{name} = {place}")

    def word(self, name: str, k: int | str = 0) -> str:
        """Word k after `name`, in 0…2**30 - 1."""
        if self.viper:
            return f"{name}[{k}]"
        return f"T[{name}]" if k == 0 else f"T[{name} {_signed(k)}]"

    def move_table(self, name: str, words: int) -> None:
        self.line(f"{name} = ptr32(int({name}) + {4 * words})" if self.viper else f"{name} += {words}")


def _signed(step: int | str) -> str:
    if isinstance(step, str):
        return f"+ {step}"
    return f"+ {step}" if step >= 0 else f"- {-step}"
