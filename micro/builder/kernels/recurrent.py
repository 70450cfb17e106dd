"""LSTM, GRU and plain recurrent layers; recurrence.py has what they share.

An LSTM's cell is kept in 16 bits in steps of 1/2048, a GRU's state in steps of 1/16384, so that small updates are not
lost; the state multiplied with the weights is in bytes, in steps of 1/128. The state of a plain layer with ReLU has no
bound, so it is kept in bytes of the output's grid, and its sums in 1/32 of a step.

Rows of weights are ordered by unit, with the gates of a unit adjacent: LSTM input, forget, cell, output; GRU update,
reset, candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..quantization.reference import Bytes, Ints
from .layer import emit_clamp
from .recurrence import (
    FINE,
    HIDDEN,
    MIDDLE,
    UNIT,
    G,
    Gated,
    R,
    RecurrentLayer,
    State,
    emit_lookup,
    load16,
    logistic,
    logistic_table,
    store16,
    tanh_gate,
)
from .writer import P, Pointer, Writer, X, Y


@dataclass(frozen=True)
class Lstm(RecurrentLayer):
    """Four rows per unit in `from_input` and in `from_state`; a cell is in steps of 1/2048 and stays within ±16."""

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        sums = (self.from_input.reference(x) + self.from_state.reference(h)).reshape(self.hidden, 4)
        i, f, o = (logistic(sums[:, k]) for k in (0, 1, 3))
        c = ((f * c + (UNIT >> 1)) >> 14) + ((i * tanh_gate(sums[:, 2]) + (1 << 16)) >> 17)
        c = np.clip(c, -MIDDLE, MIDDLE - 1)
        squashed = 2 * logistic_table()[np.clip(((c + 8) >> 4) + 512, 0, 1023)] - UNIT
        return _bytes((o * squashed + (1 << 20)) >> 21), c

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 4), (R, 4))
        with w.times("n", self.hidden):
            for k, (name, tanh) in enumerate((("gi", False), ("gf", False), ("gg", True), ("go", False))):
                w.line(f"s = {load16(w, X, 2 * k)} + {load16(w, R, 2 * k)}")
                emit_lookup(w, name, "(s + 2 >> 2) + 512" if tanh else "(s + 4 >> 3) + 512", tanh)
            w.line(f"s = {load16(w, P)}")
            w.line(f"s = (gf * s + {UNIT >> 1} >> 14) + (gi * gg + {1 << 16} >> 17) + {MIDDLE}")
            emit_clamp(w, 0, 2 * MIDDLE - 1)
            store16(w, P, "s")
            emit_lookup(w, "s", f"(s - {MIDDLE - 8} >> 4) + 512", tanh=True)
            w.line(f"s = (go * s + {1 << 20} >> 21) + {HIDDEN}")
            _next(w, (P, 2), (X, 8), (R, 8))


@dataclass(frozen=True)
class _Gru(RecurrentLayer):
    def mixed(self, z: Ints, n: Ints, c: Ints) -> State:
        """The state after a step, from its candidate."""
        c = ((UNIT - z) * n + z * c + (UNIT >> 1)) >> 14
        return _bytes((c + 64) >> 7), c

    def mix(self, w: Writer) -> None:
        """The same, from `gz` and `gn`."""
        w.line(f"s = {load16(w, P)}")
        w.line(f"s = ({UNIT} - gz) * gn + gz * s + {UNIT >> 1} >> 14")
        w.line(f"v = s + {MIDDLE}")
        store16(w, P, "v")
        w.line(f"s = (s + 64 >> 7) + {HIDDEN}")


@dataclass(frozen=True)
class Gru(_Gru):
    """Three rows per unit in `from_input` and in `from_state`. The reset gate is applied to the candidate's sum of the
    state (ONNX's linear_before_reset = 1, PyTorch's form)."""

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        a, b = (rows.reference(v).reshape(self.hidden, 3) for rows, v in zip(self.rows, (x, h), strict=True))
        z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
        return self.mixed(z, tanh_gate(a[:, 2] + ((r * b[:, 2] + (UNIT >> 1)) >> 14)), c)

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 3), (R, 3))
        with w.times("n", self.hidden):
            for k, name in enumerate(("gz", "gr")):
                w.line(f"s = {load16(w, X, 2 * k)} + {load16(w, R, 2 * k)}")
                emit_lookup(w, name, "(s + 4 >> 3) + 512")
            w.line(f"s = gr * ({load16(w, R, 4)}) + {UNIT >> 1} >> 14")
            w.line(f"s = {load16(w, X, 4)} + s")
            emit_lookup(w, "gn", "(s + 2 >> 2) + 512", tanh=True)
            self.mix(w)
            _next(w, (P, 2), (X, 6), (R, 6))


@dataclass(frozen=True)
class GatedGru(Gated, _Gru):
    """As Gru, but the reset gate is applied to the state before its product."""

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        a = self.from_input.reference(x).reshape(self.hidden, 3)
        b = self.from_state.reference(h).reshape(self.hidden, 2)
        z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
        own = self.from_gated.reference(_bytes((r * c + (1 << 20)) >> 21))
        return self.mixed(z, tanh_gate(a[:, 2] + own), c)

    def gate(self, w: Writer) -> None:
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X, 2)} + {load16(w, R, 2)}")
            emit_lookup(w, "gr", "(s + 4 >> 3) + 512")
            w.line(f"s = {load16(w, P)}")
            w.line(f"s = (gr * s + {1 << 20} >> 21) + {HIDDEN}")
            _next(w, (P, 2), (X, 6), (R, 4))

    def update(self, w: Writer) -> None:
        self.begin(w, (X, 3), (R, 2), (G, 1))
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X)} + {load16(w, R)}")
            emit_lookup(w, "gz", "(s + 4 >> 3) + 512")
            w.line(f"s = {load16(w, X, 4)} + {load16(w, G)}")
            emit_lookup(w, "gn", "(s + 2 >> 2) + 512", tanh=True)
            self.mix(w)
            _next(w, (P, 2), (X, 6), (R, 4), (G, 2))


@dataclass(frozen=True)
class Rnn(RecurrentLayer):
    """One row per unit in `from_input` and in `from_state`, and tanh of their sum, or ReLU if `relu`."""

    relu: bool = False

    @property
    def start(self) -> int:
        return 0 if self.relu else HIDDEN

    def step(self, x: Bytes, h: Bytes, c: Ints) -> State:
        v = self.from_input.reference(x) + self.from_state.reference(h)
        return _bytes((v + FINE // 2) // FINE if self.relu else (tanh_gate(v) + 64) >> 7, self.start), c

    def update(self, w: Writer) -> None:
        w.go_all((Y, w.place("st")), (X, w.place("zo")), (R, w.place("zo", 2 * self.hidden)))
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X)} + {load16(w, R)}")
            if self.relu:
                w.line(f"s = s + {FINE // 2} >> {FINE.bit_length() - 1}")
            else:
                emit_lookup(w, "s", "(s + 2 >> 2) + 512", tanh=True)
                w.line(f"s = (s + 64 >> 7) + {HIDDEN}")
            _next(w, (X, 2), (R, 2))


def _bytes(steps: Ints, zero: int = HIDDEN) -> Bytes:
    return np.clip(steps + zero, 0, 255).astype(np.uint8)


def _next(w: Writer, *moves: tuple[Pointer, int]) -> None:
    """Clamp `s` to a byte, store it in the hidden state, and move on to the next unit."""
    emit_clamp(w, 0, 255)
    w.store(Y, "s")
    w.move_all((Y, 1), *moves)
