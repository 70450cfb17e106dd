"""LSTM, GRU and plain recurrent layers; recurrence.py has what they share.

An LSTM's cell is kept in 16 bits in steps of 1/2048, a GRU's state in steps of 1/16384, so that small updates are not
lost; the state multiplied with the weights is in bytes, in steps of 1/128. The state of a plain layer with ReLU has no
bound, so it is kept in bytes of the output's grid, and its sums in 1/32 of a step.

Rows of weights are ordered by unit, with the gates of a unit adjacent: LSTM input, forget, cell, output; GRU update,
reset, candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..quantization.reference import Bytes
from .layer import emit_clamp
from .recurrence import (
    FINE,
    HIDDEN,
    MIDDLE,
    UNIT,
    WEIGHTS,
    G,
    P,
    R,
    RecurrentLayer,
    Rows,
    State,
    X,
    Y,
    emit_lookup,
    load16,
    logistic,
    logistic_table,
    store16,
    tanh_gate,
)
from .writer import Writer


@dataclass(frozen=True)
class Lstm(RecurrentLayer):
    """Four rows per unit in `from_input` and in `from_state`; a cell is in steps of 1/2048 and stays within ±16."""

    def advance(self, state: State | None, *inputs: Bytes) -> tuple[Bytes, State]:
        x = inputs[0].reshape(self.steps, -1)
        h, c = state or self.zeros
        out = np.empty((self.steps, self.hidden), np.uint8)
        for t in self.order:
            sums = (self.from_input.reference(x[t]) + self.from_state.reference(h)).reshape(self.hidden, 4)
            i, f, o = (logistic(sums[:, k]) for k in (0, 1, 3))
            g = tanh_gate(sums[:, 2])
            c = ((f * c + (UNIT >> 1)) >> 14) + ((i * g + (1 << 16)) >> 17)
            c = np.clip(c, -MIDDLE, MIDDLE - 1)
            squashed = 2 * logistic_table()[np.clip(((c + 8) >> 4) + 512, 0, 1023)] - UNIT
            h = np.clip(((o * squashed + (1 << 20)) >> 21) + HIDDEN, 0, 255).astype(np.uint8)
            out[t] = h
        return (out if self.sequence else h), (h, c)

    def update(self, w: Writer) -> None:
        w.go(Y, w.place("st"))
        w.go(P, w.place("st", self.hidden))
        w.go(X, w.place("zo"))
        w.go(R, w.place("zo", 8 * self.hidden))
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
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move(Y, 1)
            w.move(P, 2)
            w.move(X, 8)
            w.move(R, 8)


@dataclass(frozen=True)
class Gru(RecurrentLayer):
    """Three rows per unit in `from_input` and in `from_state`. The reset gate is applied to the candidate's sum of the
    state (ONNX's linear_before_reset = 1, PyTorch's form)."""

    def advance(self, state: State | None, *inputs: Bytes) -> tuple[Bytes, State]:
        x = inputs[0].reshape(self.steps, -1)
        h, c = state or self.zeros
        out = np.empty((self.steps, self.hidden), np.uint8)
        for t in self.order:
            a = self.from_input.reference(x[t]).reshape(self.hidden, 3)
            b = self.from_state.reference(h).reshape(self.hidden, 3)
            z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
            n = tanh_gate(a[:, 2] + ((r * b[:, 2] + (UNIT >> 1)) >> 14))
            c = ((UNIT - z) * n + z * c + (UNIT >> 1)) >> 14
            h = np.clip(((c + 64) >> 7) + HIDDEN, 0, 255).astype(np.uint8)
            out[t] = h
        return (out if self.sequence else h), (h, c)

    def update(self, w: Writer) -> None:
        w.go(Y, w.place("st"))
        w.go(P, w.place("st", self.hidden))
        w.go(X, w.place("zo"))
        w.go(R, w.place("zo", 6 * self.hidden))
        with w.times("n", self.hidden):
            for k, name in enumerate(("gz", "gr")):
                w.line(f"s = {load16(w, X, 2 * k)} + {load16(w, R, 2 * k)}")
                emit_lookup(w, name, "(s + 4 >> 3) + 512")
            w.line(f"s = gr * ({load16(w, R, 4)}) + {UNIT >> 1} >> 14")
            w.line(f"s = {load16(w, X, 4)} + s")
            emit_lookup(w, "gn", "(s + 2 >> 2) + 512", tanh=True)
            w.line(f"s = {load16(w, P)}")
            w.line(f"s = ({UNIT} - gz) * gn + gz * s + {UNIT >> 1} >> 14")
            w.line(f"v = s + {MIDDLE}")
            store16(w, P, "v")
            w.line(f"s = (s + 64 >> 7) + {HIDDEN}")
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move(Y, 1)
            w.move(P, 2)
            w.move(X, 6)
            w.move(R, 6)


@dataclass(frozen=True)
class GatedGru(RecurrentLayer):
    """As Gru, but the reset gate is applied to the state before its product (ONNX's linear_before_reset = 0).

    Two rows per unit in `from_state`, update and reset; one in `from_gated`, whose input is the reset gate times the
    state.
    """

    from_gated: Rows

    @property
    def rows(self) -> tuple[Rows, ...]:
        return self.from_input, self.from_state, self.from_gated

    @property
    def scratch(self) -> int:
        return super().scratch + self.hidden

    @property
    def gated(self) -> int:
        """The offset of the gated state in the scratch; it is in bytes, as the state is."""
        return super().scratch

    def advance(self, state: State | None, *inputs: Bytes) -> tuple[Bytes, State]:
        x = inputs[0].reshape(self.steps, -1)
        h, c = state or self.zeros
        out = np.empty((self.steps, self.hidden), np.uint8)
        for t in self.order:
            a = self.from_input.reference(x[t]).reshape(self.hidden, 3)
            b = self.from_state.reference(h).reshape(self.hidden, 2)
            z, r = (logistic(a[:, k] + b[:, k]) for k in (0, 1))
            gated = np.clip(((r * c + (1 << 20)) >> 21) + HIDDEN, 0, 255).astype(np.uint8)
            n = tanh_gate(a[:, 2] + self.from_gated.reference(gated))
            c = ((UNIT - z) * n + z * c + (UNIT >> 1)) >> 14
            h = np.clip(((c + 64) >> 7) + HIDDEN, 0, 255).astype(np.uint8)
            out[t] = h
        return (out if self.sequence else h), (h, c)

    def between(
        self,
        name: Callable[[Writer], str],
        dialect: str,
        places: Mapping[str, int],
        rows: Callable[[str, int], str],
    ) -> list[str]:
        gate = self._gate(dialect)
        return [gate.call(name(gate), places), rows(str(places["zo"] + self.gated), 2)]

    def _gate(self, dialect: str) -> Writer:
        """A kernel with the offsets "st", "zo" and "wo" that computes the reset gate times the state."""
        w = Writer(dialect, (X, "s", WEIGHTS), ("st", "zo", "wo"))
        w.go(WEIGHTS, w.place("wo"))
        w.go(Y, w.place("zo", self.gated))
        w.go(P, w.place("st", self.hidden))
        w.go(X, w.place("zo"))
        w.go(R, w.place("zo", 6 * self.hidden))
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X, 2)} + {load16(w, R, 2)}")
            emit_lookup(w, "gr", "(s + 4 >> 3) + 512")
            w.line(f"s = {load16(w, P)}")
            w.line(f"s = (gr * s + {1 << 20} >> 21) + {HIDDEN}")
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move(Y, 1)
            w.move(P, 2)
            w.move(X, 6)
            w.move(R, 4)
        return w

    def update(self, w: Writer) -> None:
        w.go(Y, w.place("st"))
        w.go(P, w.place("st", self.hidden))
        w.go(X, w.place("zo"))
        w.go(R, w.place("zo", 6 * self.hidden))
        w.go(G, w.place("zo", 10 * self.hidden))
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X)} + {load16(w, R)}")
            emit_lookup(w, "gz", "(s + 4 >> 3) + 512")
            w.line(f"s = {load16(w, X, 4)} + {load16(w, G)}")
            emit_lookup(w, "gn", "(s + 2 >> 2) + 512", tanh=True)
            w.line(f"s = {load16(w, P)}")
            w.line(f"s = ({UNIT} - gz) * gn + gz * s + {UNIT >> 1} >> 14")
            w.line(f"v = s + {MIDDLE}")
            store16(w, P, "v")
            w.line(f"s = (s + 64 >> 7) + {HIDDEN}")
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move(Y, 1)
            w.move(P, 2)
            w.move(X, 6)
            w.move(R, 4)
            w.move(G, 2)


@dataclass(frozen=True)
class Rnn(RecurrentLayer):
    """One row per unit in `from_input` and in `from_state`, and tanh of their sum, or ReLU if `relu`."""

    relu: bool = False

    @property
    def start(self) -> int:
        return 0 if self.relu else HIDDEN

    def advance(self, state: State | None, *inputs: Bytes) -> tuple[Bytes, State]:
        x = inputs[0].reshape(self.steps, -1)
        h, c = state or self.zeros
        out = np.empty((self.steps, self.hidden), np.uint8)
        for t in self.order:
            v = self.from_input.reference(x[t]) + self.from_state.reference(h)
            q = (v + FINE // 2) // FINE if self.relu else ((tanh_gate(v) + 64) >> 7) + HIDDEN
            h = np.clip(q, 0, 255).astype(np.uint8)
            out[t] = h
        return (out if self.sequence else h), (h, c)

    def update(self, w: Writer) -> None:
        w.go(Y, w.place("st"))
        w.go(X, w.place("zo"))
        w.go(R, w.place("zo", 2 * self.hidden))
        with w.times("n", self.hidden):
            w.line(f"s = {load16(w, X)} + {load16(w, R)}")
            if self.relu:
                w.line(f"s = s + {FINE // 2} >> {FINE.bit_length() - 1}")
            else:
                emit_lookup(w, "s", "(s + 2 >> 2) + 512", tanh=True)
                w.line(f"s = (s + 64 >> 7) + {HIDDEN}")
            emit_clamp(w, 0, 255)
            w.store(Y, "s")
            w.move(Y, 1)
            w.move(X, 2)
            w.move(R, 2)
