"""Words that machine code holds and that are read where they are: constants of frozen modules, in flash.

MicroPython's firmware aligns the bytes of frozen modules to nothing, and their machine code to two bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from ..assembler import Assembler
from . import rv32, thumb, twice

CONSTANT: dict[str, Callable[[int, int], Assembler]] = {
    "dsp": thumb.constant,
    "thumb": thumb.constant,
    "rv32": rv32.constant,
}
"""By family of instruction sets, a function without arguments that returns a quarter of the address of words. Takes how
far from its instruction that reads the program counter they are, and how far behind them their copy is."""


def constant_words(family: str, words: bytes) -> bytes:
    """The machine code of such a function, with the words."""
    both, second = twice(words)
    own = CONSTANT[family](0, second)
    at = -(-own.size // 4) * 4
    return CONSTANT[family](at - own.labels["here"], second).code().ljust(at, b"\0") + both
