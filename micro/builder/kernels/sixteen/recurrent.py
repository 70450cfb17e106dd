"""LSTM, GRU and plain recurrent layers on words.

The gates' sums are 24-bit numbers in steps of 2**-17 (`GATE`). The logistic function minus 0.5 is interpolated linearly
in a table of 769 words from 0 to 12, in steps of 2**-17; tanh(v) is twice its value at 2v. An LSTM's cell is kept in 24
bits in steps of 2**-17, a GRU's state in steps of 2**-22; the state multiplied with the weights is the output's word,
in steps of 2**-15.

The state of a plain layer with ReLU has no bound, so it is kept in words of the output's grid, and its sums in 1/32 of
a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...quantization.reference import Bytes, Floats, Ints
from ...quantization.sixteen import MOST, SumRequant, sum_requant, to_bytes
from ..layer import NameOf, Places, dense_view, emit_clamp
from ..recurrence import FINE, G, Gated, R, RecurrentLayer, RowsFrom, State
from ..words import number24, store24, store_word
from ..writer import WEIGHTS, P, Pointer, Writer, X, Y
from .dot import Dot16

GATE = 1 << 17
"""The number that stands for one in a gate's sum, in the logistic function's value, and in an LSTM's cell."""

KEPT = 1 << 22
"""The number that stands for one in the value kept for a GRU's unit."""

MIDDLE = 1 << 23
"""Added to a 24-bit number before it is stored in the arena, low byte first."""

HIDDEN = 1 << 15
"""The steps of one in the hidden state's words; also the word that stands for zero."""

FAR = 12
"""From here on the logistic function is one."""

FRACTION = 11
"""Bits of a sum between two places of the table, which are 1/64 apart."""


@dataclass(frozen=True)
class Sums16(Dot16):
    """Rows of weights that turn words into 24-bit numbers."""

    def reference(self, *inputs: Bytes) -> Ints:  # type: ignore[override]
        return self.numbers(*inputs).reshape(-1) - MIDDLE

    def words(self, _: str) -> list[int]:
        return self.constants()[1]

    def put(self, w: Writer) -> None:
        store24(w, Y)
        w.move(Y, 3)


def sums_of(ratio: Floats, bound: Floats, what: str = "layer") -> SumRequant:
    """How sums are rescaled to 24 bits. ratio: a step of the sums over a step of the result. Raises
    UnsupportedError."""
    return sum_requant(ratio, bound, MIDDLE, 0, 2 * MIDDLE - 1, what)


def load24(w: Writer, p: Pointer, k: int = 0) -> str:
    """The 24-bit number k that `store24` stored, minus MIDDLE."""
    return f"({number24(w, p, 3 * k)}) - {MIDDLE}"


def half_table() -> Ints:
    """The logistic function minus 0.5, from 0 to FAR in steps of 1/64."""
    x = np.arange(FAR * 64 + 1) / 64
    return np.minimum(np.rint(GATE * (1 / (1 + np.exp(-x)) - 0.5)), MOST).astype(np.int64)


def half(v: Ints) -> Ints:
    """The logistic function minus 0.5, of a number in steps of 1/GATE."""
    table, a = half_table(), np.minimum(np.abs(v), FAR * GATE)
    k = np.minimum(a >> FRACTION, FAR * 64 - 1)
    rise = table[k + 1] - table[k]
    y = table[k] + (rise * (a & (1 << FRACTION) - 1) + (1 << FRACTION - 1) >> FRACTION)
    return np.where(v < 0, -1, 1) * np.where(a >= FAR * GATE, MOST, y)


def logistic(v: Ints) -> Ints:
    """The logistic function, where one is GATE."""
    return half(v) + GATE // 2


def tanh(v: Ints) -> Ints:
    """tanh, where one is GATE / 2."""
    return half(2 * v)


def emit_half(w: Writer, name: str, value: str, is_tanh: bool = False, where: str = "") -> None:
    """Set `name` to `logistic`, or `tanh`, of an expression; WEIGHTS points at the table. Locals: s, v, k, d.

    where: the condition for `tanh`, if it is decided at run time.
    """
    w.line(f"s = {value}")
    w.line("v = s")
    with w.block("if s < 0"):
        w.line("v = 0 - s")
    if where:
        with w.block(f"if {where}"):
            w.line("v = v << 1")
    elif is_tanh:
        w.line("v = v << 1")
    with w.block(f"if v >= {FAR * GATE}"):
        w.line(f"{name} = {MOST}")
    with w.block("else"):
        w.line(f"k = v >> {FRACTION} << 1")
        w.line(f"d = {w.load(WEIGHTS, 'k')} | {w.load(WEIGHTS, 'k + 1')} << 8")
        w.line(f"k = ({w.load(WEIGHTS, 'k + 2')} | {w.load(WEIGHTS, 'k + 3')} << 8) - d")
        w.line(f"{name} = d + (k * (v & {(1 << FRACTION) - 1}) + {1 << FRACTION - 1} >> {FRACTION})")
    with w.block("if s < 0"):
        w.line(f"{name} = 0 - {name}")
    if where:
        with w.block(f"if not ({where})"):
            w.line(f"{name} = {name} + {GATE // 2}")
    elif not is_tanh:
        w.line(f"{name} = {name} + {GATE // 2}")


