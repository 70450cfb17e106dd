"""The kernel that turns numbers into ranks among the thresholds of trees: `rank`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.trees import Trees
from ..program import Port, Program


def has_ranks(port: Port) -> bool:
    """Whether a driver ranks numbers of an input: where thresholds begin is in two bytes each, and no feature is used
    twice."""
    return bool(port.cuts) and not port.nan[1] and starts_kind(port) == "H"


MOST_FEATURES = 64
"""Of more features, a driver ranks each: beside their numbers a forest's kernel needs 16 bytes for each."""


def is_forest(program: Program) -> bool:
    """Whether one kernel of a driver takes a list of features and runs all trees."""
    (port,) = program.inputs
    if port.cuts is None or len(port.cuts) > MOST_FEATURES or len(program.steps) != 1:
        return False
    layer = program.steps[0].layer
    return isinstance(layer, Trees) and max(layer.targets, len(layer.roots)) < 1 << 15


# Viper takes no constants of more than 30 bits. Floats with a sign and a magnitude in their bits are ordered as
# integers with the same sign and magnitude, which `order` makes of the thresholds. ptr32 may add zeros to
# their 32 bits.
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
                if v > (cuts[middle] ^ sign) - sign:
                    low = middle + 1
                else:
                    high = middle
            r = low - starts[i]
STORE
        i = i + 1

@micropython.viper
def order(cuts: ptr32, count: int):
    i = 31
    sign = 1 << i
    while count:
        count -= 1
        b = cuts[count]
        if b & sign:
            cuts[count] = 0 - (b & (sign - 1))
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
PLACES
    own = id(list), kept[4] + {}, id(array), kept[4] + {}, id(0.5) >> 1, addressof(places)
    for i in range(len(own)):
        kept[7 + i] = own[i]
    return drive if drive(numbers, 0) == 0 and bytes(y) == due else None
"""


_OF_RANKS = """\
    places = array("I", [addressof(t) for t in tables])"""

# A feature's NaN is as the threshold at its rank, or above all.
_OF_FOREST = """\
    cuts, starts, nan = tables
    ordered, places = array("I", bytes(cuts)), array("I", bytes(16 * size))
    for i in range(size):
        k = starts[i] + nan[i]
        places[4 * i + 1] = addressof(cuts) + 4 * starts[i]
        places[4 * i + 2] = ordered[k] if k < starts[i + 1] else 0x7FFFFFFF"""


def rank_source(program: Program, dialect: str, parts: Sequence[tuple[int, int]]) -> str:
    """The functions of a module of kernels. parts: those of a driver's table that rank a list and an array, in the
    order of numbers.WAYS, if it then may run the model in the same call."""
    (port,) = program.inputs
    assert port.cuts is not None
    whole = _WHOLE.replace("PLACES", _OF_FOREST if is_forest(program) else _OF_RANKS)
    text = _RANK if dialect == "viper" else _RANK_IN_BYTECODE
    text = text.replace("STORE", _STORE[port.size > len(port.cuts)])
    text = text.replace("STARTS", f"ptr{8 * np.dtype(starts_kind(port)).itemsize}")
    return text + whole.format(parts[1][0], parts[2][0]) if parts else text


def starts_kind(port: Port) -> str:
    """The kind of array that holds where each feature's thresholds begin."""
    return "H" if sum(map(len, port.cuts or ())) < 65536 else "I"
