"""The kernel that turns numbers into ranks among the thresholds of trees: `rank`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..program import Port


def has_ranks(port: Port) -> bool:
    """Whether a driver ranks numbers of an input: where thresholds begin is in two bytes each, and no feature is used
    twice."""
    return bool(port.cuts) and not port.nan[1] and starts_kind(port) == "H"


# Viper takes no constants of more than 30 bits. Floats with a sign and a magnitude in their bits are ordered as
# integers with the same sign and magnitude.
_RANK = """\
@micropython.viper
def rank(x: ptr32, y: ptr8, count: int, cuts: ptr32, starts: STARTS, nan: ptr16):
    i = 31
    sign = 1 << i
    most = sign - 1 - 0x7FFFFF
    i = 0
    while i < count:
        b = x[i]
        v = b & (sign - 1)
        if v > most:
            r = nan[i]
        else:
            if b & sign:
                v = 0 - v
            low = starts[i]
            high = starts[i + 1]
            while low < high:
                middle = (low + high) >> 1
                b = cuts[middle]
                c = b & (sign - 1)
                if b & sign:
                    c = 0 - c
                if v > c:
                    low = middle + 1
                else:
                    high = middle
            r = low - starts[i]
STORE
        i = i + 1
"""

_RANK_IN_BYTECODE = """\
def rank(x, y, count, cuts, starts, nan):
    for i in range(count):
        v, low, high = x[i], starts[i], starts[i + 1]
        while low < high:
            middle = (low + high) >> 1
            if v > cuts[middle]:
                low = middle + 1
            else:
                high = middle
        r = low - starts[i] if v == v else nan[i]
STORE
"""

_STORE = (
    "        y[i] = r",
    "        y[i + i] = r & 255\n        y[i + i + 1] = r >> 8",
)

# The outcome of numbers in a list is compared with that of the same numbers in `rank`.
_WHOLE = """
def whole(x, y, *tables):
    global places
    from array import array
    from uctypes import addressof

    if not kept[4]:
        return None
    size = len(tables[1]) - 1
    numbers = [0.375 * (i & 7) - 1 for i in range(size)]
    rank(array("f", numbers), x, size, *tables)
    drive()
    due = bytes(y)
    places = array("I", [addressof(t) for t in tables])
    own = id(list), kept[4] + {}, id(array), kept[4] + {}, id(0.5) >> 1, addressof(places)
    for i in range(len(own)):
        kept[7 + i] = own[i]
    return drive if drive(numbers, 0) == 0 and bytes(y) == due else None
"""


def rank_source(port: Port, dialect: str, parts: Sequence[tuple[int, int]]) -> str:
    """The functions of a module of kernels. parts: those of a driver's table that rank a list and an array, in the
    order of numbers.WAYS, if it then may run the model in the same call."""
    assert port.cuts is not None
    text = _RANK if dialect == "viper" else _RANK_IN_BYTECODE
    text = text.replace("STORE", _STORE[port.size > len(port.cuts)])
    text = text.replace("STARTS", f"ptr{8 * np.dtype(starts_kind(port)).itemsize}")
    return text + _WHOLE.format(parts[1][0], parts[2][0]) if parts else text


def starts_kind(port: Port) -> str:
    """The kind of array that holds where each feature's thresholds begin."""
    return "H" if sum(map(len, port.cuts or ())) < 65536 else "I"
