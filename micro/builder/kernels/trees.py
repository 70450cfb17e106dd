"""Ensembles of decision trees, in integers.

The result of comparing a feature with a threshold depends only on the feature's rank among its thresholds. So the input
holds, for each feature, the number of thresholds below it, in one byte, or in two if there are more than 255. Nothing
is rounded, so every row takes the same path as in floats. Leaves add multiples of a small step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .layer import Array, Layer, View
from .nest import start_at
from .writer import Writer, X, Y

MIDDLE = 1 << 29
"""The word that stands for zero in sums and in the additions of leaves."""

FEATURES = 1 << 14

CUTS = 1 << 16


@dataclass(frozen=True)
class Branch:
    """A branch: feature, number of the threshold, and the numbers of the nodes for values up to and above it."""

    feature: int
    cut: int
    low: int
    high: int


@dataclass(frozen=True)
class Leaf:
    """The additions of a leaf: (target, steps)."""

    adds: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Trees(Layer):
    """nodes: of all trees; roots: the number of the first node of each; base: steps that each target starts with.

    The output is a 4-byte word for each target: MIDDLE plus its sum. wide: two bytes for each feature.
    """

    nodes: tuple[Branch | Leaf, ...]
    roots: tuple[int, ...]
    base: tuple[int, ...]
    wide: bool

    @property
    def targets(self) -> int:
        return len(self.base)

    def reference(self, *inputs: Array) -> Array:
        x = inputs[0].reshape(-1).astype(np.int64)
        ranks = x[::2] + 256 * x[1::2] if self.wide else x
        sums = list(self.base)
        for root in self.roots:
            node = self.nodes[root]
            while isinstance(node, Branch):
                node = self.nodes[node.low if ranks[node.feature] <= node.cut else node.high]
            for target, steps in node.adds:
                sums[target] += steps
        return np.asarray([s + MIDDLE for s in sums], "<u4").view(np.uint8)

    @cached_property
    def _layout(self) -> tuple[list[int], list[int]]:
        """(words of the nodes, the position of each tree in them). The branch for low values follows its node.

        A branch is its feature, its threshold, and the distance to the node for high values. A leaf is the number of
        its targets, a zero, and the targets with their steps.
        """
        words: list[int] = []
        begins: list[int] = []
        for root in self.roots:
            begins.append(len(words))
            # (node, the word to set to its distance)
            waiting: list[tuple[int, int]] = [(root, -1)]
            while waiting:
                number, owner = waiting.pop()
                if owner >= 0:
                    words[owner] = len(words) - owner + 1
                node = self.nodes[number]
                if isinstance(node, Branch):
                    words += [node.feature << 16 | node.cut, 0]
                    waiting += [(node.high, len(words) - 1), (node.low, -1)]
                else:
                    words += [len(node.adds), 0]
                    for target, steps in node.adds:
                        words += [target, steps + MIDDLE]
        return words, begins

    def constants(self) -> tuple[Array, list[int]]:
        """The initial sums, the position of each tree, and the nodes."""
        words, begins = self._layout
        own = len(self.base) + len(begins)
        return np.empty(0, np.uint8), [*(b + MIDDLE for b in self.base), *(own + b for b in begins), *words]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        w = Writer(dialect, (X, "s", Y), self.places())
        start_at(w, inputs[0], output)
        w.table("q", "to")
        w.line("i = 0")
        with w.block(f"while i < {self.targets}"):
            w.line(f"s = {_word(w, 'i')}")
            _store(w)
            w.move(Y, 4)
            w.line("i += 1")
        w.line(f"i = {self.targets}")
        with w.block(f"while i < {self.targets + len(self.roots)}"):
            w.line(f"p = {_word(w, 'i')}")
            w.line(f"d = {_word(w, 'p + 1')}")
            with w.block("while d"):
                w.line(f"v = {_word(w, 'p')}")
                at = "v >> 16"
                if self.wide:
                    w.line("e = v >> 15 & -2")
                    value = f"{w.load(X, 'e')} + ({w.load(X, 'e + 1')} << 8)"
                else:
                    w.line(f"e = {at}")
                    value = w.load(X, "e")
                with w.block(f"if {value} > v & 65535"):
                    w.line("p += d")
                with w.block("else"):
                    w.line("p += 2")
                w.line(f"d = {_word(w, 'p + 1')}")
            w.line(f"n = {_word(w, 'p')}")
            with w.block("while n"):
                w.line(f"e = {_word(w, 'p + 2')}")
                w.go(Y, f"{w.place('o', output.origin)} + (e << 2)")
                loads = " | ".join(f"{w.load(Y, k)} << {8 * k}" if k else w.load(Y) for k in range(4))
                w.line(f"s = ({loads}) - {MIDDLE} + {_word(w, 'p + 3')}")
                _store(w)
                w.line("p += 2")
                w.line("n -= 1")
            w.line("i += 1")
        return w


def _word(w: Writer, k: str) -> str:
    return w.word("q", k)


def _store(w: Writer) -> None:
    for k in range(4):
        w.store(Y, f"s >> {8 * k} & 255" if k else "s & 255", k)
