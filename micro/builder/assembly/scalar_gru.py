"""Whole GRU layers on the scalar machine, where rows of weights are short: all steps in one call.

Rows of weights are first unpacked, four at a time: a word holds the weights of two rows in its halves, so that one
multiplication with a number of the input gives both products. With T the sum of these words and H that of their upper
halves, the first row's sum is T - (H << 16), and the second one's is H. A step then computes all sums of the input,
those of the state, and the units' new values, as `update` in kernels/recurrent.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..kernels.recurrence import HIDDEN, MIDDLE, UNIT, RecurrentLayer, Rows
from ..kernels.recurrent import Gru
from ..quantization.reference import ZERO, Requant
from .driver import Call, Kernel
from .driver.numbers import Numbers, NumbersRv32, NumbersThumb
from .frame import Frame
from .scalar import H0, H1, H2, H3, V0, V1, V2, V3, V4, V5, V6, V7
from .scalar_dot import BYTE, clamp_to

MOST_NUMBERS = 32
"""Numbers of an input and of a state together, in a layer whose rows are short."""

LEAST_STEPS, MOST_ROOM = 4, 2560
"""Rows are unpacked in a layer of so many steps, and if they then take no more bytes."""

AT_ONCE = 4
"""Rows whose sums are computed at once."""

WORD = 1 << 31

GATE, CANDIDATE = 4 + (512 << 3), 2 + (512 << 2)
"""What is added to a gate's and to the candidate's sum to make it a place in the table, shifted; sums of the input hold
the first one."""

FIELDS = ("x", "xstep", "y", "ystep", "steps", "st", "table", "w", "q", "lift x", "lift h", "room")
"""As dsp_recurrent.FIELDS, the table's first byte. room: where the rows are unpacked."""

OWN = ("rows h", "sums", "cells", "unit", "half", "candidate", "low", "from x", "from h", "table2", "h", "end", "out")
"""Where the unpacked rows of the state are, the sums, and the units' values in words; constants; the second half of the
table; where the bytes of the state are, and where they end."""

_MACHINES: dict[str, type[Numbers]] = {"thumb": NumbersThumb, "rv32": NumbersRv32}

FAMILIES = _MACHINES.keys()


