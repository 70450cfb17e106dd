"""One machine-code function for a whole model, which calls assembly kernels as a table says.

The function is `drive(a, w, t, l, start, end, i)`: the buffers' addresses (emit/kernels.py), the part of the table to
run, in bytes, and what is added to an offset "i" of the input. Behind its own code come the table and the kernels. A
call in the table is a word, then the fields in groups of four, of 16 bits each if they fit, else of 32. The word holds
a quarter of the kernel's place from the table (16 bits), two flags, and from the highest bit on a bit for each group,
set if it is one of 32 bits, and a last bit that is set. MicroPython's firmware places frozen code at any multiple of
two, where words cannot be read on every processor: code that is to be frozen has the table twice, and uses the one at a
multiple of four.

If `start` lies behind `end`, nothing runs: the words of the state are kept at `i`, the address of an array in words, as
for a call from `end` to `start`, and `drive()` then is that call without the cost of seven arguments. MicroPython gives
a function its own object, whose word at CHILDREN is not used for machine code; there the array's address is kept. An
eighth argument, the function, shows that this is so; the call returns 1, or 0 if it is not. `drive(numbers, 0)` first
puts a list or an array of floats into the input; it returns 0, or what numbers.py says, and then has run nothing else.
Users call it as `run`: it ignores one argument, which a timer or a scheduler gives its callback, and does nothing but
return 2 for another number of arguments, or for a part that is not made of words.

While a kernel runs, its frame (frame.py) is at the stack pointer and holds the fields; V0, V1 and V2 (r0, r1 and r2)
are the addresses of A, W and T. It may change every register of the scalar machine, and ends with a branch to `DRIVER`.
Above the frame are the words of `STATE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from emberlet.errors import UnsupportedError

from ..assembler import Assembler
from ..frame import Frame

DRIVER = "driver"
"""The label to which kernels return."""

STATE = ("A", "W", "T", "base", "position", "end", "i", "o", "count", "i step", "o step", "back", "answer", "then")
"""base: the table's address; position: of the next call; i, o: what is added to offsets; count to back: of a loop;
answer: what `drive` returns; then: where to go on after a number's conversion, or 0, and then half the address of a
float is at "o" and that of the steps at "count"."""

ARGUMENTS = 7
"""Of `drive`."""

CHILDREN = 8
"""Where a function object (MicroPython's mp_obj_fun_bc_t) has its table of inner functions, which these have not."""

KEPT = (*STATE[:7], "list", "from list", "array", "from array", "float", "steps")
"""The kept words: those of the state that `drive()` begins with, and for `drive(numbers, 0)` two types, where the calls
are that convert them, half the address of a float, and the address of the steps of the numbers' grid."""

SPANS = 4
"""Fields are copied to the frame in groups of so many."""

PLUS_I, PLUS_O = 1 << 16, 1 << 17
"""Flags of a call's first word: add i to the first field, o to the second."""

GROUPS = 18
"""The bits of the first word below those of the groups."""


@dataclass(frozen=True)
class Kernel:
    """A function in assembly, named after its variant. frame: its arguments."""

    name: str
    make: Callable[[], Assembler]
    frame: Frame

    def assembled(self) -> Assembler:
        """Its instructions."""
        return _assembled(self.make)


@cache
def _assembled(make: Callable[[], Assembler]) -> Assembler:
    return make()


@dataclass(frozen=True)
class Call:
    """A call of a kernel with its arguments by name; a string is a variable of `run`."""

    kernel: Kernel
    numbers: Mapping[str, int | str]

    def line(self) -> str:
        """The line of `run`, where a kernel is a function of its own."""
        fields = ", ".join(str(self.numbers[name]) for name in self.kernel.frame.fields)
        return f"{self.kernel.name}(a, w, t, l, {fields})"

    def entry(self, place: int) -> list[int]:
        """The words of the table. place: the kernel's, in bytes from the table. Raises UnsupportedError if it is 256 KB
        or more."""
        if place >> 2 > 0xFFFF:
            raise UnsupportedError(
                f"the model's table of calls of assembly kernels is too large: they start {place:,} bytes after its "
                "start, and 262,140 is the most; build with --kernels viper, which is slower but has no table"
            )
        given = [self.numbers[name] for name in self.kernel.frame.fields]
        flags = (PLUS_I if given[:1] == ["i"] else 0) | (PLUS_O if given[1:2] == ["o"] else 0)
        fields = [0 if isinstance(field, str) else field for field in given]
        groups = -(-len(fields) // SPANS)
        fields += [0] * (SPANS * groups - len(fields))
        head, words = place >> 2 | flags | 1 << 31 - groups, []
        for k in range(groups):
            group = fields[SPANS * k : SPANS * (k + 1)]
            if all(-(1 << 15) <= field < 1 << 15 for field in group):
                pairs = zip(group[::2], group[1::2], strict=True)
                words += [(first & 0xFFFF) | (second & 0xFFFF) << 16 for first, second in pairs]
            else:
                head |= 1 << 31 - k
                words += [field & 0xFFFFFFFF for field in group]
        return [head, *words]


Begin = Callable[[int, int, int], Assembler]
"""The driver's own code. Takes the size of the largest frame, how far from its instruction that reads the program
counter the table is, and how far behind the table its copy is, 0 if there is none."""


def twice(words: bytes) -> tuple[bytes, int]:
    """Words for code at any multiple of two, two times, of which one is at a multiple of four; and how far the second
    is behind the first."""
    return words + b"\0\0" + words + b"\0\0", len(words) + 2


class Table:
    """The calls of a model. begin: the driver's code on an instruction set."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._calls: list[Call] = []
        self.kernels: dict[str, Kernel] = {}
        self._size = 0

    def add(self, calls: Sequence[Call]) -> tuple[int, int]:
        """Append calls; returns where they start and end."""
        start = self._size
        for call in calls:
            self.kernels.setdefault(call.kernel.name, call.kernel)
            self._calls.append(call)
            self._size += 4 * len(call.entry(0))
        return start, self._size

    def calls(self, start: int, end: int) -> list[Call]:
        """The calls of a part."""
        found, place = [], 0
        for call in self._calls:
            if start <= place < end:
                found.append(call)
            place += 4 * len(call.entry(0))
        return found

    @property
    def frame(self) -> int:
        """Bytes of the largest frame."""
        sizes = (max(k.frame.size, 4 * SPANS * -(-len(k.frame.fields) // SPANS)) for k in self.kernels.values())
        return -(-max(sizes, default=0) // 16) * 16

    def code(self, frozen: bool = False) -> bytes:
        """The function's machine code. frozen: it may be at any multiple of two. Raises UnsupportedError if the table
        is too large."""
        parts = {name: kernel.assembled() for name, kernel in self.kernels.items()}
        table, second = twice(bytes(self._size)) if frozen else (bytes(self._size), 0)
        own = self._begin(self.frame, 0, second)
        at = -(-own.size // 4) * 4
        own = self._begin(self.frame, at - own.labels["here"], second)
        places, place = {}, at + len(table)
        for name, part in parts.items():
            places[name] = place
            place += -(-part.size // 4) * 4
        words = [word for call in self._calls for word in call.entry(places[call.kernel.name] - at)]
        table = b"".join(word.to_bytes(4, "little") for word in words)
        code = own.code().ljust(at, b"\0") + (twice(table)[0] if frozen else table)
        for name, part in parts.items():
            body = part.code({DRIVER: own.labels[DRIVER] - places[name]})
            code += body + bytes(-len(body) % 4)
        return code
