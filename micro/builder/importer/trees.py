"""Ensembles of decision trees of ai.onnx.ml, whose input is the model's input, possibly scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.machine_learning_features import Scaler, ZipMap
from emberlet.codegen.ops.machine_learning_trees import (
    TreeEnsemble,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
    Trees,
)

from ..graph import Sums
from ..kernels import trees as kernel
from ..kernels.elementwise import BinaryFloat
from ..kernels.trees import CUTS, FEATURES, Branch, Leaf
from .state import Importer, StoredTensor
from .table import translates

MOST_NODES = 1 << 20

Single = np.float32


@translates(Scaler)
def scaler(t: Importer, node: Scaler) -> None:
    """(x - offset) * scale, which is folded into the thresholds."""
    held, c = t.of(node.inputs[0]), node.config
    n = held.dims[-1]
    offset, scale = (np.broadcast_to(np.asarray(v, np.float32), (n,)) for v in (c.offset, c.scale))
    middle = t.fresh(f"{held.name}:centered")
    shape = t.shapes[middle] = t.shapes[held.name]
    out = t.define(node.outputs[0], held.order)
    t.add(BinaryFloat(f"{node.name} center", (held.name,), middle, "sub", shape, (n,), offset))
    t.add(BinaryFloat(node.name, (middle,), out.name, "mul", shape, (n,), scale))
    t.scaled[out.name] = held.name, offset, scale


@translates(ZipMap)
def zip_map(t: Importer, node: ZipMap) -> None:
    """A name for each score, stored in the module."""
    t.held[node.outputs[0].name] = t.of(node.inputs[0])
    t.labels = tuple(node.config.keys)


@translates(TreeEnsembleRegressor)
def regressor(t: Importer, node: TreeEnsembleRegressor) -> None:
    c = node.config
    transform = c.transform if c.n_targets > 1 else None
    _ensemble(t, node, c.trees, c.base or (0.0,) * c.n_targets, c.aggregate, transform, 0)


@translates(TreeEnsemble)
def ensemble(t: Importer, node: TreeEnsemble) -> None:
    c = node.config
    _ensemble(t, node, c.trees, (0.0,) * c.n_targets, c.aggregate, c.post_transform, 0)


@translates(TreeEnsembleClassifier)
def classifier(t: Importer, node: TreeEnsembleClassifier) -> None:
    c, base = node.config, node.config.base
    if not c.one_sided:
        _ensemble(t, node, c.trees, base or (0.0,) * len(c.labels), "sum", c.transform, 1)
    else:
        # A single score s; the other one is -s or 1 - s.
        score = base[-1] if base else 0.0
        opposite = not c.gains or c.transform == "sigmoid"
        both = (-score if opposite else 1 - score, score)
        transform = c.transform if c.transform == "sigmoid" else None
        _ensemble(t, node, c.trees, both, "sum", transform, 1, both_sides=True)
    t.dropped.add(node.outputs[0].name)
    t.labels = tuple(c.labels)


def _ensemble(
    t: Importer,
    node: Node[Any],
    trees: Trees,
    base: tuple[float, ...],
    aggregate: str,
    transform: str | None,
    which: int,
    both_sides: bool = False,
) -> None:
    """which: the output with the scores; both_sides: the leaves score the second of two targets."""
    if aggregate not in ("sum", "average") or transform not in (None, "softmax", "logistic", "sigmoid"):
        raise Problem(f"trees with aggregate_function {aggregate} and post_transform {transform} are not supported")
    if trees.members is not None:
        raise Problem("trees with BRANCH_MEMBER nodes, which test membership in a set, are not supported")
    held = t.of(node.inputs[0])
    source, offset, scale = t.scaled.get(held.name, (held.name, None, None))
    if source not in t.inputs:
        raise Problem("the trees must read the model's input, or the scaled input, and not another layer")
    features = held.dims[-1]
    if np.prod(held.dims) != features or features > FEATURES:
        raise Problem(f"the input has shape {held.dims}; one row of at most {FEATURES} features is supported")
    drawn = _Drawn(trees, offset, scale)
    drawn.walk()
    cuts = drawn.cuts(features)
    most = max(map(len, cuts), default=0)
    if most >= CUTS:
        raise Problem(f"one feature is compared with {most} numbers; at most {CUTS - 1} are supported")
    step = drawn.step(base)
    if aggregate == "average":
        base = tuple(b * len(drawn.roots) for b in base)
    nodes = drawn.finished(cuts, step, both_sides)
    starts = tuple(round(b / step) for b in base)
    wide = most > 255
    name = node.outputs[which].name
    out = StoredTensor(t.fresh(name), (4 * len(base),), (0,))
    t.shapes[out.name] = out.shape
    t.held[name] = out
    t.shapes[source] = (features * (2 if wide else 1),)
    t.cuts[source] = cuts
    unit = step / len(drawn.roots) if aggregate == "average" else step
    t.sums[out.name] = Sums(unit, {"sigmoid": "logistic"}.get(transform or "", transform))
    t.add(kernel.Trees(node.name or name, (source,), out.name, nodes, tuple(drawn.roots), starts, wide))


class _Drawn:
    """The nodes of an ensemble: branches with float32 thresholds, and leaves with weights."""

    def __init__(self, trees: Trees, offset: npt.NDArray[Any] | None, scale: npt.NDArray[Any] | None) -> None:
        self.table = np.asarray(trees.nodes.ints(), np.int64).reshape(-1, 7).tolist()
        self.splits = [float(v) for v in trees.splits.list()]
        self.leaf_weights = [float(v) for v in trees.leaf_weights.list()]
        self.leaf_targets = trees.leaf_targets.ints()
        self.starts = None if trees.leaf_starts is None else trees.leaf_starts.ints()
        self.first = trees.roots.ints()
        self.offset, self.scale = offset, scale
        self.branches: list[tuple[int, float, int, int] | int] = []
        self.roots: list[int] = []

    def walk(self) -> None:
        """Fill `branches`: (feature, number, node for at most it, node above it), or the number of a leaf."""
        for root in self.first:
            self.roots.append(self._node(root))

    def _node(self, root: int) -> int:
        """Add a tree's nodes; returns the number of the first."""
        made = self._new()
        row = self.table[root]
        waiting: list[tuple[int, bool, int]] = [(root, False, made)]
        if row[4] and row[5] and row[2] == row[3]:
            waiting = [(row[2], True, made)]
        while waiting:
            number, is_leaf, at = waiting.pop()
            if is_leaf:
                self.branches[at] = number
                continue
            feature, mode, true, false, true_leaf, false_leaf, _ = self.table[number]
            ways = ((true, bool(true_leaf)), (false, bool(false_leaf)))
            split = float(Single(self.splits[number]))
            below = float(np.nextafter(Single(split), Single(-np.inf)))
            # ≤, <, ≥ and > differ in the threshold and in the side that is true. = and ≠ take two comparisons.
            if mode in (4, 5):
                same, other = ways if mode == 4 else ways[::-1]
                inner = self._new()
                low, high = self._new(), self._new()
                self._set(at, feature, split, inner, high)
                waiting.append((*other, high))
                again = self._new()
                self._set(inner, feature, below, low, again)
                waiting += [(*other, low), (*same, again)]
                continue
            cut = split if mode in (0, 3) else below
            under, over = ways if mode in (0, 1) else ways[::-1]
            low, high = self._new(), self._new()
            self._set(at, feature, cut, low, high)
            waiting += [(*under, low), (*over, high)]
        return made

    def _new(self) -> int:
        if len(self.branches) > MOST_NODES:
            raise Problem(f"the trees have more than {MOST_NODES} nodes")
        self.branches.append(0)
        return len(self.branches) - 1

    def _set(self, at: int, feature: int, cut: float, low: int, high: int) -> None:
        if self.offset is not None and self.scale is not None:
            cut, turned = before_scaling(cut, float(self.offset[feature]), float(self.scale[feature]))
            low, high = (high, low) if turned else (low, high)
        self.branches[at] = feature, cut, low, high

    def cuts(self, features: int) -> tuple[tuple[float, ...], ...]:
        """For each feature the numbers that it is compared with, ascending."""
        found: list[set[float]] = [set() for _ in range(features)]
        for b in self.branches:
            if isinstance(b, tuple):
                found[b[0]].add(b[1])
        return tuple(tuple(sorted(s)) for s in found)

    def adds(self, leaf: int) -> list[tuple[int, float]]:
        entries = (leaf,) if self.starts is None else range(self.starts[leaf], self.starts[leaf + 1])
        return [(self.leaf_targets[e], self.leaf_weights[e]) for e in entries]

    def step(self, base: tuple[float, ...]) -> float:
        """The smallest step with which every sum of leaves fits a word."""
        most = max((abs(b) for b in base), default=0.0)
        leaves = [abs(w) for b in self.branches if isinstance(b, int) for _, w in self.adds(b)]
        most += max(leaves, default=0.0) * len(self.roots)
        if not np.isfinite(most):
            raise Problem("some leaves are NaN or infinite")
        return float(most / (1 << 28)) or 1.0

    def finished(self, cuts: tuple[tuple[float, ...], ...], step: float, both_sides: bool) -> tuple[Branch | Leaf, ...]:
        place = [{c: k for k, c in enumerate(row)} for row in cuts]
        made: list[Branch | Leaf] = []
        for b in self.branches:
            if isinstance(b, tuple):
                made.append(Branch(b[0], place[b[0]][b[1]], b[2], b[3]))
                continue
            adds = [(target, round(w / step)) for target, w in self.adds(b)]
            if both_sides:
                adds = [entry for _, w in adds for entry in ((0, -w), (1, w))]
            made.append(Leaf(tuple(entry for entry in adds if entry[1])))
        return tuple(made)


def before_scaling(cut: float, offset: float, scale: float) -> tuple[float, bool]:
    """The threshold for x that is equivalent to comparing (x - offset) * scale, in float32, with `cut`; and whether the
    comparison is reversed.

     Found by bisection, since the bits of float32 numbers are in their order.
    """
    o, s, c = Single(offset), Single(scale), Single(cut)

    def at_most(x: Any) -> bool:
        with np.errstate(all="ignore"):
            return bool((Single(x) - o) * s <= c)

    if s == 0:
        return (np.inf if at_most(0.0) else -np.inf), False
    turned = bool(s < 0)
    low, high = -(0x7F800000), 0x7F800000
    while low < high:
        middle = (low + high) >> 1
        if at_most(_ordered(middle)) != turned:
            low = middle + 1
        else:
            high = middle
    return float(_ordered(low - 1)), turned


def _ordered(number: int) -> Any:
    """The float32 at a position in the order of all float32 numbers; position 0 is zero."""
    bits = number if number >= 0 else -number | 1 << 31
    return np.uint32(bits).view(np.float32)
