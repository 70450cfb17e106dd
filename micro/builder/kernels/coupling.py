"""Probabilities of classes from the decisions between all pairs of classes, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from .layer import Array, Layer, View
from .writer import Pointer, Writer, X, Y

Z = Pointer("z", "W")

LEAST = 1e-7
TURNS = 100
CLOSE = 0.005


@dataclass(frozen=True)
class CouplingFloat(Layer):
    """Platt's scaling of the decisions, and the probabilities p that come closest to p_i r_ji = p_j r_ij (Wu, Lin, Weng
    2004, the second method), as libsvm iterates them: at most 100 times, until no change exceeds 0.005 / classes.

    a, b: Platt's parameters, one per pair of classes: (0, 1), (0, 2), …, (1, 2), ….
    """

    classes: int
    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def turns(self) -> int:
        return 20 * self.classes**2

    def constants(self) -> tuple[Array, list[int]]:
        return np.asarray([*self.a, *self.b], np.float32), []

    def reference(self, *inputs: Array) -> Array:
        n, row = self.classes, inputs[0].reshape(-1).tolist()
        r = np.zeros((n, n))
        for k, (i, j) in enumerate(zip(*np.triu_indices(n, 1), strict=True)):
            v = 1 / (1 + exp(min(row[k] * self.a[k] + self.b[k], 88)))
            r[i, j] = min(max(v, LEAST), 1 - LEAST)
            r[j, i] = 1 - r[i, j]
        q = -r.T * r
        np.fill_diagonal(q, (r**2).sum(0))
        p = np.full(n, 1 / n)
        for _ in range(max(TURNS, n)):
            qp = q @ p
            total = float(p @ qp)
            if np.abs(qp - total).max() < CLOSE / n:
                break
            for t in range(n):
                move = (total - qp[t]) / q[t, t]
                p[t] += move
                total = (total + move * (move * q[t, t] + 2 * qp[t])) / (1 + move) ** 2
                qp = (qp + move * q[t]) / (1 + move)
                p /= 1 + move
        return p.astype(np.float32)

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        n, pairs = self.classes, len(self.a)
        w = Writer(dialect, (X, Z, Y), self.places())
        w.go_all((X, w.place("i0", inputs[0].origin)), (Z, w.place("wo")), (Y, w.place("o", output.origin)))
        w.line(f"r = [0.0] * {n * n}")
        w.line("k = 0")
        with w.block(f"for i in range({n})"), w.block(f"for j in range(i + 1, {n})"):
            w.line(f"v = {w.load(X, 'k')} * {w.load(Z, 'k')} + {w.load(Z, f'{pairs} + k')}")
            w.line("v = 1 / (1 + exp(v if v < 88 else 88))")
            w.line(f"v = {LEAST} if v < {LEAST} else {1 - LEAST} if v > {1 - LEAST} else v")
            w.line(f"r[{n} * i + j] = v")
            w.line(f"r[{n} * j + i] = 1 - v")
            w.line("k += 1")
        w.line(f"q = [-r[{n} * (k % {n}) + k // {n}] * r[k] for k in range({n * n})]")
        with w.block(f"for i in range({n})"):
            w.line(f"q[{n + 1} * i] = sum([v * v for v in r[i::{n}]])")
        w.line(f"p = [1 / {n}] * {n}")
        with w.block(f"for _ in range({max(TURNS, n)})"):
            w.line(f"e = [sum([q[{n} * i + j] * p[j] for j in range({n})]) for i in range({n})]")
            w.line(f"s = sum([p[i] * e[i] for i in range({n})])")
            with w.block(f"if max([abs(v - s) for v in e]) < {CLOSE / n!r}"):
                w.line("break")
            with w.block(f"for i in range({n})"):
                w.line(f"d = q[{n + 1} * i]")
                w.line("m = (s - e[i]) / d")
                w.line("p[i] += m")
                w.line("s = (s + m * (m * d + 2 * e[i])) / (1 + m) / (1 + m)")
                w.line(f"e = [(e[j] + m * q[{n} * i + j]) / (1 + m) for j in range({n})]")
                w.line("p = [v / (1 + m) for v in p]")
        with w.block(f"for i in range({n})"):
            w.line(f"{w.load(Y, 'i')} = p[i]")
        return w
