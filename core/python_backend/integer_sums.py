"""Sums of products of 8-bit levels, many at a time: an integer of Python is as long as it has to be, and C multiplies
and adds it whole, so one integer holds a row of sums, 32 bits each. CPython only.

A sum of floats costs a step of the interpreter's for each product; here a step is a product of a level and a row.
"""

import sys
from array import array

from .level_buffers import codes_of

try:
    from operator import mul
    from weakref import ref
except ImportError:  # MicroPython, which does not come here
    pass

MOST = 1 << 15  # products within 255 * 255 that 32 bits sum
FEWEST = 8  # sums in a row: shorter ones are not worth the packing


def packed(codes, count):
    """The integer whose rows of 32 bits are bytes."""
    wide = bytearray(4 * count)
    wide[::4] = codes
    return int.from_bytes(wide, "little")


def repeated(value, count):
    """The integer with one number in each row."""
    return value * (_tops(count) >> 31)


def unpacked(total, count):
    """The rows of an integer, as signed numbers of 32 bits."""
    tops = _tops(count)
    out = array("i", ((total + tops) ^ tops).to_bytes(4 * count, "little"))
    if sys.byteorder == "big":
        out.byteswap()
    return out


_known_tops = {}


def _tops(count):
    found = _known_tops.get(count)
    if found is None:
        if len(_known_tops) > 64:
            _known_tops.clear()
        found = _known_tops[count] = int.from_bytes(b"\0\0\0\x80" * count, "little")
    return found


_made = {}  # id of a buffer -> (a weak reference to it, its bytes then, {what was made of it})


def made_of(x, key, make):
    """make(), or what it gave for the levels x before, as long as their buffer is there and has not changed."""
    buffer = x.data[0]
    now = bytes(buffer) if type(buffer) in (array, memoryview) else None
    if now is None:
        return make()
    at = id(buffer)
    held = _made.get(at)
    if held is None or held[0]() is not buffer or held[1] != now:
        held = _made[at] = ref(buffer, lambda _: _made.pop(at, None)), now, {}
    key = key + (x.data[1:], x.shape)
    if key not in held[2]:
        if len(held[2]) > 8:
            held[2].clear()
        held[2][key] = make()
    return held[2][key]


def rows_of(weights, x, axis, terms):
    """The weights of each term for all channels, an integer each: x, the levels, has the channels last (axis 1) or
    first, and `terms` of each."""

    def make():
        codes, zeros = codes_of(x), weights.zeros
        n = len(zeros)
        middle = sum([z << (32 * i) for i, z in enumerate(zeros)])
        cut = [codes[i * n : (i + 1) * n] if axis else codes[i::terms] for i in range(terms)]
        return [packed(row, n) - middle for row in cut]

    return made_of(x, ("rows", axis, tuple(weights.zeros)), make)


def lists_of(weights, x, terms):
    """The weights of each channel, a list of integers each."""

    def make():
        codes, out = codes_of(x), []
        for i, zero in enumerate(weights.zeros):
            less = list(range(-zero, 256 - zero))
            out.append([less[c] for c in codes[i * terms : (i + 1) * terms]])
        return out

    return made_of(x, ("lists", tuple(weights.zeros)), make)


def products(parts, zero, rows, channels):
    """The sums of all channels, an array for each of some sequences of codes. rows: as of `rows_of`."""
    less = list(range(-zero, 256 - zero))
    return [unpacked(sum(map(mul, [less[c] for c in part], rows)), channels) for part in parts]


def correlations(seen, zero, positions, lists):
    """The sums of each channel, an array of all positions. seen: the codes that each tap sees there; lists: the taps'
    weights of each channel."""
    columns = [packed(codes, positions) for codes in seen]
    ones = repeated(zero, positions)
    return [unpacked(sum(map(mul, taken, columns)) - sum(taken) * ones, positions) for taken in lists]
