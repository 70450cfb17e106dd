"""What recurrent layers have in common: the sums of their gates, the gates' functions, and the loop over the steps.

In int8 a step multiplies the bytes of the input and of the hidden state with their weights and rescales both sums to 16
bits in steps of 1/512 (`GATE`). Gates use one table of the logistic function: 1024 numbers of 14 bits from -8 to 8;
tanh(v) is 2 * logistic(2v) - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..quantization.reference import ZERO, Bytes, Ints, Requant, check_word, folded_bias, start_bounds
from .layer import Array, Layer, NameOf, Places, View, emit_clamp, emit_requantize
from .nest import Axis, copied
from .window import UNROLL, walk
from .writer import WEIGHTS, P, Pointer, Writer, X, Y

R = Pointer("r", "A")
G = Pointer("g", "A")

GATE = 512
"""The number that stands for one in a gate's sum."""

MIDDLE = 1 << 15
"""Added to a 16-bit number before it is stored in the arena, low byte first."""

UNIT = 1 << 14
"""The number that stands for one in a gate's value."""

FINE = 32
"""Steps of a sum per step of the output, in a plain layer with ReLU."""

HIDDEN = 128
"""The steps of one in the hidden state's bytes; also the byte that stands for zero."""


State = tuple[Array, Array]
"""The hidden state, and the values kept for each unit."""


