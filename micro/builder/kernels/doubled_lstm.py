"""LSTM layers of .tflite files, as LiteRT computes them: bytes for the input and the hidden state, words of 16 bits for
the gates and the cell.

A gate's sum is in steps of 2**-12. The logistic function and tanh are gemmlowp's on 16 bits (`squash`): an exponential
from a polynomial and a product of constants, then a division by three steps of Newton's method. Values of gates are in
steps of 2**-15, and a cell is in steps of a power of two.

Sources: tensorflow/lite/kernels/lstm_eval.cc (LstmStepInteger8x8_16) and
unidirectional_sequence_lstm.cc; tensorflow/lite/kernels/internal/reference/portable_tensor_utils.cc;
gemmlowp/fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph import Grid
from ..quantization.doubled import high_product, shifted
from ..quantization.reference import Bytes, Ints
from .layer import NameOf, Places, emit_clamp
from .recurrence import MIDDLE, RecurrentLayer, RowsFrom, State, load16, store16
from .recurrent_float import LstmFloat
from .writer import P, Pointer, Writer, X, Y

ONE = (1 << 15) - 1
"""The greatest word: nearly one in steps of 2**-15."""

GATE_BITS = 3
"""Bits before the point of a gate's sum."""

LEAST, MOST = -15, -9
"""The exponents of a cell's step for which LiteRT has a tanh."""

POWERS = (25520, 19875, 12055, 4435, 600, 11, 0, 0, 0)
"""exp(-2**n) from n = -2 on, in steps of 2**-15. Beyond n = 4 the exponential is zero."""

EIGHTH = 28918  # exp(-1/8)
THIRD = 10923
FIRST, SLOPE = 23130, 15420  # 48/17 and 32/17, in steps of 2**-13: the first guess of a quotient

CONSTANTS = (*POWERS, THIRD, EIGHTH, FIRST, SLOPE, ONE, ONE + 1)
"""The last words of T; kernels in viper read the first ones only."""


def _times(a: Ints, b: Ints | int) -> Ints:
    """The product of two words, where one is 2**15, rounded half up."""
    return a * b + (1 << 14) >> 15


def _exponential(a: Ints, bits: int) -> Ints:
    """exp of negative numbers with this many bits before the point."""
    quarter = 1 << 13 - bits
    part = (a & quarter - 1) - quarter
    x = (part << bits) + (1 << 12)
    x2 = _times(x, x)
    rest = shifted(_times(x2, x2), 2) + _times(x2, x)
    y = EIGHTH + _times(x + shifted(_times(rest, THIRD) + x2, 1), EIGHTH)
    whole = part - a >> 13 - bits
    for k, power in enumerate(POWERS):
        y = np.where(whole >> k & 1, _times(y, power), y)
    return np.where(a < -(1 << 20 - bits), 0, y) if bits > 5 else y


def squash(v: Ints, bits: int, tanh: bool) -> Ints:
    """The logistic function, or tanh, of words with this many bits before the point, in steps of 2**-15."""
    half = _exponential(-np.abs(v), bits + tanh) + ONE + 1 >> 1
    x = FIRST + _times(half, -SLOPE)
    for _ in range(3):
        x = x + (_times(x, (1 << 13) - _times(half, x)) << 2)
    if tanh:
        y = np.minimum(x - (1 << 13) << 2, ONE)
        return np.where(v == 0, 0, np.where(v < 0, -y, y))
    y = np.minimum(x << 1, ONE)
    return np.where(v == 0, 1 << 14, np.where(v < 0, ONE - y, y))


