"""Ensembles of decision trees of ai.onnx.ml: on ranks of the model's input if the model is nothing else, otherwise in
float32."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.machine_learning_features import Imputer, Scaler, ZipMap
from emberlet.codegen.ops.machine_learning_trees import (
    TreeEnsemble,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
    Trees,
)

from ..graph import Sums
from ..kernels import trees as kernel
from ..kernels.elementwise import BinaryFloat, ImputeFloat, MapFloat
from ..kernels.softmax import SoftmaxFloat
from ..kernels.trees import CUTS, FEATURES, Branch, Leaf
from ..kernels.trees_float import FloatBranch, FloatLeaf, TreesFloat
from .labels import decide
from .layout import StoredTensor
from .linear_models import SIGMOID
from .ranks import Prepared
from .state import Importer
from .table import translates

MOST_NODES = 1 << 20

Single = np.float32


@translates(Scaler)
def scaler(t: Importer, node: Scaler) -> None:
    """(x - offset) * scale, which is folded into the thresholds."""
    held, c = t.of(node.inputs[0]), node.config
    n = held.dims[-1]
    offset, scale = (np.broadcast_to(np.asarray(v, np.float32), (n,)) for v in (c.offset, c.scale))
    middle = t.layout.fresh(f"{held.name}:centered")
    shape = t.layout.shapes[middle] = t.layout.shapes[held.name]
    out = t.define(node.outputs[0], held.order)
    t.add(BinaryFloat(f"{node.name} center", (held.name,), middle, "sub", shape, (n,), offset))
    t.add(BinaryFloat(node.name, (middle,), out.name, "mul", shape, (n,), scale))
    before = t.ranks.prepared_from(held.name, n)
    with np.errstate(all="ignore"):
        nan = (before.nan - offset) * scale
    t.ranks.prepared[out.name] = Prepared(before.source, nan.astype(np.float32), (*before.steps, (offset, scale)))


@translates(Imputer)
def imputer(t: Importer, node: Imputer) -> None:
    """Another number in place of NaN, or of the number that marks a missing value; thresholds of trees absorb the first
    form."""
    held, c = t.of(node.inputs[0]), node.config
    is_float = node.dtype(0).is_float
    n, gap = held.dims[-1], c.replaced if is_float else float(c.replaced_int)
    given = np.broadcast_to(np.asarray(c.floats if is_float else c.ints, np.float32), (n,))
    held = t.ordered(held, tuple(range(len(held.dims))))
    out = t.define(node.outputs[0], held.order)
    t.add(ImputeFloat(node.name, (held.name,), out.name, "impute", t.layout.shapes[held.name], (n,), given, gap))
    if np.isnan(gap):
        before = t.ranks.prepared_from(held.name, n)
        nan = np.where(np.isnan(before.nan), given, before.nan).astype(np.float32)
        t.ranks.prepared[out.name] = Prepared(before.source, nan, before.steps)


@translates(ZipMap)
def zip_map(t: Importer, node: ZipMap) -> None:
    """A name for each score, stored in the module."""
    t.layout.held[node.outputs[0].name] = t.of(node.inputs[0])
    t.outputs.labels = tuple(node.config.keys)


@dataclass(frozen=True)
class _Scores:
    """base: what each target starts with; which: the output with the scores; both_sides: the leaves score the second of
    two targets."""

    base: tuple[float, ...]
    aggregate: str
    transform: str | None
    which: int = 0
    both_sides: bool = False

    def divisor(self, drawn: _Drawn) -> int:
        """Of the sums."""
        return len(drawn.roots) if self.aggregate == "average" else 1


@translates(TreeEnsembleRegressor)
def regressor(t: Importer, node: TreeEnsembleRegressor) -> None:
    c = node.config
    transform = c.transform if c.n_targets > 1 else None
    _ensemble(t, node, c.trees, _Scores(c.base or (0.0,) * c.n_targets, c.aggregate, transform))


@translates(TreeEnsemble)
def ensemble(t: Importer, node: TreeEnsemble) -> None:
    c = node.config
    _ensemble(t, node, c.trees, _Scores((0.0,) * c.n_targets, c.aggregate, c.post_transform))


@translates(TreeEnsembleClassifier)
def classifier(t: Importer, node: TreeEnsembleClassifier) -> None:
    c, base = node.config, node.config.base
    if not c.one_sided:
        sums = _ensemble(t, node, c.trees, _Scores(base or (0.0,) * len(c.labels), "sum", c.transform, 1))
    else:
        # A single score s; the other one is -s or 1 - s.
        score = base[-1] if base else 0.0
        opposite = not c.gains or c.transform == "sigmoid"
        both = (-score if opposite else 1 - score, score)
        transform = c.transform if c.transform == "sigmoid" else None
        sums = _ensemble(t, node, c.trees, _Scores(both, "sum", transform, 1, both_sides=True))
    if sums in t.ranks.sums:
        t.outputs.dropped.add(node.outputs[0].name)  # only the caller reads it
        t.outputs.labels = tuple(c.labels)
    else:
        decide(t, node.outputs[0], sums, True, c.labels)


def _ensemble(t: Importer, node: Node[Any], trees: Trees, scores: _Scores) -> str:
    """The name of the sums."""
    how = f"aggregate_function {scores.aggregate} and post_transform {scores.transform}"
    if scores.aggregate not in ("sum", "average") or scores.transform not in (None, "softmax", "logistic", "sigmoid"):
        raise Problem(f"trees with {how} are not supported")
    if trees.members is not None:
        raise Problem("trees with BRANCH_MEMBER nodes, which test membership in a set, are not supported")
    held = t.of(node.inputs[0])
    features = held.dims[-1]
    if np.prod(held.dims) != features or features > FEATURES:
        raise Problem(f"the input has shape {held.dims}; one row of at most {FEATURES} features is supported")
    prepared = t.ranks.prepared_from(held.name, features)
    if t.ranks.alone and prepared.source in t.inputs:
        drawn = _Drawn(trees, prepared)
        drawn.walk()
        slots = drawn.slots(features)
        if max(map(len, slots.cuts), default=0) < CUTS and len(slots.cuts) <= FEATURES:
            return _on_ranks(t, node, drawn, slots, scores)
    drawn = _Drawn(trees, None)
    drawn.walk()
    return _in_floats(t, node, held, drawn, scores)


def _on_ranks(t: Importer, node: Node[Any], drawn: _Drawn, slots: _Slots, scores: _Scores) -> str:
    """An ensemble in integers, on the ranks of the model's input."""
    assert drawn.prepared is not None
    source, divisor = drawn.prepared.source, scores.divisor(drawn)
    base = tuple(b * divisor for b in scores.base)
    step = drawn.step(base)
    nodes = drawn.finished(slots, step, scores.both_sides)
    starts = tuple(round(b / step) for b in base)
    wide = max(map(len, slots.cuts), default=0) > 255
    name = node.outputs[scores.which].name
    out = t.layout.store(name, (4 * len(base),), (0,))
    t.layout.shapes[source] = (len(slots.cuts) * (2 if wide else 1),)
    t.ranks.cuts[source] = slots.cuts
    t.ranks.of_nan[source] = slots.nan, slots.copies
    transform = {"sigmoid": "logistic"}.get(scores.transform or "", scores.transform)
    t.ranks.sums[out.name] = Sums(step / divisor, transform)
    t.add(kernel.Trees(node.name or name, (source,), out.name, nodes, tuple(drawn.roots), starts, wide))
    return out.name


