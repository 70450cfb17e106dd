"""A kernel's variables: its arguments and others, in words on the stack.

MicroPython calls a machine-code function with an array of any number of arguments. All are small integers, so nothing
is allocated. Their encoding is the value shifted left by one, with the lowest bit set. The first four are the buffers'
addresses, as in emit/kernels.py: a quarter of the address of A, of W and of T, which always fits a small integer, and
the remainder of W's. The rest are the driver's (driver/), or on Xtensa a layer's: layers of one kind share one kernel
whatever their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

BUFFERS = 4
"""Arguments before the fields."""


class Frame:
    """Maps names to offsets in bytes from the stack pointer. fields: the arguments of a call, in order; own: other
    words."""

    def __init__(self, fields: Sequence[str], own: Sequence[str] = (), extra: int = 0) -> None:
        self.fields = tuple(fields)
        names = [*fields, *own]
        assert len(set(names)) == len(names), names
        self._places = {name: 4 * k for k, name in enumerate(names)}
        self.block = 4 * len(names)
        self.size = (self.block + extra + 7) & ~7

    def __getitem__(self, name: str) -> int:
        return self._places[name]

    def pair(self, first: str, second: str) -> int:
        """The offset of two adjacent words."""
        assert self._places[second] == self._places[first] + 4, (first, second)
        return self._places[first]