def _emit_squash(w: Writer, bits: str, tanh: str, p: Pointer) -> None:
    """Write code that replaces the number 0…65535 in `s`, less MIDDLE, by `squash` of it, plus MIDDLE, and stores it.

    bits: of the exponential, an expression; tanh: a condition, "1" for always; "to": the place of `POWERS`. Locals: v,
    a, b, d, e, f, q.
    """
    w.line(f"v = s - {MIDDLE}")
    w.line("a = v")
    with w.block("if v > 0"):
        w.line("a = 0 - v")
    w.line(f"b = 13 - ({bits})")
    w.line("d = 1 << b")
    w.line("f = (a & d - 1) - d")
    w.line("d = f - a >> b")
    w.line("e = (f << 13 - b) + 4096")
    w.line("f = e * e + 16384 >> 15")
    w.line("s = ((f * f + 16384 >> 15) + 2 >> 2) + (e * f + 16384 >> 15)")
    w.line(f"s = e + ((s * {THIRD} + 16384 >> 15) + f + 1 >> 1)")
    w.line(f"f = {EIGHTH} + (s * {EIGHTH} + 16384 >> 15)")
    w.table("q", "to")
    with w.block("while d > 0"):  # it is -1 for zero
        with w.block("if d & 1"):
            w.line(f"f = f * {w.word('q')} + 16384 >> 15")
        w.move_table("q", 1)
        w.line("d = d >> 1")
    with w.block("if b < 8 and a < 0 - (1 << b + 7)"):
        w.line("f = 0")
    w.line("f = f + 32768 >> 1")
    w.line(f"e = {FIRST} + (16384 - f * {SLOPE} >> 15)")
    for _ in range(3):
        w.line("e = e + ((e * (8192 - (f * e + 16384 >> 15)) + 16384 >> 15) << 2)")
    w.line("f = e - 8192 << 2")
    w.line("d = 0")
    if tanh != "1":
        with w.block(f"if not ({tanh})"):
            w.line("f = e << 1")
            w.line(f"d = {ONE}")
    with w.block(f"if f > {ONE}"):
        w.line(f"f = {ONE}")
    with w.block("if v < 0"):
        w.line("f = d - f")
    with w.block("if v == 0"):
        w.line("f = d + 1 >> 1")
    w.line(f"s = f + {MIDDLE}")
    store16(w, p, "s")


def _emit_shifted(w: Writer, name: str, bits: int) -> None:
    """`shifted` of a local, whose words never exceed its own."""
    with w.block(f"if {name} < 0"):
        w.line(f"{name} -= 1")
    w.line(f"{name} = ({name} >> {bits - 1}) + 1 >> 1")


@dataclass(frozen=True)
class FileNumbers:
    """What a file holds for an LSTM in int8; rows are ordered as in `recurrent`.

    input_weights (4 * hidden, K), state_weights (4 * hidden, hidden): bytes around 128; bias (4 * hidden,): in steps
    of the input's sums; input_scales, state_scales: one for each gate; state: the hidden state's grid as the products
    read it; result: the grid on which it is written; cell: the exponent of the cell's step; clip: the cell's limit in
    these steps, or 0.
    """

    input_weights: Bytes
    state_weights: Bytes
    bias: Ints
    input_scales: tuple[float, ...]
    state_scales: tuple[float, ...]
    state: Grid
    result: Grid
    cell: int
    clip: int


@dataclass(frozen=True)
class DoubledLstmFloat(LstmFloat):
    """An LSTM of a .tflite file in int8, in real numbers."""

    numbers: FileNumbers


