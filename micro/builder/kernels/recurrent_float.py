"""LSTM, GRU and plain recurrent layers in float32. Gates are ordered as in `recurrent`; the state and the sums are in
the arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .layer import Array, View
from .recurrence import State, Stepwise
from .window import walk
from .writer import WEIGHTS, P, Pointer, Writer, X, Y

R = Pointer("r", "A")

_SIGMOID = "1 / (1 + exp(-v if v > -88 else 88))"


def _logistic(v: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(v, -700, 700))))


@dataclass(frozen=True)
class _RecurrentFloat(Stepwise):
    """weights_input (rows, K), weights_state (rows, hidden), bias_input and bias_state (rows,)."""

    steps: int
    hidden: int
    weights_input: Array
    weights_state: Array
    bias_input: Array
    bias_state: Array
    reverse: bool
    sequence: bool
    keep: bool

    @property
    def macs(self) -> int:
        return self.steps * (self.weights_input.size + self.weights_state.size)

    @property
    def scratch(self) -> int:
        return 2 * len(self.weights_input)

    @property
    def zeros(self) -> State:
        return np.zeros(self.hidden), np.zeros(self.hidden)

    def sums(self, x: Array, h: Array) -> tuple[Array, Array]:
        """Those of the input and those of the state, (units, gates)."""
        both = self.weights_input @ x.astype(np.float64) + self.bias_input, self.weights_state @ h + self.bias_state
        return both[0].reshape(self.hidden, -1), both[1].reshape(self.hidden, -1)

    def constants(self) -> tuple[Array, list[int]]:
        parts = []
        for weights, bias in ((self.weights_input, self.bias_input), (self.weights_state, self.bias_state)):
            parts.append(np.concatenate([bias.reshape(-1, 1), weights], 1).reshape(-1))
        return np.concatenate(parts).astype(np.float32), []

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", WEIGHTS), self.places())
        k = self.weights_input.shape[1]
        back = self.steps - 1 if self.reverse else 0
        if not self.keep:
            with w.block(f"for n in range(st, st + {self.state})"):
                w.line("A[n] = 0.0")
        w.line(f"a = {w.place('i0', back * k)}")
        w.line(f"b = {w.place('o', back * self.hidden if self.sequence else 0)}")
        with w.times("i", self.steps):
            w.go_all((WEIGHTS, w.place("wo")), (Y, w.place("zo")))
            self._rows(w, "a", k, len(self.weights_input))
            self.from_state(w)
            self.update(w)
            if self.steps > 1:
                w.line(f"a {'-' if self.reverse else '+'}= {k}")
            if self.sequence:
                self._output(w)
                if self.steps > 1:
                    w.line(f"b {'-' if self.reverse else '+'}= {self.hidden}")
        if not self.sequence:
            self._output(w)
        return w

    def from_state(self, w: Writer) -> None:
        """The gates' sums of the state."""
        self._rows(w, "st", self.hidden, len(self.weights_input))

    def _rows(self, w: Writer, source: str, k: int, count: int) -> None:
        with w.times("n", count):
            w.go(X, source)
            w.line(f"s = {w.load(WEIGHTS)}")
            w.move(WEIGHTS, 1)
            walk(w, (), k, X, WEIGHTS, lambda i, j: w.line(f"s = {w.load(WEIGHTS, j)} * {w.load(X, i)} + s"))
            w.store(Y, "s")
            w.move(Y, 1)

    def _output(self, w: Writer) -> None:
        with w.block(f"for n in range({self.hidden})"):
            w.line("A[b + n] = A[st + n]")

    def update(self, w: Writer) -> None:
        """The units' new states from the gates' sums."""
        raise NotImplementedError


@dataclass(frozen=True)
class LstmFloat(_RecurrentFloat):
    """Gates: input, forget, cell, output. Cells are clipped to ±clip, if that is not 0."""

    clip: float = field(default=0.0, kw_only=True)

    @property
    def state(self) -> int:
        return 2 * self.hidden

    def step(self, x: Array, h: Array, c: Array) -> State:
        a, b = self.sums(x, h)
        gates = a + b
        c = _logistic(gates[:, 1]) * c + _logistic(gates[:, 0]) * np.tanh(gates[:, 2])
        if self.clip:
            c = np.clip(c, -self.clip, self.clip)
        return _logistic(gates[:, 3]) * np.tanh(c), c

    def update(self, w: Writer) -> None:
        w.go_all((P, w.place("st", self.hidden)), (X, w.place("zo")), (R, w.place("zo", 4 * self.hidden)))
        with w.block(f"for n in range(st, st + {self.hidden})"):
            for k, name in enumerate(("gi", "gf", "gg", "go")):
                w.line(f"v = {w.load(X, k)} + {w.load(R, k)}")
                w.line(f"{name} = {'tanh(v)' if name == 'gg' else _SIGMOID}")
            w.line(f"s = gf * {w.load(P)} + gi * gg")
            if self.clip:
                w.line(f"s = {self.clip!r} if s > {self.clip!r} else {-self.clip!r} if s < {-self.clip!r} else s")
            w.store(P, "s")
            w.line("A[n] = go * tanh(s)")
            w.move_all((P, 1), (X, 4), (R, 4))