@dataclass(frozen=True)
class Rows:
    """weights (rows, K) and bias (rows,) that turn K bytes with zero point `zero` into `rows` 16-bit numbers. adds:
    whether these are added to the numbers that are at "o", and limited then."""

    weights: Bytes
    bias: Ints
    zero: int
    requant: Requant
    adds: bool = False

    def reference(self, x: Bytes, others: Ints | int = 0) -> Ints:
        """The numbers; others: those that they are added to."""
        w, r = self.weights.astype(np.int64) - ZERO, self.requant
        sums = w @ (x.astype(np.int64) - self.zero) + self.bias
        return np.clip(r.apply(sums, [-1]) + others, r.low, r.high) - MIDDLE

    @cached_property
    def lift(self) -> int:
        """The number added to the folded bias so that no word of T is negative."""
        return max(0, -int(folded_bias(self.weights, self.bias, self.zero).min()))

    def words(self, name: str) -> list[int]:
        folded, lift = folded_bias(self.weights, self.bias, self.zero), self.lift
        check_word(name, *start_bounds(self.weights, self.bias, self.zero), int((folded + lift).max()), lift)
        words = [lift, self.requant.offset]
        for channel, bias in enumerate(folded + lift):
            words += [int(bias), *self.requant.packed(channel)]
        return words

    def emit(self, dialect: str) -> Writer:
        """A kernel with the offsets "i0" (bytes), "o" (16-bit numbers), "wo" and "to"."""
        w = Writer(dialect, (X, "s", WEIGHTS), ("i0", "o", "wo", "to"))
        rows, k = self.weights.shape
        w.go_all((WEIGHTS, w.place("wo")), (Y, w.place("o")))
        w.table("q", "to")
        w.line(f"h = {w.word('q')}")
        w.line(f"m = {w.word('q', 1)}")
        w.move_table("q", 2)
        w.line(f"c = {w.place('i0')}")
        w.go(X, "c")
        w.line("s = 0")
        walk(w, (), k, X, None, lambda i, _: w.line(f"s = {w.load(X, i)} + s"), UNROLL // 2)
        w.line("t = 0 - (s << 7) - h")
        with w.times("n", rows):
            w.go(X, "c")
            w.line(f"s = {w.word('q')} + t")
            walk(w, (), k, X, WEIGHTS, lambda i, j: w.line(f"s = {w.load(WEIGHTS, j)} * {w.load(X, i)} + s"))
            count = self.requant.words
            offset = f"{w.load(Y)} + ({w.load(Y, 1)} << 8)" if self.adds else "m"
            emit_requantize(w, self.requant, [w.word("q", 1 + k) for k in range(count)], offset)
            w.move_table("q", 1 + count)
            store16(w, Y, "s")
            w.move(Y, 2)
        return w


def store16(w: Writer, p: Pointer, value: str, k: int = 0) -> None:
    """Write code that stores a number in 0…65535 as two bytes."""
    w.store(p, f"{value} & 255", k)
    w.store(p, f"{value} >> 8", k + 1)


def load16(w: Writer, p: Pointer, k: int = 0) -> str:
    """The 16-bit number that `store16` stored, minus MIDDLE."""
    return f"{w.load(p, k)} + ({w.load(p, k + 1)} << 8) - {MIDDLE}"


def logistic_table() -> Ints:
    """1024 values of the logistic function from -8 to 8, where one is UNIT."""
    return np.rint(UNIT / (1 + np.exp(-(np.arange(1024) - 512) / 64))).astype(np.int64)


def logistic(v: Ints) -> Ints:
    """The logistic function of a gate's sum in units of 1/512, as `emit_logistic` computes it."""
    return logistic_table()[np.clip(((v + 4) >> 3) + 512, 0, 1023)]


def tanh_gate(v: Ints) -> Ints:
    """tanh of a gate's sum, where one is UNIT."""
    return 2 * logistic_table()[np.clip(((v + 2) >> 2) + 512, 0, 1023)] - UNIT


def emit_lookup(w: Writer, name: str, index: str, tanh: bool = False) -> None:
    """Set `name` to the table's entry at `index`, an expression clamped to 0…1023; WEIGHTS points at the table."""
    w.line(f"v = {index}")
    emit_clamp(w, 0, 1023, "v")
    value = f"({w.load(WEIGHTS, 'v')} << 8) + {w.load(WEIGHTS, 'v + 1024')}"
    w.line(f"{name} = ({value} << 1) - {UNIT}" if tanh else f"{name} = {value}")


RowsFrom = Callable[[str, int], str]
"""Makes the line that computes sums from a source and a number of rows."""

SumsIn = Callable[[Rows, str, dict[str, int]], str | None]


class Stepwise(Layer):
    """steps: of the input, (steps, K); hidden: number of units; reverse: start at the last step; sequence: the output
    is (steps, units), else (units,) after the last step; keep: the state is kept between calls."""

    steps: int
    hidden: int
    reverse: bool
    sequence: bool
    keep: bool

    @property
    def remembers(self) -> bool:
        return self.keep

    @property
    def order(self) -> range:
        return range(self.steps)[::-1] if self.reverse else range(self.steps)

    def reference(self, *inputs: Array) -> Array:
        """The output of a call with an initial state of zeros."""
        out: Array = self.advance(None, *inputs)[0]
        return out

    def advance(self, state: State | None, *inputs: Array) -> tuple[Array, State]:
        x = inputs[0].reshape(self.steps, -1)
        h, c = state or self.zeros
        out = np.empty((self.steps, len(h)), x.dtype)
        for t in self.order:
            h, c = self.step(x[t], h, c)
            out[t] = h
        return (out if self.sequence else h.astype(x.dtype)), (h, c)

    @property
    def zeros(self) -> State:
        """The state before the first step."""
        raise NotImplementedError

    def step(self, x: Array, h: Array, c: Array) -> State:
        """The state after a step. x: (K,); h: the hidden state; c: the values kept for each unit."""
        raise NotImplementedError


@dataclass(frozen=True)
class RecurrentLayer(Stepwise):
    """from_input, from_state: the gates' sums."""

    steps: int
    hidden: int
    from_input: Rows
    from_state: Rows
    reverse: bool
    sequence: bool
    keep: bool

    element: ClassVar[int] = 1
    """Bytes of an element of the input and of the hidden state."""

    wide: ClassVar[int] = 2
    """Bytes of a gate's sum, and of each value kept for a unit."""

    @property
    def rows(self) -> tuple[Rows, ...]:
        """All Rows of the layer, in the order of their constants."""
        return self.from_input, self.from_state

    @property
    def start(self) -> int:
        """The byte that stands for a state of zero."""
        return HIDDEN

    @property
    def macs(self) -> int:
        return self.steps * sum(rows.weights.size for rows in self.rows)

    @property
    def state(self) -> int:
        """The hidden state, then the values kept for each unit."""
        return (self.element + self.wide) * self.hidden

    @property
    def initial(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The initial state: a count, and the bytes that are repeated."""
        start = tuple(self.start.to_bytes(self.element, "little"))
        zero = tuple((1 << 8 * self.wide - 1).to_bytes(self.wide, "little"))
        return (self.hidden, start), (self.hidden, zero)

    @property
    def scratch(self) -> int:
        return self.wide * sum(len(rows.weights) for rows in self.rows)

    @property
    def zeros(self) -> State:
        start = self.start.to_bytes(self.element, "little")
        return np.frombuffer(start * self.hidden, np.uint8), np.zeros(self.hidden, np.int64)

    @property
    def table(self) -> tuple[Ints, ...]:
        """The bytes before the weights."""
        table = logistic_table()
        return table >> 8, table & 255

    def constants(self) -> tuple[Array, list[int]]:
        parts: list[Array] = [*self.table, *(rows.weights.reshape(-1) for rows in self.rows)]
        words = [word for rows in self.rows for word in rows.words(self.name)]
        return np.concatenate(parts).astype(np.uint8), words

    def calls(
        self,
        name: NameOf,
        dialect: str,
        inputs: Sequence[View],
        output: View,
        places: Places,
        sums_in: SumsIn | None = None,
        units_in: str | None = None,
    ) -> list[str]:
        """A loop over the steps, each in small kernels: the sums of the input, of the state, the units, the output.

        sums_in: writes the call of another kernel for the sums, or returns None if there is none; units_in: the call of
        another kernel for the units.
        """

        def rows(source: str, n: int) -> str:
            which, own = self.rows[n], self.places_of_rows(places, n)
            line = sums_in(which, source, own) if sums_in else None
            if line is not None:
                return line
            writer = self.rows_kernel(which, dialect)
            return writer.call(name(writer), {"i0": source, **own})

        copy, reset = self._copy(dialect), self._reset(dialect)
        between = self.between(name, dialect, places, rows)
        if units_in is None:
            update = self.units(dialect)
            units_in = update.call(name(update), places)
        step = [rows("i", 0), rows(str(places["st"]), 1), *between, units_in]
        out = copy.call(name(copy), {"i0": places["st"], "o": "o"})
        first, moves = self.walk(places)
        step += [out, f"o += {moves[1]}"] if self.sequence else []
        lines = [] if self.keep else [reset.call(name(reset), places)]
        lines.append(f"i = {first[0]}")
        lines.append(f"o = {first[1]}")
        lines.append(f"for _ in range({self.steps}):")
        lines += ["    " + line for line in [*step, f"i += {moves[0]}"]]
        return lines if self.sequence else [*lines, out]

    def places_of_rows(self, places: Places, n: int) -> dict[str, int]:
        """The places of the sums of `rows[n]`, of their weights and of their words, from the layer's."""
        before = self.rows[:n]
        return {
            "o": places["zo"] + self.wide * sum(len(r.weights) for r in before),
            "wo": places["wo"] + sum(part.size for part in self.table) + sum(r.weights.size for r in before),
            "to": places["to"] + sum(len(r.words(self.name)) for r in before),
        }

    def walk(self, places: Places) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where the first step reads and writes, and how far it is to the next, in bytes."""
        step = self.element * self.from_input.weights.shape[-1], self.element * self.hidden * self.sequence
        first = places["i0"], places["o"]
        if self.reverse:
            first = first[0] + (self.steps - 1) * step[0], first[1] + (self.steps - 1) * step[1]
            step = -step[0], -step[1]
        return first, step

    def begin(self, w: Writer, *sides: tuple[Pointer, int], out: str = "") -> None:
        """Write code that points at the state, or at `out`, at the values kept, and at the sums, each with this many
        adjacent numbers per unit."""
        w.go_all((Y, out or w.place("st")), (P, w.place("st", self.element * self.hidden)))
        at = 0
        for p, count in sides:
            w.go(p, w.place("zo", at))
            at += self.wide * count * self.hidden

    def rows_kernel(self, rows: Rows, dialect: str) -> Writer:
        """The kernel of some rows' sums."""
        return rows.emit(dialect)

    def between(self, name: NameOf, dialect: str, places: Places, rows: RowsFrom) -> list[str]:
        """Write the lines between the sums and the units. rows: makes the line that computes sums from a source and a
        number."""
        return []

    def _copy(self, dialect: str) -> Writer:
        w = Writer(dialect, (X, Y), ("i0", "o"))
        w.go_all((X, w.place("i0")), (Y, w.place("o")))
        copied(w, [Axis(self.element * self.hidden, (1, 1))], X)
        return w

    def _reset(self, dialect: str) -> Writer:
        """The state before the first step."""
        w = Writer(dialect, (X, Y), ("st",))
        w.go(Y, w.place("st"))
        for count, repeated in self.initial:
            with w.times("n", count):
                for k, byte in enumerate(repeated):
                    w.store(Y, str(byte), k)
                w.move(Y, len(repeated))
        return w

    def units(self, dialect: str) -> Writer:
        """A kernel with the offsets "st", "zo" and "wo" that computes the units' new states from the gates' sums."""
        w = Writer(dialect, (X, "s", WEIGHTS), ("st", "zo", "wo"))
        w.go(WEIGHTS, w.place("wo"))
        self.update(w)
        return w

    def update(self, w: Writer) -> None:
        """The units' new states from the gates' sums."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gated(RecurrentLayer):
    """A GRU whose reset gate is applied to the state before its product (ONNX's linear_before_reset = 0).

    Two rows per unit in `from_state`, update and reset; one in `from_gated`, whose input is the reset gate times the
    state.
    """

    from_gated: Rows

    @property
    def rows(self) -> tuple[Rows, ...]:
        return self.from_input, self.from_state, self.from_gated

    @property
    def scratch(self) -> int:
        return self.gated + self.element * self.hidden

    @property
    def gated(self) -> int:
        """The offset in the scratch of the gated state, stored as the state is."""
        return super().scratch

    def between(self, name: NameOf, dialect: str, places: Places, rows: RowsFrom) -> list[str]:
        w = Writer(dialect, (X, "s", WEIGHTS), ("st", "zo", "wo"))
        w.go(WEIGHTS, w.place("wo"))
        self.begin(w, (X, 3), (R, 2), out=w.place("zo", self.gated))
        self.gate(w)
        return [w.call(name(w), places), rows(str(places["zo"] + self.gated), 2)]

    def gate(self, w: Writer) -> None:
        """Write a loop over the units that computes the reset gate times the state; `begin` is written."""
        raise NotImplementedError
