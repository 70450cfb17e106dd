"""A kernel's variables: the numbers it is called with, and others beside them, in words on the stack.

MicroPython calls a function of machine code with an array of its arguments, however many there are. These are all small
integers, so nothing is allocated and nothing has to be known of the interpreter but how it writes them: shifted left by
one, the lowest bit set. The first four say where the buffers lie, as `at` and `low` in emit/kernels.py make them: a
quarter of the address of A, of W and of T, which fits a small integer wherever memory lies, and what that leaves of
W's. The rest are a layer's: layers of one kind share one kernel whatever their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

BUFFERS = 4
"""Arguments before the fields."""


class Frame:
    """Names to places, in bytes from the stack pointer. fields: what a call passes, in order; own: other words."""

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
        """The place of two words that lie side by side."""
        assert self._places[second] == self._places[first] + 4, (first, second)
        return self._places[first]