def _in_floats(t: Importer, node: Node[Any], held: StoredTensor, drawn: _Drawn, scores: _Scores) -> str:
    """An ensemble in float32, on numbers that other layers compute or read too."""
    drawn.step(scores.base)  # refuses NaN
    divisor, transform = scores.divisor(drawn), scores.transform
    base = tuple(b * divisor for b in scores.base)
    held = t.shaped(held, (held.dims[-1],))
    out = StoredTensor(t.layout.fresh(node.outputs[scores.which].name), (1, len(base)), (0, 1))
    name = node.name or out.name
    sums = out.name if transform is None else t.layout.fresh(f"{out.name}:sums")
    t.layout.shapes[sums] = t.layout.shapes[out.name] = (len(base),)
    t.layout.held[node.outputs[scores.which].name] = out
    t.add(TreesFloat(name, (held.name,), sums, drawn.in_floats(scores.both_sides), tuple(drawn.roots), base, divisor))
    if transform == "softmax":
        t.add(SoftmaxFloat(f"{name} softmax", (sums,), out.name, 1, len(base)))
    elif transform is not None:
        t.add(MapFloat(f"{name} probabilities", (sums,), out.name, (len(base),), SIGMOID))
    return sums


@dataclass(frozen=True)
class _Slots:
    """The ranks that stand for the features. cuts: for each slot the numbers that its feature is compared with,
    ascending; nan: the rank of NaN in it. Slots are first the features, then copies: a second slot of a feature for
    nodes that send NaN to the lower side, if no single rank of NaN takes the right branch at all of them."""

    cuts: tuple[tuple[float, ...], ...]
    nan: tuple[int, ...]
    copies: tuple[int, ...]


