"""Ensembles of decision trees over numbers that other layers compute, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .layer import Array, Layer, View
from .nest import start_at
from .writer import Pointer, Writer, X, Y

Z = Pointer("z", "W")


@dataclass(frozen=True)
class FloatBranch:
    """A branch: feature, threshold, the numbers of the nodes for values up to and above it; nan_low: where NaN goes."""

    feature: int
    cut: float
    low: int
    high: int
    nan_low: bool


@dataclass(frozen=True)
class FloatLeaf:
    """The additions of a leaf: (target, number)."""

    adds: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class TreesFloat(Layer):
    """nodes: of all trees; roots: the number of the first node of each; base: what each target starts with; divisor: of
    the sums."""

    nodes: tuple[FloatBranch | FloatLeaf, ...]
    roots: tuple[int, ...]
    base: tuple[float, ...]
    divisor: int = 1

    @property
    def turns(self) -> int:
        return 8 * len(self.roots)

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(-1).astype(np.float32)
        sums = [np.float32(b) for b in self.base]
        for root in self.roots:
            node = self.nodes[root]
            while isinstance(node, FloatBranch):
                v = x[node.feature]
                low = node.nan_low if np.isnan(v) else bool(v <= np.float32(node.cut))
                node = self.nodes[node.low if low else node.high]
            for target, number in node.adds:
                sums[target] = np.float32(sums[target] + np.float32(number))
        return np.asarray([s / np.float32(self.divisor) for s in sums], np.float32)

    @cached_property
    def _layout(self) -> tuple[list[int], list[float], list[int]]:
        """(two words for each cell, a number for each cell, the cell at which each tree begins).

        A branch is a cell: the feature and whether NaN is low, the distance to the cell for high values, the threshold.
        The cell for low values follows. A leaf is a cell with the count of the numbers that it adds, and one cell for
        each: target, number.
        """
        words: list[int] = []
        numbers: list[float] = []
        begins: list[int] = []
        for root in self.roots:
            begins.append(len(numbers))
            waiting: list[tuple[int, int]] = [(root, -1)]
            while waiting:
                at, owner = waiting.pop()
                if owner >= 0:
                    words[2 * owner + 1] = len(numbers) - owner
                node = self.nodes[at]
                if isinstance(node, FloatBranch):
                    waiting += [(node.high, len(numbers)), (node.low, -1)]
                    words += [node.feature << 1 | node.nan_low, 0]
                    numbers.append(node.cut)
                    continue
                words += [len(node.adds), 0]
                numbers.append(0.0)
                for target, number in node.adds:
                    words += [target, 0]
                    numbers.append(number)
        return words, numbers, begins

    def constants(self) -> tuple[Array, list[int]]:
        words, numbers, begins = self._layout
        return np.asarray([*self.base, *numbers], np.float32), [*begins, *words]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        targets, trees = len(self.base), len(self.roots)
        w = Writer(dialect, (X, Y, Z), self.places())
        start_at(w, inputs[0], output)
        w.go(Z, w.place("wo"))
        w.table("q", "to")
        w.line("i = 0")
        with w.block(f"while i < {targets}"):
            w.line(f"{w.load(Y, 'i')} = {w.load(Z, 'i')}")
            w.line("i += 1")
        w.move(Z, targets)
        w.line("i = 0")
        with w.block(f"while i < {trees}"):
            w.line(f"p = {w.word('q', 'i')}")
            w.line(f"d = {w.word('q', f'{trees + 1} + 2 * p')}")
            with w.block("while d"):
                w.line(f"n = {w.word('q', f'{trees} + 2 * p')}")
                w.line(f"s = {w.load(X, '(n >> 1)')}")
                # Nothing is at most NaN.
                with w.block(f"if s <= {w.load(Z, 'p')} or s != s and n & 1"):
                    w.line("p += 1")
                with w.block("else"):
                    w.line("p += d")
                w.line(f"d = {w.word('q', f'{trees + 1} + 2 * p')}")
            w.line(f"n = {w.word('q', f'{trees} + 2 * p')}")
            with w.block("while n"):
                w.line("p += 1")
                w.line(f"e = {w.word('q', f'{trees} + 2 * p')}")
                w.line(f"{w.load(Y, 'e')} += {w.load(Z, 'p')}")
                w.line("n -= 1")
            w.line("i += 1")
        if self.divisor != 1:
            w.line("i = 0")
            with w.block(f"while i < {targets}"):
                w.line(f"{w.load(Y, 'i')} /= {self.divisor}")
                w.line("i += 1")
        return w