def gated(gate: Ints, kept: Ints) -> Ints:
    """gate * kept >> 12, of a gate and a number of 24 bits."""
    return gate * kept >> 12


def _gated(gate: str, kept: str) -> str:
    return f"{gate} * ({kept} >> 12) + ({gate} * ({kept} & 4095) >> 12)"


def gated_tanh(gate: Ints, value: Ints) -> Ints:
    """gate * value >> 9, of a gate and a tanh."""
    return gate * value >> 9


def _gated_tanh(gate: str, value: str) -> str:
    return f"({gate} >> 9) * {value} + (({gate} & 511) * {value} >> 9)"


def _word(w: Writer) -> None:
    """Clamp `s` to a word and store it."""
    emit_clamp(w, 0, MOST)
    store_word(w, Y)
    w.move(Y, 2)


def words_of(y: Ints, zero: int = HIDDEN, least: int = 0) -> Bytes:
    """The words of numbers in steps of the state, as bytes."""
    return to_bytes(np.clip(y + zero, least, MOST))


@dataclass(frozen=True)
class _Recurrent16(RecurrentLayer):
    """from_input, from_state: Sums16, whose sums have 24 bits."""

    element: ClassVar[int] = 2
    wide: ClassVar[int] = 3
    GATES: ClassVar[tuple[int, ...]] = ()
    """The arguments of `gates` for the kernel that computes gates before `update`, if there is one."""

    @property
    def start(self) -> int:
        return HIDDEN

    @cached_property
    def table(self) -> tuple[Ints, ...]:
        return (to_bytes(half_table()).astype(np.int64),)

    def rows_kernel(self, rows: Sums16, dialect: str) -> Writer:  # type: ignore[override]
        view = dense_view(rows.shape)
        return rows.emit(dialect, [view], view)

    def between(self, name: NameOf, dialect: str, places: Places, rows: RowsFrom) -> list[str]:
        if not self.GATES:
            return []
        gates = self.gates(dialect, *self.GATES)
        return [gates.call(name(gates), places)]

    def gates(self, dialect: str, count: int, of: int, tanh_left: int = 0) -> Writer:
        """A kernel for the first `count` of the `of` gates of each unit, which replaces the input's sums; separate
        because a loop's machine code must stay short. tanh_left: how many gates remain when a tanh is computed."""
        w = Writer(dialect, (X, "s", WEIGHTS), ("st", "zo", "wo"))
        w.go_all((WEIGHTS, w.place("wo")), (X, w.place("zo")), (R, w.place("zo", 3 * of * self.hidden)))
        with w.times("n", self.hidden):
            with w.times("j", count):
                where = f"j == {tanh_left}" if tanh_left else ""
                emit_half(w, "c", f"({load24(w, X)}) + ({load24(w, R)})", False, where)
                w.line(f"s = c + {MIDDLE}")
                store24(w, X)
                w.move_all((X, 3), (R, 3))
            w.move_all((X, 3 * (of - count)), (R, 3 * (of - count)))
        return w


@dataclass(frozen=True)
class Lstm16(_Recurrent16):
    """Four rows per unit in `from_input` and in `from_state`; a cell stays within ±64."""

    GATES: ClassVar[tuple[int, ...]] = (4, 4, 2)

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        sums = (self.from_input.reference(x) + self.from_state.reference(h)).reshape(self.hidden, 4)
        i, f, o = (logistic(sums[:, k]) for k in (0, 1, 3))
        c = (gated(f, c) + 16 >> 5) + (gated_tanh(i, tanh(sums[:, 2])) + 64 >> 7)
        c = np.clip(c, -MIDDLE, MIDDLE - 1)
        return words_of(gated_tanh(o, tanh(c)) + 256 >> 9), c

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 4))
        with w.times("n", self.hidden):
            for k, name in enumerate(("gi", "gf", "gg", "go")):
                w.line(f"{name} = {load24(w, X, k)}")
            w.line(f"c = {load24(w, P)}")
            w.line(f"s = ({_gated('gf', 'c')} + 16 >> 5) + ({_gated_tanh('gi', 'gg')} + 64 >> 7) + {MIDDLE}")
            emit_clamp(w, 0, 2 * MIDDLE - 1)
            store24(w, P)
            emit_half(w, "gg", f"s - {MIDDLE}", True)
            w.line(f"s = ({_gated_tanh('go', 'gg')} + 256 >> 9) + {HIDDEN}")
            _word(w)
            w.move_all((P, 3), (X, 12))