@dataclass(frozen=True)
class _Split:
    feature: int
    cut: float
    low: int
    high: int
    nan_low: bool


class _Drawn:
    """The nodes of an ensemble: branches with their thresholds in float32, leaves with their weights.

    prepared: how the model's input is prepared first; None if the trees read results of other layers.
    """

    def __init__(self, trees: Trees, prepared: Prepared | None) -> None:
        self.table = np.asarray(trees.nodes.ints(), np.int64).reshape(-1, 7).tolist()
        self.splits = [float(v) for v in trees.splits.list()]
        self.leaf_weights = [float(v) for v in trees.leaf_weights.list()]
        self.leaf_targets = trees.leaf_targets.ints()
        self.starts = None if trees.leaf_starts is None else trees.leaf_starts.ints()
        self.first = trees.roots.ints()
        self.prepared = prepared
        self.branches: list[_Split | int] = []
        self.roots: list[int] = []

    def walk(self) -> None:
        """Fill `branches`: a split, or the number of a leaf."""
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
            feature, mode, true, false, true_leaf, false_leaf, nan_true = self.table[number]
            ways = ((true, bool(true_leaf)), (false, bool(false_leaf)))
            split = float(Single(self.splits[number]))
            below = float(np.nextafter(Single(split), Single(-np.inf)))
            # ≤, <, ≥ and > differ in the threshold and in the side that is true. = and ≠ take two comparisons.
            if mode in (4, 5):
                same, other = ways if mode == 4 else ways[::-1]
                inner = self._new()
                low, high = self._new(), self._new()
                self._set(at, feature, split, inner, high, mode == 4 and bool(nan_true))
                waiting.append((*other, high))
                again = self._new()
                self._set(inner, feature, below, low, again, False)
                waiting += [(*other, low), (*same, again)]
                continue
            cut = split if mode in (0, 3) else below
            under, over = ways if mode in (0, 1) else ways[::-1]
            low, high = self._new(), self._new()
            self._set(at, feature, cut, low, high, bool(nan_true) == (mode in (0, 1)))
            waiting += [(*under, low), (*over, high)]
        return made

    def _new(self) -> int:
        if len(self.branches) > MOST_NODES:
            raise Problem(f"the trees have more than {MOST_NODES} nodes")
        self.branches.append(0)
        return len(self.branches) - 1

    def _set(self, at: int, feature: int, cut: float, low: int, high: int, nan_low: bool) -> None:
        p = self.prepared
        if p is not None:
            if not np.isnan(p.nan[feature]):
                nan_low = bool(p.nan[feature] <= Single(cut))
            steps = [(float(offset[feature]), float(scale[feature])) for offset, scale in p.steps]
            if steps:
                cut, turned = before_scaling(cut, *steps)
                if turned:
                    low, high, nan_low = high, low, not nan_low
        self.branches[at] = _Split(feature, cut, low, high, nan_low)

    def slots(self, features: int) -> _Slots:
        found: list[set[float]] = [set() for _ in range(features)]
        sides: list[dict[bool, list[float]]] = [{True: [], False: []} for _ in range(features)]
        for b in self.branches:
            if isinstance(b, _Split):
                found[b.feature].add(b.cut)
                sides[b.feature][b.nan_low].append(b.cut)
        cuts, nan, copies = [tuple(sorted(s)) for s in found], [], []
        for feature, side in enumerate(sides):
            most, least = max(side[False], default=-np.inf), min(side[True], default=np.inf)
            if side[False] and side[True] and most >= least:
                copies.append(feature)
                nan.append(len(cuts[feature]))
            else:
                nan.append(cuts[feature].index(most) + 1 if side[False] else 0)
        return _Slots((*cuts, *(cuts[f] for f in copies)), (*nan, *(0 for _ in copies)), tuple(copies))

    def adds(self, leaf: int) -> list[tuple[int, float]]:
        entries = (leaf,) if self.starts is None else range(self.starts[leaf], self.starts[leaf + 1])
        return [(self.leaf_targets[e], self.leaf_weights[e]) for e in entries]

    def step(self, base: tuple[float, ...]) -> float:
        """The smallest power of two with which every sum of leaves is less than MIDDLE steps, each leaf rounded."""
        most = max((abs(b) for b in base), default=0.0)
        leaves = [abs(w) for b in self.branches if not isinstance(b, _Split) for _, w in self.adds(b)]
        most += max(leaves, default=0.0) * len(self.roots)
        if not np.isfinite(most):
            raise Problem("some leaves are NaN or infinite")
        least = most / (kernel.MIDDLE - len(self.roots) - 1)
        return 2.0 ** ceil(log2(least)) if least else 1.0

    def finished(self, slots: _Slots, step: float, both_sides: bool) -> tuple[Branch | Leaf, ...]:
        place = [{c: k for k, c in enumerate(row)} for row in slots.cuts]
        first = len(slots.cuts) - len(slots.copies)
        copy = {feature: first + k for k, feature in enumerate(slots.copies)}
        made: list[Branch | Leaf] = []
        for b in self.branches:
            if isinstance(b, _Split):
                slot = copy.get(b.feature, b.feature) if b.nan_low else b.feature
                made.append(Branch(slot, place[slot][b.cut], b.low, b.high))
                continue
            adds = [(target, round(w / step)) for target, w in self._leaf(b, both_sides)]
            made.append(Leaf(tuple(entry for entry in adds if entry[1])))
        return tuple(made)

    def in_floats(self, both_sides: bool) -> tuple[FloatBranch | FloatLeaf, ...]:
        return tuple(
            FloatBranch(b.feature, b.cut, b.low, b.high, b.nan_low)
            if isinstance(b, _Split)
            else FloatLeaf(tuple(self._leaf(b, both_sides)))
            for b in self.branches
        )

    def _leaf(self, leaf: int, both_sides: bool) -> list[tuple[int, float]]:
        if not both_sides:
            return self.adds(leaf)
        return [entry for _, w in self.adds(leaf) for entry in ((0, -w), (1, w))]


def before_scaling(cut: float, *steps: tuple[float, float]) -> tuple[float, bool]:
    """The threshold for x that is equivalent to comparing the result of the steps, each x = (x - offset) * scale in
    float32, with `cut`; and whether the comparison is reversed.

    Found by bisection: float32's numbers are in order of their bits.
    """
    singles, c = [(Single(offset), Single(scale)) for offset, scale in steps], Single(cut)

    def at_most(x: Any) -> bool:
        x = Single(x)
        with np.errstate(all="ignore"):
            for offset, scale in singles:
                x = (x - offset) * scale
        return bool(x <= c)

    if any(scale == 0 for _, scale in singles):
        return (np.inf if at_most(0.0) else -np.inf), False
    turned = sum(scale < 0 for _, scale in singles) % 2 == 1
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