@dataclass(frozen=True)
class DoubledLstm(RecurrentLayer):
    """Four rows per unit in `from_input` and in `from_state`, which adds to the sums of `from_input`.

    zero: the hidden state's; cell, clip: as in FileNumbers; multiplier, shift, result: of `quantize_multiplier`, which
    takes the product of a gate and a tanh to the hidden state's bytes, and their zero point.
    """

    zero: int
    cell: int
    clip: int
    multiplier: int
    shift: int
    result: int

    @property
    def start(self) -> int:
        return self.zero

    @property
    def table(self) -> tuple[Ints, ...]:
        return ()

    @property
    def scratch(self) -> int:
        """The gates, then tanh of the cells."""
        return 10 * self.hidden

    def constants(self) -> tuple[Bytes, list[int]]:
        weights, words = super().constants()
        return weights, [*words, *CONSTANTS]

    def constants_at(self, places: Places) -> int:
        """Where CONSTANTS are in T."""
        return places["to"] + sum(len(rows.words(self.name)) for rows in self.rows)

    @property
    def ends_of_cells(self) -> tuple[int, int]:
        """What cells are clamped to, MIDDLE above themselves."""
        low, high = (-self.clip, self.clip) if self.clip else (-MIDDLE, MIDDLE - 1)
        return low + MIDDLE, high + MIDDLE

    @property
    def parts_of_multiplier(self) -> tuple[int, int, int]:
        """Ten bits each, the lowest first."""
        return self.multiplier & 1023, self.multiplier >> 10 & 1023, self.multiplier >> 20

    def places_of_rows(self, places: Places, n: int) -> dict[str, int]:
        return {**super().places_of_rows(places, n), "o": places["zo"]}

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        sums = self.from_state.reference(h, self.from_input.reference(x)).reshape(self.hidden, 4)
        i, f, o = (squash(sums[:, k], GATE_BITS, False) for k in (0, 1, 3))
        g = squash(sums[:, 2], GATE_BITS, True)
        c = np.clip(shifted(f * c, 15) + shifted(i * g, 30 + self.cell), -MIDDLE, MIDDLE - 1)
        c = np.clip(c, -self.clip, self.clip) if self.clip else c
        product = high_product(o * squash(c, 15 + self.cell, True), self.multiplier)
        return np.clip(shifted(product, -self.shift) + self.result, 0, 255).astype(np.uint8), c

    def between(self, name: NameOf, dialect: str, places: Places, rows: RowsFrom) -> list[str]:
        """The gates' functions, the cells, and tanh of these."""
        own = {**places, "to": self.constants_at(places)}
        return [w.call(name(w), own) for w in (self._gates(dialect), self._cells(dialect), self._tanh(dialect))]

    def _gates(self, dialect: str) -> Writer:
        w = Writer(dialect, ("e", "f", X), ("zo", "to"))
        w.go(X, w.place("zo"))
        with w.times("n", self.hidden):
            w.line("j = 4")
            with w.block("while j"):
                w.line(f"s = {w.load(X)} + ({w.load(X, 1)} << 8)")
                _emit_squash(w, f"{GATE_BITS + 1} if j == 2 else {GATE_BITS}", "j == 2", X)
                w.move(X, 2)
                w.line("j -= 1")
        return w

    def _cells(self, dialect: str) -> Writer:
        w = Writer(dialect, (X, "s", P), ("st", "zo"))
        w.go_all((X, w.place("zo")), (P, w.place("st", self.hidden)))
        with w.times("n", self.hidden):
            w.line(f"s = ({load16(w, X, 2)}) * ({load16(w, P)})")
            _emit_shifted(w, "s", 15)
            w.line(f"v = ({load16(w, X)}) * ({load16(w, X, 4)})")
            _emit_shifted(w, "v", 30 + self.cell)
            w.line("s = s + v")
            w.line(f"s = s + {MIDDLE}")
            emit_clamp(w, *self.ends_of_cells)
            store16(w, P, "s")
            w.move_all((X, 8), (P, 2))
        return w

    def _tanh(self, dialect: str) -> Writer:
        w = Writer(dialect, ("e", "f", X), ("st", "zo", "to"))
        w.go_all((X, w.place("zo", 8 * self.hidden)), (P, w.place("st", self.hidden)))
        with w.times("n", self.hidden):
            w.line(f"s = {w.load(P)} + ({w.load(P, 1)} << 8)")
            _emit_squash(w, str(16 + self.cell), "1", X)
            w.move_all((X, 2), (P, 2))
        return w

    def units(self, dialect: str) -> Writer:
        """The hidden state: a product of a word and a word, of 30 bits, times a multiplier of 31, in parts of 15 and of
        10 bits."""
        w = Writer(dialect, (X, "s", Y), ("st", "zo"))
        w.go_all((Y, w.place("st")), (X, w.place("zo", 6)), (P, w.place("zo", 8 * self.hidden)))
        m0, m1, m2 = self.parts_of_multiplier
        with w.times("n", self.hidden):
            w.line(f"s = ({load16(w, X)}) * ({load16(w, P)})")
            w.line("a = s & 32767")
            w.line("s = s >> 15")
            w.line(f"v = ((a * {m0} >> 10) + a * {m1} >> 5) + s * {m0}")
            w.line(f"v = ((v >> 5) + a * {m2} >> 5) + s * {m1}")
            w.line(f"s = (v + 32 >> 6) + (s * {m2} << 4)")
            _emit_shifted(w, "s", -self.shift)
            w.line(f"s = s + {self.result}")
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move_all((Y, 1), (X, 8), (P, 2))
        return w