@dataclass(frozen=True)
class GruFloat(_RecurrentFloat):
    """Gates: update, reset, candidate; the reset gate is applied to the candidate's sum of the state."""

    @property
    def state(self) -> int:
        return self.hidden

    def step(self, x: Array, h: Array, c: Array) -> State:
        a, b = self.sums(x, h)
        z, r = _logistic(a[:, 0] + b[:, 0]), _logistic(a[:, 1] + b[:, 1])
        return (1 - z) * np.tanh(a[:, 2] + r * b[:, 2]) + z * h, c

    def update(self, w: Writer) -> None:
        w.go_all((X, w.place("zo")), (R, w.place("zo", 3 * self.hidden)))
        with w.block(f"for n in range(st, st + {self.hidden})"):
            for k, name in enumerate(("gz", "gr")):
                w.line(f"v = {w.load(X, k)} + {w.load(R, k)}")
                w.line(f"{name} = {_SIGMOID}")
            w.line(f"v = tanh({w.load(X, 2)} + gr * {w.load(R, 2)})")
            w.line("A[n] = (1 - gz) * v + gz * A[n]")
            w.move_all((X, 3), (R, 3))


@dataclass(frozen=True)
class GatedGruFloat(_RecurrentFloat):
    """As GruFloat, but with the reset gate applied to the state before its product."""

    @property
    def state(self) -> int:
        return self.hidden

    @property
    def scratch(self) -> int:
        return super().scratch + self.hidden

    @property
    def gates_of_state(self) -> tuple[Array, Array]:
        """Weights and biases of the update and the reset gate, side by side."""
        both = [x.reshape(self.hidden, 3, -1)[:, :2] for x in (self.weights_state, self.bias_state)]
        return both[0].reshape(2 * self.hidden, -1), both[1].reshape(-1)

    @property
    def candidate(self) -> tuple[Array, Array]:
        """Weights and biases of the candidate."""
        return self.weights_state[2::3], self.bias_state[2::3]

    def constants(self) -> tuple[Array, list[int]]:
        parts = []
        for weights, bias in ((self.weights_input, self.bias_input), self.gates_of_state, self.candidate):
            parts.append(np.concatenate([bias.reshape(-1, 1), weights], 1).reshape(-1))
        return np.concatenate(parts).astype(np.float32), []

    def step(self, x: Array, h: Array, c: Array) -> State:
        a, b = self.sums(x, h)
        z, r = _logistic(a[:, 0] + b[:, 0]), _logistic(a[:, 1] + b[:, 1])
        weights, bias = self.candidate
        return (1 - z) * np.tanh(a[:, 2] + weights @ (r * h) + bias) + z * h, c

    def from_state(self, w: Writer) -> None:
        self._rows(w, "st", self.hidden, 2 * self.hidden)
        gated = 6 * self.hidden
        w.go_all((X, w.place("zo")), (R, w.place("zo", 3 * self.hidden)), (P, w.place("zo", gated)))
        with w.block(f"for n in range(st, st + {self.hidden})"):
            w.line(f"v = {w.load(X, 1)} + {w.load(R, 1)}")
            w.store(P, f"A[n] * ({_SIGMOID})")
            w.move_all((X, 3), (R, 2), (P, 1))
        w.line(f"c = {w.place('zo', gated)}")
        self._rows(w, "c", self.hidden, self.hidden)

    def update(self, w: Writer) -> None:
        w.go_all((X, w.place("zo")), (R, w.place("zo", 3 * self.hidden)), (P, w.place("zo", 5 * self.hidden)))
        with w.block(f"for n in range(st, st + {self.hidden})"):
            w.line(f"v = {w.load(X)} + {w.load(R)}")
            w.line(f"gz = {_SIGMOID}")
            w.line(f"v = tanh({w.load(X, 2)} + {w.load(P)})")
            w.line("A[n] = (1 - gz) * v + gz * A[n]")
            w.move_all((X, 3), (R, 2), (P, 1))


@dataclass(frozen=True)
class RnnFloat(_RecurrentFloat):
    """tanh of the sums, or ReLU."""

    relu: bool = False

    @property
    def state(self) -> int:
        return self.hidden

    def step(self, x: Array, h: Array, c: Array) -> State:
        a, b = self.sums(x, h)
        v = (a + b)[:, 0]
        return (np.maximum(v, 0) if self.relu else np.tanh(v)), c

    def update(self, w: Writer) -> None:
        w.go_all((X, w.place("zo")), (R, w.place("zo", self.hidden)))
        with w.block(f"for n in range(st, st + {self.hidden})"):
            w.line(f"v = {w.load(X)} + {w.load(R)}")
            w.line("A[n] = " + ("v if v > 0 else 0.0" if self.relu else "tanh(v)"))
            w.move_all((X, 1), (R, 1))
