"""The kernel that turns numbers into the bytes of an input by a grid: `put`. ranks.py has that for trees.

In viper they read the bits of float32 numbers, since viper computes with floats only as objects. A number becomes its
quotient by the step, rounded to 24 bits as float32 arithmetic does, then to the nearest integer, half to even. The step
itself has 29 bits (in bytecode those of the port's floats), so that numbers halfway between two steps stay there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..program import Port, Program
from .ranks import has_ranks, rank_source

SLACK = 8192
"""How far from a tie, in units of 2**-28 of a mantissa's quotient, a product with the reciprocal decides: its error is
below 2**12 + 34."""


FIELDS = 3
"""Words of `grid_table` for each number."""

BIAS = 64
"""What is added to an exponent there."""

RECIPROCAL = 18
"""Bits of the reciprocal there."""

BEYOND = 3e38
"""A number divided by this is zero: the step of a column that nothing reads."""


def grid_table(port: Port) -> list[int]:
    """What `put` takes for a grid: the zero point; by how many words to move on after each number, which is 0 if all
    have one step; then for each step what is subtracted from the number (a float32's bits), the step's mantissa (29
    bits), and its reciprocal (2**45 over it) beside its exponent (what is subtracted from that of a float32 number).
    """
    if port.columns is None:
        scale, zero = port.grid
        return [zero, 0, *_step(0.0, scale)]
    offsets, factors = port.columns.offset, port.columns.factor
    table = [port.zero, FIELDS]
    for offset, factor in zip(offsets, factors, strict=True):
        table += _step(float(offset), port.scale / float(factor) if factor else BEYOND)
    return table


def _step(offset: float, scale: float) -> list[int]:
    fraction, exponent = math.frexp(scale)
    mantissa = min(round(fraction * (1 << 29)), (1 << 29) - 1)
    reciprocal = round((1 << 45) / mantissa)
    bits = int(np.float32(offset + 0.0).view(np.uint32))  # no sign of a zero
    return [bits, mantissa, reciprocal | exponent - 24 + 150 + BIAS << RECIPROCAL]


TRIED = Port("", (2,), 0)
"""An input at the arena's start that tries the kernel of a driver."""


def in_grid(port: Port) -> bool:
    """Whether an input's elements are bytes of one grid, or of one for each column."""
    return port.cuts is None and port.width == 1


def has_grid(program: Program) -> bool:
    """Whether `put` needs its kernel."""
    return not program.is_float and any(map(in_grid, program.inputs))


def has_whole(program: Program) -> bool:
    """Whether `predict` may convert numbers and run in one call: there is one input, of elements of grids or of
    ranks."""
    if len(program.inputs) != 1 or program.is_float:
        return False
    return has_grid(program) or has_ranks(program.inputs[0])


def integers(program: Program) -> tuple[int, ...]:
    """The inputs whose bytes are numbers in steps of one: `put` takes them from bytes as a whole."""

    def is_one(port: Port) -> bool:
        return in_grid(port) and port.columns is None and (port.integer is not None or port.scale == 1)

    return () if program.is_float else tuple(k for k, port in enumerate(program.inputs) if is_one(port))


def inputs_source(
    program: Program, dialect: str, driven: Sequence[Sequence[tuple[int, int]]] = (), whole: bool = False
) -> str:
    """The functions of a module of kernels. driven: as Emitted.put in kernels.py, where a driver converts numbers;
    whole: whether it then may run the model in the same call."""
    for port in program.inputs:
        if port.cuts is not None:
            return rank_source(program, dialect, driven[0] if whole and driven else ())
    if not has_grid(program):
        return ""
    put_bytes = _PUT_BYTES
    if dialect == "viper":
        columns = any(port.columns is not None for port in program.inputs)
        put = _put(_COLUMNS if columns else "", _STEP if columns else "", "" if columns else _STEP)
    else:
        put, put_bytes = _PUT_IN_BYTECODE, _untyped(_PUT_BYTES)
    if driven:
        *parts, trial = map(tuple, driven)
        put = _PUT_DRIVEN.format(parts=tuple(parts), trial=trial, one=tuple(grid_table(TRIED)))
        if whole:
            ((_, (from_list, _), (from_array, _)),) = parts
            put += "\n" + _WHOLE.format(from_list=from_list, from_array=from_array)
    return f"{put}\n\n{put_bytes}" if integers(program) else put


def _put(offset: str, each: str, once: str) -> str:
    """The kernel. offset: subtracts that of a column; each, once: the step, read for each number or once."""
    begin = "at = 2 + table[1] * i" if each else "at = 2"
    text = _PUT.replace("OFFSET", offset or _NORMAL).replace("ONCE\n", once).replace("BEGIN", begin)
    text = text.replace("EACH\n", each and _indented(each))
    return text.replace("NEXT\n", "        at = at + table[1]\n" if each else "")


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _untyped(source: str) -> str:
    """A function in bytecode, from the same in viper."""
    source = source.replace("@micropython.viper\n", "").replace(": ptr8", "").replace(": int", "")
    return source.replace("x[count]", "x[count] & 255")  # arrays give signed numbers


# The quotient of the mantissas lies between 1/2 and 2. Where its product with the reciprocal is too close to a tie
# between q - 1 and q to decide, t does: twice the distance from it, in units of a step, exact even if its terms
# overflow. It is a tie within d, half the last of 24 bits.
#
# A column's offset is subtracted as float32 arithmetic does: the smaller number's mantissa is shifted to the other's
# exponent, with three more bits, the last of which says whether any bit was lost.
_PUT = f"""\
@micropython.viper
def put(x: ptr32, y: ptr8, i: int, end: int, table: ptr32, which: int) -> int:
    BEGIN
ONCE
    while i < end:
        b = x[0]
        x = ptr32(int(x) + 4)
        s = (b >> 31) & 1
        e = (b >> 23) & 255
        if e == 255:
            return 1
        m = b & 0x7FFFFF
OFFSET
EACH
        k = e - exponent
        q = 0
        if k > 8:
            q = 512
        elif k > 0 - 2:
            d = 28 - k
            t = (m >> 12) * reciprocal + ((m & 0xFFF) * reciprocal >> 12) + (1 << d >> 1)
            q = t >> d
            if (t + {SLACK}) & ((1 << d) - 1) < {2 * SLACK}:
                q = (t + {SLACK}) >> d
                t = (m << k + 6) - (q + q - 1) * mantissa
                d = 23 - k
                if m << 5 < mantissa:
                    d = d + 1
                d = mantissa >> d
                if t < 0 - d:
                    q = q - 1
                elif t <= d:
                    q = q - (q & 1)
        if s:
            q = 0 - q
        q = q + table[0]
        if q < 0:
            q = 0
        if q > 255:
            q = 255
        y[i] = q
        i = i + 1
NEXT
    return 0
"""

_STEP = f"""\
    mantissa = table[at + 1]
    reciprocal = table[at + 2]
    exponent = (reciprocal >> {RECIPROCAL}) - {BIAS}
    reciprocal = reciprocal & {(1 << RECIPROCAL) - 1}
"""

_NORMAL = """\
        m = m | 0x800000"""

_COLUMNS = """\
        if e:
            m = m | 0x800000
        else:
            e = 1
        b = table[at]
        if b:
            t = b & 0x7FFFFF
            d = (b >> 23) & 255
            if d:
                t = t | 0x800000
            else:
                d = 1
            m = m << 3
            t = t << 3
            if s:
                m = 0 - m
            if (b >> 31) & 1 == 0:
                t = 0 - t
            if e < d:
                k = m
                m = t
                t = k
                k = e
                e = d
                d = k
            d = e - d
            if d > 28:
                d = 28
            k = 0
            if t & (1 << d) - 1:
                k = 1
            t = m + (t >> d | k)
            s = 0
            if t < 0:
                s = 1
                t = 0 - t
            if t >= 0x8000000:
                t = t >> 1 | t & 1
                e = e + 1
            if t:
                while t < 0x4000000:
                    t = t << 1
                    e = e - 1
            else:
                e = 0
            m = (t + 3 + (t >> 3 & 1)) >> 3"""

# What `drive` takes here is in assembly/driver/numbers.py. `direct` gives a function that takes lists and arrays as
# they are, if the objects of the port are as expected: two numbers are tried at the start of the arena.
_PUT_DRIVEN = """\
from uctypes import addressof

def put(x, y, i, end, table, which):
    start, stop = {parts}[which][0]
    at = (addressof(table) >> 2) + 2 + table[1] * i
    return drive(a + (i >> 2), end - i, at, 0, start, stop, addressof(x) >> 2)

def direct(A, tables):
    from array import array

    one = array("I", {one})
    places = [(addressof(t[2]) >> 2) + 2 if t else 0 for t in tables]
    parts = {parts}

    def put(x, which, way):
        start, stop = parts[which][way]
        return drive(a, 0, places[which], 0.5, start, stop, x)

    def tried(x, way, due):
        start, stop = {trial}[way]
        return drive(a, 0, (addressof(one) >> 2) + 2, 0.5, start, stop, x) == due

    first, second = A[0], A[1]
    right = tried([3.0, 200.0], 1, 0) and A[0] == 3 and A[1] == 200
    right = right and tried(array("f", (5.0, 7.0)), 2, 0) and A[0] == 5 and A[1] == 7
    right = right and tried(array("i", (1, 2)), 2, 2)
    A[0], A[1] = first, second
    return put if right else None
"""

# What it keeps is said in assembly/driver/__init__.py. The table of calls begins at the fifth word.
_WHOLE = """\
def whole(tables):
    from array import array

    if not kept[4]:
        return None
    own = id(list), kept[4] + {from_list}, id(array), kept[4] + {from_array}, id(0.5) >> 1, addressof(tables[0][2]) + 8
    for i in range(len(own)):
        kept[7 + i] = own[i]
    return drive
"""

# flip: 128 for signed bytes, which then lie 128 above themselves.
_PUT_BYTES = """\
@micropython.viper
def put_bytes(x: ptr8, y: ptr8, count: int, flip: int, add: int):
    while count:
        count -= 1
        q = (x[count] ^ flip) + add
        if q >> 8:
            q = 0 if q < 0 else 255
        y[count] = q
"""

_PUT_IN_BYTECODE = f"""\
def put(x, y, i, end, table, which):
    from array import array

    one = array("f", [0.0])
    for v in x:
        if i == end:
            break
        at = 2 + table[1] * i
        if v - v != 0:
            return 1
        offset = array("f", bytes(array("I", (table[at],))))[0]
        step = table[at + 1] * 2.0 ** ((table[at + 2] >> {RECIPROCAL}) - {BIAS + 155})
        one[0] = v - offset
        v = one[0] / step
        one[0] = -512.0 if v < -512 else 512.0 if v > 512 else v
        q = round(one[0]) + table[0]
        y[i] = 0 if q < 0 else 255 if q > 255 else q
        i += 1
    return 0
"""
