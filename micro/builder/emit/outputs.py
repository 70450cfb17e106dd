"""The numbers of a large output: `get` makes one float for each byte that occurs, and lists it wherever it does.

A float is an object of 16 bytes on a small board, and takes some 500 instructions to make; elements of a list may be
the same object. Lists are written as MicroPython's py/objlist.h lays them out, where a module has found that `put` can
read them so.
"""

from __future__ import annotations

from ..program import Port, Program
from .inputs import has_grid

LARGE = 256
"""An output of more numbers has fewer different bytes than numbers."""


def is_large(port: Port) -> bool:
    """Whether `get` makes fewer floats than an output has numbers."""
    return port.width == 1 and not port.sums and port.size > LARGE


def has_large(program: Program) -> bool:
    """Whether a module has the kernels, where a driver of assembly kernels reads lists for `put`."""
    return not program.is_float and has_grid(program) and any(map(is_large, program.outputs))


def outputs_source(program: Program, driven: bool) -> str:
    """The functions of a module of kernels."""
    return _KERNELS if driven and has_large(program) else ""


_KERNELS = f"""\
@micropython.viper
def occurring(y: ptr8, count: int, found: ptr8) -> int:
    k = {LARGE}
    while count:
        count -= 1
        q = y[count]
        if found[q] == 0:
            found[q] = 1
            found[k] = q
            k += 1
    return k

@micropython.viper
def fill_list(y: ptr8, count: int, to: ptr32, table: ptr32):
    to = ptr32(to[3])
    table = ptr32(table[3])
    while count:
        count -= 1
        to[count] = table[y[count]]

def numbers(y, scale, zero):
    found, table, out = bytearray({2 * LARGE}), [None] * {LARGE}, [None] * len(y)
    for q in found[{LARGE}:occurring(y, len(y), found)]:
        table[q] = scale * (q - zero)
    fill_list(y, len(y), id(out), id(table))
    return out
"""

GET_LARGE = f"""\
    if _direct and len(outputs[which]) > {LARGE}:
        return _kernels.numbers(outputs[which], scale, zero)
"""