@dataclass(frozen=True)
class Shape:
    """k, hidden: numbers of the input and of the state; rests: as `_rest`, of their sums."""

    k: int
    hidden: int
    rests: tuple[int, int]
    sequence: bool

    @property
    def frame(self) -> Frame:
        return Frame(FIELDS, (*OWN, *(f"x {n}" for n in range(max(self.k, self.hidden)))))

    @property
    def groups(self) -> int:
        return 3 * self.hidden // AT_ONCE

    def size(self, k: int) -> int:
        """The bytes of unpacked rows of k weights."""
        return 4 * self.groups * (2 * AT_ONCE + AT_ONCE // 2 * k)

    @property
    def room(self) -> int:
        """The scratch memory: all unpacked rows, the sums and the units' values, and three bytes to begin at a word."""
        return self.size(self.k) + self.size(self.hidden) + 4 * (6 * self.hidden + self.hidden) + 3


def shape_of(layer: RecurrentLayer) -> Shape | None:
    """The shape of a layer that this runs, else None: its rows are short, and none of its sums is clamped."""
    if not isinstance(layer, Gru) or layer.hidden % AT_ONCE or layer.steps < LEAST_STEPS:
        return None
    k = layer.from_input.weights.shape[1]
    first, second = map(_rest, layer.rows)
    if first is None or second is None or k + layer.hidden > MOST_NUMBERS:
        return None
    shape = Shape(k, layer.hidden, (first, second), layer.sequence)
    return shape if shape.room <= MOST_ROOM else None


def _rest(rows: Rows) -> int | None:
    """The last shift of the sums' products, after BYTE bits are shifted out of a low byte's, or None if they are not
    rescaled as here, or may leave the range of 16 bits or of a word."""
    r = rows.requant
    if type(r) is not Requant or (r.low, r.high, r.zero) != (0, 2 * MIDDLE - 1, MIDDLE):
        return None
    weights, multipliers = rows.weights.astype(np.int64) - ZERO, np.asarray(r.multipliers, np.int64)
    up, down = np.maximum(weights, 0).sum(1), np.minimum(weights, 0).sum(1)
    ends = np.stack([rows.bias - rows.zero * (up + down) + 255 * part for part in (down, up)]) * multipliers
    most, rest = int(np.abs(ends).max()), r.shift - BYTE
    if rest < 1 or most >> r.shift >= MIDDLE - 2 or int(multipliers.max()) << BYTE > WORD:
        return None
    return rest if (most >> BYTE) + int(multipliers.max()) + (GATE + 1 << rest) < WORD else None


def call(layer: RecurrentLayer, shape: Shape, family: str, places: Mapping[str, int]) -> Call:
    """The call that runs all steps."""
    (x, y), (xstep, ystep) = layer.walk(places)
    table = sum(part.size for part in layer.table)
    numbers = {"x": x, "y": y, "xstep": xstep, "ystep": ystep, "steps": layer.steps, "st": places["st"]}
    numbers |= {"table": places["wo"], "w": places["wo"] + table, "q": 4 * (places["to"] + 2)}
    numbers |= {"lift x": layer.from_input.lift, "lift h": layer.from_state.lift, "room": places["zs"] + 3 & ~3}
    name = f"whole_gru_{shape.k}x{shape.hidden}_by_{shape.rests[0]}_{shape.rests[1]}" + "_sequence" * shape.sequence
    return Call(Kernel(name, partial(_gru, family, shape), shape.frame), numbers)


def _constant(a: Numbers, value: int, place: int) -> None:
    """A word on the stack = value. Clobbers V0 and V1."""
    a.number(V0, abs(value) >> 24)
    for bits in (16, 8, 0):
        a.left(V0, 8)
        a.number(V1, abs(value) >> bits & 255)
        a.plus(V0, V1)
    if value < 0:
        a.number(V1, 0)
        a.minus(V1, V0)
        a.copy(V0, V1)
    a.put(V0, place)


def _gru(family: str, shape: Shape) -> Numbers:
    a, f = _MACHINES[family](), shape.frame
    a.enter(f, {"x": "A", "y": "A", "st": "A", "room": "A", "table": "W", "w": "W", "q": "T"})
    rests = shape.rests
    constants = {"unit": UNIT, "half": UNIT >> 1, "candidate": CANDIDATE - GATE, "table2": 1024}
    constants |= {"from x": (GATE << rests[0]) + (1 << rests[0] >> 1), "from h": 1 << rests[1] >> 1, "low": MIDDLE}
    for name, value in constants.items():
        _constant(a, value, f[name])
    a.get(V0, f["table"])
    a.get(V1, f["table2"])
    a.plus(V0, V1)
    a.put(V0, f["table2"])
    a.get(V2, f["room"])
    _unpack(a, f, shape, shape.k, "lift x")
    a.put(V2, f["rows h"])
    a.get(V1, f["q"])
    a.step(V1, 8)  # the words before the pairs
    a.put(V1, f["q"])
    _unpack(a, f, shape, shape.hidden, "lift h")
    a.put(V2, f["sums"])
    _read_cells(a, f, shape)

    a.label("step")
    a.get(V3, f["sums"])
    a.copy(H3, V3)
    a.get(V0, f["x"])
    _expand(a, f, shape.k)
    a.get(V0, f["room"])
    _sums(a, f, shape, 0)
    a.get(V0, f["st"])
    a.put(V0, f["h"])
    _expand(a, f, shape.hidden)
    a.get(V0, f["rows h"])
    _sums(a, f, shape, 1)
    _units(a, f, shape)
    for name, step in (("x", "xstep"), ("y", "ystep")) if shape.sequence else (("x", "xstep"),):
        a.get(V0, f[name])
        a.get(V1, f[step])
        a.plus(V0, V1)
        a.put(V0, f[name])
    a.get(V0, f["steps"])
    a.step(V0, -1)
    a.put(V0, f["steps"])
    a.go_if_not_zero_now(V0, "step", far=True)
    _write_cells(a, f, shape)
    a.leave(f)
    return a


def _unpack(a: Numbers, f: Frame, shape: Shape, k: int, lift: str) -> None:
    """Unpack rows of k weights to V2, which moves on, as do w and q."""
    a.get(V0, f["w"])
    a.get(V1, f["q"])
    a.number(V7, shape.groups)
    a.label(f"unpack {lift}")
    for pair in (0, 1):
        a.get(V5, f[lift])
        for d, at in ((V3, 16 * pair), (V4, 16 * pair + 8)):
            a.word(d, V1, at)
            a.minus(d, V5)
        a.left_from(V6, V4, 16)
        a.plus(V3, V6)
        a.store_word(V3, V2, 8 * pair)
        a.store_word(V4, V2, 8 * pair + 4)
    a.step(V2, 16)
    a.number(V5, k)
    for pair in (0, 1):
        a.number(V6, k)
        a.label(f"weights {lift} {pair}")
        a.byte(V3, V0)
        a.byte_at(V4, V0, V5)
        a.left(V4, 16)
        a.plus(V3, V4)
        a.store_word(V3, V2, 4 * pair)
        a.step(V0, 1)
        a.step(V2, 8)
        a.step(V6, -1)
        a.go_if_not_zero_now(V6, f"weights {lift} {pair}")
        a.plus(V0, V5)
        if not pair:
            a.step(V2, -8 * k)
    for row in range(AT_ONCE):
        a.word(V3, V1, 8 * row + 4)
        a.store_word(V3, V2, 4 * row)
    a.step(V2, 16)
    a.step(V1, 8 * AT_ONCE)
    a.step(V7, -1)
    a.go_if_not_zero_now(V7, f"unpack {lift}", far=True)
    a.put(V0, f["w"])
    a.put(V1, f["q"])


def _read_cells(a: Numbers, f: Frame, shape: Shape) -> None:
    """The units' values become words behind the sums, which begin at V2."""
    a.number(V3, 6 * shape.hidden)
    a.left(V3, 2)
    a.plus(V2, V3)
    a.put(V2, f["cells"])
    a.get(V0, f["st"])
    a.number(V7, shape.hidden)
    a.plus(V0, V7)
    a.put(V0, f["end"])
    a.get(V4, f["low"])
    a.label("read cells")
    a.byte(V3, V0, 1)
    a.left(V3, 8)
    a.byte(V5, V0)
    a.plus(V3, V5)
    a.minus(V3, V4)
    a.store_word(V3, V2)
    a.step(V0, 2)
    a.step(V2, 4)
    a.step(V7, -1)
    a.go_if_not_zero_now(V7, "read cells")


def _write_cells(a: Numbers, f: Frame, shape: Shape) -> None:
    """The other way round, to the state."""
    a.get(V0, f["end"])
    a.get(V2, f["cells"])
    a.get(V4, f["low"])
    a.number(V7, shape.hidden)
    a.label("write cells")
    a.word(V3, V2)
    a.plus(V3, V4)
    a.store_byte(V3, V0)
    a.right_by(V3, V3, 8)
    a.store_byte(V3, V0, 1)
    a.step(V0, 2)
    a.step(V2, 4)
    a.step(V7, -1)
    a.go_if_not_zero_now(V7, "write cells")


def _expand(a: Numbers, f: Frame, k: int) -> None:
    """The bytes at V0 become words on the stack. H0, H1: what their sum adds to the sums H and T of each row."""
    a.number(V2, 0)
    for n in range(k):
        a.byte(V3, V0, n)
        a.put(V3, f[f"x {n}"])
        a.plus(V2, V3)
    a.left(V2, 7)
    a.number(V3, 0)
    a.minus(V3, V2)
    a.copy(H0, V3)
    a.left_from(V2, V3, 16)
    a.plus(V2, V3)
    a.copy(H1, V2)


def _sums(a: Numbers, f: Frame, shape: Shape, which: int) -> None:
    """The sums of the input (0) or of the state (1), rescaled, whose unpacked rows are at V0, to H3."""
    k, rest = (shape.k, shape.hidden)[which], shape.rests[which]
    a.get(V1, f["from h" if which else "from x"])
    a.copy(H2, V1)
    a.label(f"rows {which}")
    rows = V2, V3, V4, V5
    a.take_words(V0, rows)
    for total, upper in ((V2, V3), (V4, V5)):
        a.plus(total, H1)
        a.plus(upper, H0)
    for n in range(k):
        a.get(V1, f[f"x {n}"])
        a.take_words(V0, (V6, V7))
        for total, upper, product in ((V2, V3, V6), (V4, V5, V7)):
            a.times(product, V1)
            a.plus(total, product)
            a.right_plain(product, 16)
            a.plus(upper, product)
    for total, upper in ((V2, V3), (V4, V5)):
        a.left_from(V1, upper, 16)
        a.minus(total, V1)
    for n in range(0, AT_ONCE, 2):
        a.take_words(V0, (V6, V7))
        for s, m in zip(rows[n : n + 2], (V6, V7), strict=True):
            a.right_by(V1, s, BYTE)
            a.times(V1, m)
            a.low_byte(s)
            a.times(s, m)
            a.right_by(s, s, BYTE)
            a.plus(s, V1)
            a.plus(s, H2)
            a.right_by(s, s, rest)
    a.copy(V1, H3)
    a.put_words(V1, rows)
    a.copy(H3, V1)
    a.get(V1, f["sums" if which else "rows h"])
    if which:
        a.go_if("eq", V0, V1, "summed")
        a.go(f"rows {which}")
        a.label("summed")
        return
    a.go_if("ne", V0, V1, f"rows {which}", far=True)


def _place(a: Numbers, d: int, bits: int, spare: int, mark: str) -> None:
    """A sum becomes the table's number at its place, V7: the table, V6: its second half. Clobbers `spare`."""
    a.right_by(d, d, bits)
    clamp_to(a, d, spare, 10, mark)
    a.byte_at(spare, V7, d)
    a.byte_at(d, V6, d)
    a.left(spare, 8)
    a.plus(d, spare)


def _units(a: Numbers, f: Frame, shape: Shape) -> None:
    """H0: the sums of the input; H1: those of the state; H2: the units' values."""
    a.get(V0, f["sums"])
    a.copy(H0, V0)
    a.number(V1, 3 * shape.hidden)
    a.left(V1, 2)
    a.plus(V0, V1)
    a.copy(H1, V0)
    a.get(V0, f["cells"])
    a.copy(H2, V0)
    if shape.sequence:
        a.get(V0, f["y"])
        a.put(V0, f["out"])
    a.label("unit")
    for high, sums in ((H0, (V0, V1, V2)), (H1, (V3, V4, V5))):
        a.copy(V7, high)
        a.take_words(V7, sums)
        a.copy(high, V7)
    a.get(V7, f["table"])
    a.get(V6, f["table2"])
    a.plus(V0, V3)
    _place(a, V0, 3, V3, "update")
    a.plus(V1, V4)
    _place(a, V1, 3, V3, "reset")
    a.times(V5, V1)
    a.get(V4, f["half"])
    a.plus(V5, V4)
    a.right_by(V5, V5, 14)
    a.plus(V2, V5)
    a.get(V3, f["candidate"])
    a.plus(V2, V3)
    _place(a, V2, 2, V3, "candidate")
    a.left(V2, 1)
    a.get(V3, f["unit"])
    a.minus(V2, V3)
    # update * (before - candidate) + one * candidate
    a.copy(V7, H2)
    a.word(V1, V7)
    a.minus(V1, V2)
    a.times(V1, V0)
    a.left(V2, 14)
    a.plus(V1, V2)
    a.plus(V1, V4)
    a.right_by(V1, V1, 14)
    a.put_words(V7, (V1,))
    a.copy(H2, V7)
    a.step(V1, 64)
    a.right_by(V1, V1, 7)
    a.step(V1, HIDDEN)
    clamp_to(a, V1, V3, 8, "byte")
    pointers = ("h", "out") if shape.sequence else ("h",)
    for name in pointers[::-1]:
        a.get(V3, f[name])
        a.store_byte(V1, V3)
        a.step(V3, 1)
        a.put(V3, f[name])
    a.get(V4, f["end"])
    a.go_if("ne", V3, V4, "unit", far=True)
