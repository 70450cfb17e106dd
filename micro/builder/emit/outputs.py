"""The numbers of an output, where a module has a driver of assembly kernels.

A float is an object of 16 bytes on a small board. Of a large output `get` makes one for each byte that occurs, and
lists it wherever it does; elements of a list may be the same object. Lists are written as MicroPython's py/objlist.h
lays them out, where a module has found that `put` can read them so. Of a smaller output `get` writes all numbers into
an array, of which MicroPython then makes a list at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program import Port, Program
from .inputs import has_grid

LARGE = 256
"""An output of more numbers has fewer different bytes than numbers."""


def is_large(port: Port) -> bool:
    """Whether `get` makes fewer floats than an output has numbers."""
    return port.width == 1 and not port.sums and port.size > LARGE


FEW, ROOM = 12, 64
"""A list of fewer numbers is made as fast without an array. The array of up to ROOM numbers is made once."""


def is_listed(port: Port) -> bool:
    """Whether `get` makes a list of an array of an output's numbers."""
    real = port.width == 1 and not port.sums and port.integer is None and 1e-30 < port.scale < 1e30
    return real and FEW <= port.size <= LARGE


def room(port: Port) -> str:
    """The array for an output's numbers, empty if `get` makes one, or None if it takes none."""
    if not is_listed(port):
        return "None"
    return f"array('f', bytes({4 * port.size}))" if port.size <= ROOM else "()"


def has_large(program: Program) -> bool:
    """Whether `get` has an output of more than LARGE numbers."""
    return _driven(program) and any(map(is_large, program.outputs))


def has_listed(program: Program) -> bool:
    """Whether `get` has an output that is listed by an array."""
    return _driven(program) and any(map(is_listed, program.outputs))


def _driven(program: Program) -> bool:
    """Whether a module may find that a driver of assembly kernels reads lists."""
    return not program.is_float and has_grid(program)


def outputs_source(program: Program, driven: bool, listed: Sequence[tuple[int, int]]) -> str:
    """The functions of a module of kernels. listed: as Emitted.listed in kernels.py."""
    if not driven:
        return ""
    parts = [_KERNELS] * has_large(program)
    if any(map(is_listed, program.outputs)):
        parts.append(_LISTED.format(parts=tuple(listed)))
    return "\n\n".join(parts)


_LISTED = """\
def listed(to, which):
    start, stop = {parts}[which]
    drive(a, 0, 0, 0, start, stop, addressof(to) >> 2)
"""

GET_LISTED = """\
    if _direct and _rooms[which] is not None:
        numbers = _rooms[which] or array("f", bytes(4 * len(outputs[which])))
        _kernels.listed(numbers, which)
        return list(numbers)
"""

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
