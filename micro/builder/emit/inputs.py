"""The kernels that turn numbers into the bytes of an input: `put`, by a grid, and `rank`, by the thresholds of trees.

In viper they read the bits of float32 numbers, since viper computes with floats only as objects. A number becomes its
quotient by the step, rounded to 24 bits as float32 arithmetic does, then to the nearest integer, half to even. The step
itself has 29 bits (in bytecode those of the port's floats), so that numbers halfway between two steps stay there.
"""

from __future__ import annotations

import math

import numpy as np

from ..program import Port, Program

FEW = 8
"""As many numbers cost less in bytecode: a call of a kernel, and what prepares it, take 19,000 instructions on a
Cortex-M7."""

SLACK = 8192
"""How far from a tie, in units of 2**-28 of a mantissa's quotient, a product with the reciprocal decides: its error is
below 2**12 + 34."""


def steps(port: Port) -> tuple[int, int, int, int]:
    """What `put` takes for a grid: the step's mantissa (29 bits), its reciprocal (2**45 over it), its exponent (what is
    subtracted from that of a float32 number), and the zero point."""
    scale, zero = (port.scale, port.zero) if port.integer is None else (1.0, port.integer)
    fraction, exponent = math.frexp(scale)
    mantissa = min(round(fraction * (1 << 29)), (1 << 29) - 1)
    return mantissa, round((1 << 45) / mantissa), exponent - 24 + 150, zero


def has_grid(program: Program) -> bool:
    """Whether `put` writes many bytes of a grid into one of the inputs: more than FEW numbers."""
    return not program.is_float and any(
        p.cuts is None and p.columns is None and p.width == 1 and p.size > FEW for p in program.inputs
    )


def integers(program: Program) -> tuple[int, ...]:
    """The inputs whose bytes are numbers in steps of one: `put` takes more than FEW of them from bytes as a whole."""

    def is_one(port: Port) -> bool:
        grid = port.cuts is None and port.columns is None and port.width == 1
        return grid and port.size > FEW and (port.integer is not None or port.scale == 1)

    return () if program.is_float else tuple(k for k, port in enumerate(program.inputs) if is_one(port))


def inputs_source(program: Program, dialect: str) -> str:
    """The functions of a module of kernels."""
    for port in program.inputs:
        if port.cuts is not None:
            return _rank(port, dialect)
    if not has_grid(program):
        return ""
    put, put_bytes = (_PUT, _PUT_BYTES) if dialect == "viper" else (_PUT_IN_BYTECODE, _untyped(_PUT_BYTES))
    return f"{put}\n\n{put_bytes}" if integers(program) else put


def _untyped(source: str) -> str:
    """A function in bytecode, from the same in viper."""
    source = source.replace("@micropython.viper\n", "").replace(": ptr8", "").replace(": int", "")
    return source.replace("x[count]", "x[count] & 255")  # arrays give signed numbers


# The quotient of the mantissas lies between 1/2 and 2. Where its product with the reciprocal is too close to a tie
# between q - 1 and q to decide, t does: twice the distance from it, in units of a step, exact even if its terms
# overflow. It is a tie within d, half the last of 24 bits.
_PUT = f"""\
@micropython.viper
def put(x: ptr32, y: ptr8, count: int, mantissa: int, reciprocal: int, exponent: int, zero: int) -> int:
    i = 0
    while i < count:
        b = x[i]
        k = ((b >> 23) & 255) - exponent
        q = 0
        if k > 8:
            if (b >> 23) & 255 == 255:
                return i + 1
            q = 512
        elif k > 0 - 2:
            m = (b & 0x7FFFFF) | 0x800000
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
        if (b >> 31) & 1:
            q = 0 - q
        q = q + zero
        if q < 0:
            q = 0
        if q > 255:
            q = 255
        y[i] = q
        i = i + 1
    return 0
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

_PUT_IN_BYTECODE = """\
def put(x, y, count, mantissa, reciprocal, exponent, zero):
    from array import array

    step, one = mantissa * 2.0 ** (exponent - 155), array("f", [0.0])
    for i in range(count):
        v = x[i]
        if v - v != 0:
            return i + 1
        v = v / step
        one[0] = -512.0 if v < -512 else 512.0 if v > 512 else v
        q = round(one[0]) + zero
        y[i] = 0 if q < 0 else 255 if q > 255 else q
    return 0
"""

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


def _rank(port: Port, dialect: str) -> str:
    assert port.cuts is not None
    text = _RANK if dialect == "viper" else _RANK_IN_BYTECODE
    text = text.replace("STORE", _STORE[port.size > len(port.cuts)])
    return text.replace("STARTS", f"ptr{8 * np.dtype(starts_kind(port)).itemsize}")


def starts_kind(port: Port) -> str:
    """The kind of array that holds where each feature's thresholds begin."""
    return "H" if sum(map(len, port.cuts or ())) < 65536 else "I"