@dataclass(frozen=True)
class _Gru16(_Recurrent16):
    def mixed(self, z: Ints, n: Ints, c: Ints) -> State:
        """The state after a step, from its candidate."""
        c = (gated(z, c) + 16 >> 5) + (gated_tanh(GATE - z, n) + 2 >> 2)
        return words_of(c + 64 >> 7), c

    def mix(self, w: Writer) -> None:
        """The same, from `gz` and `gn`."""
        w.line(f"c = {load24(w, P)}")
        w.line(f"d = {GATE} - gz")
        w.line(f"c = ({_gated('gz', 'c')} + 16 >> 5) + ({_gated_tanh('d', 'gn')} + 2 >> 2)")
        w.line(f"s = c + {MIDDLE}")
        store24(w, P)
        w.line(f"s = (c + 64 >> 7) + {HIDDEN}")
        _word(w)
        w.move(P, 3)


@dataclass(frozen=True)
class Gru16(_Gru16):
    """Three rows per unit in `from_input` and in `from_state`. The reset gate is applied to the candidate's sum of the
    state."""

    GATES: ClassVar[tuple[int, ...]] = (2, 3)

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        a, b = (rows.reference(v).reshape(self.hidden, 3) for rows, v in zip(self.rows, (x, h), strict=True))
        z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
        return self.mixed(z, tanh(a[:, 2] + (gated(r, b[:, 2]) + 16 >> 5)), c)

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 3), (R, 3))
        with w.times("n", self.hidden):
            for k, name in enumerate(("gz", "gr")):
                w.line(f"{name} = {load24(w, X, k)}")
            w.line(f"c = {load24(w, R, 2)}")
            emit_half(w, "gn", f"({load24(w, X, 2)}) + ({_gated('gr', 'c')} + 16 >> 5)", True)
            self.mix(w)
            w.move_all((X, 9), (R, 9))


@dataclass(frozen=True)
class GatedGru16(Gated, _Gru16):
    """As Gru16, but the reset gate is applied to the state before its product."""

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        a = self.from_input.reference(x).reshape(self.hidden, 3)
        b = self.from_state.reference(h).reshape(self.hidden, 2)
        z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
        own = self.from_gated.reference(words_of(gated(r, c) + 2048 >> 12))
        return self.mixed(z, tanh(a[:, 2] + own), c)

    def gate(self, w: Writer) -> None:
        with w.times("n", self.hidden):
            emit_half(w, "gr", f"({load24(w, X, 1)}) + ({load24(w, R, 1)})")
            w.line(f"c = {load24(w, P)}")
            w.line(f"s = ({_gated('gr', 'c')} + 2048 >> 12) + {HIDDEN}")
            _word(w)
            w.move_all((P, 3), (X, 9), (R, 6))

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 3), (R, 2), (G, 1))
        with w.times("n", self.hidden):
            emit_half(w, "gz", f"({load24(w, X)}) + ({load24(w, R)})")
            emit_half(w, "gn", f"({load24(w, X, 2)}) + ({load24(w, G)})", True)
            self.mix(w)
            w.move_all((X, 9), (R, 6), (G, 3))


@dataclass(frozen=True)
class Rnn16(_Recurrent16):
    """One row per unit in `from_input` and in `from_state`, and tanh of their sum, or ReLU if `relu`; zero: the
    output's zero point with ReLU."""

    relu: bool = False
    zero: int = HIDDEN

    @property
    def start(self) -> int:
        return self.zero

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        v = self.from_input.reference(x) + self.from_state.reference(h)
        if self.relu:
            return words_of(v + FINE // 2 >> 5, self.zero, self.zero), c
        return words_of(tanh(v) + 1 >> 1), c

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 1), (R, 1))
        with w.times("n", self.hidden):
            s = f"({load24(w, X)}) + ({load24(w, R)})"
            if self.relu:
                w.line(f"s = ({s} + {FINE // 2} >> 5) + {self.zero}")
                emit_clamp(w, self.zero, MOST)
                store_word(w, Y)
                w.move(Y, 2)
            else:
                emit_half(w, "gn", s, True)
                w.line(f"s = (gn + 1 >> 1) + {HIDDEN}")
                _word(w)
            w.move_all((X, 3), (R, 3))
