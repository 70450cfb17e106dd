"""Ensembles of decision trees: TreeEnsemble, and the two operators it replaced."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.choices import Aggregation, PostTransform
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..ir.value import Fill, Inline, Value, ints_value
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at
from .machine_learning import (
    DOMAIN,
    Labels,
    best,
    both_sides,
    class_types,
    floats_value,
    labels_of,
    positive,
    rows_of,
    transform_of,
    transformed,
)

FAMILY = "machine learning"

AGGREGATE = (Aggregation.AVERAGE, Aggregation.SUM, Aggregation.MIN, Aggregation.MAX)
POST_TRANSFORM = (
    None, PostTransform.SOFTMAX, PostTransform.LOGISTIC, PostTransform.SOFTMAX_ZERO, PostTransform.PROBIT
)  # fmt: skip
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


MAX_TARGETS = 1 << 20


@dataclass(frozen=True)
class Trees:
    """The tables that `F.tree_ensemble` takes."""

    splits: Value
    nodes: Value
    leaf_weights: Value
    leaf_targets: Value
    roots: Value
    members: Value | None
    leaf_starts: Value | None

    def check_width(self, node: Node[Any]) -> None:
        """Raise Problem if the node's input is known to lack a feature that a tree reads."""
        found = dim_at(node.shape(0), -1)
        needed = max(self.nodes.ints()[::7], default=-1) + 1
        if isinstance(found, int) and found < needed:
            raise Problem(f"its input has {found} features, a tree reads number {needed - 1}")

    def emit(self, e: Emitter, n_targets: int, aggregate: str, post_transform: str | None = None) -> Expr:
        optional = {
            name: e.parameter(name, value)
            for name, value in (("members", self.members), ("leaf_starts", self.leaf_starts))
            if value is not None
        }
        return e.call(
            "tree_ensemble",
            e.x(0),
            e.parameter("splits", self.splits),
            e.parameter("nodes", self.nodes),
            e.parameter("leaf_weights", self.leaf_weights),
            e.parameter("leaf_targets", self.leaf_targets),
            e.parameter("roots", self.roots),
            n_targets,
            aggregate=default(aggregate),
            post_transform=default(post_transform),
            **optional,
        )


Row = Sequence[int]
"""A node: feature, mode, next for true and for false, whether each is a leaf, whether NaN counts as true."""


def checked(rows: Sequence[Row], splits: Value, entries: tuple[Value, Sequence[int]], roots: Sequence[int],
            n_targets: int, members: Value | None = None, starts: Sequence[int] | None = None) -> Trees:  # fmt: skip
    """The tables, after checking that every path through the trees ends at a leaf. Raises Problem."""
    weights, targets = entries
    if not 1 <= n_targets <= MAX_TARGETS:
        raise Problem(f"has {n_targets} targets, expected 1 to {MAX_TARGETS}")
    leaves = len(targets) if starts is None else len(starts) - 1
    if splits.size != len(rows) or weights.size != len(targets):
        raise Problem("the tables of a tree ensemble must have one entry a node, and one a leaf")
    parents = [0] * len(rows)
    for feature, mode, true, false, true_leaf, false_leaf, _ in rows:
        if feature < 0 or not 0 <= mode < 7:
            raise Problem(f"a tree's node has the feature {feature} and the mode {mode}; modes are 0 to 6")
        for where, leaf in ((true, true_leaf), (false, false_leaf)):
            if not 0 <= where < (leaves if leaf else len(rows)):
                raise Problem(f"a tree refers to {'leaf' if leaf else 'node'} {where}, which does not exist")
            if not leaf:
                parents[where] += 1
    if any(not 0 <= r < len(rows) for r in roots) or any(not 0 <= t < n_targets for t in targets):
        raise Problem("a tree's root or a leaf's target does not exist")
    _check_no_cycle(rows, parents)
    flat = [v for row in rows for v in row]
    return Trees(
        splits,
        Value(dtypes.int64, (len(rows), 7), Inline(struct.pack(f"<{len(flat)}q", *flat))),
        weights,
        ints_value(tuple(targets)),
        ints_value(tuple(roots)),
        members,
        None if starts is None else ints_value(tuple(starts)),
    )


@dataclass(frozen=True)
class TreeEnsembleConfig:
    trees: Trees
    n_targets: int
    aggregate: Aggregation
    post_transform: PostTransform | None


class TreeEnsemble(Node[TreeEnsembleConfig]):
    """An ensemble of decision trees; its tables become constants of the model."""

    domain, since, loops = DOMAIN, (5,), True

    @classmethod
    def read(cls, a: Attributes) -> TreeEnsembleConfig:
        splits, modes = a.tensor("nodes_splits"), tuple(int(m) for m in a.tensor("nodes_modes").list())
        columns = [
            a.ints("nodes_featureids"),
            modes,
            a.ints("nodes_truenodeids"),
            a.ints("nodes_falsenodeids"),
            a.ints("nodes_trueleafs"),
            a.ints("nodes_falseleafs"),
            a.ints("nodes_missing_value_tracks_true", (0,) * splits.size),
        ]
        a.has("nodes_hitrates")
        if any(len(c) != splits.size for c in columns):
            raise Problem("the tables of a tree ensemble must have one entry a node, and one a leaf")
        aggregate, transform = a.int("aggregate_function", 1), a.int("post_transform", 0)
        if aggregate not in range(4) or transform not in range(5):
            raise Problem(f"aggregate_function {aggregate} or post_transform {transform} does not exist")
        n_targets = a.int("n_targets")
        trees = checked(
            list(zip(*columns, strict=True)),
            splits,
            (a.tensor("leaf_weights"), a.ints("leaf_targetids")),
            a.ints("tree_roots"),
            n_targets,
            a.tensor("membership_values") if a.has("membership_values") else None,
        )
        return TreeEnsembleConfig(trees, n_targets, AGGREGATE[aggregate], POST_TRANSFORM[transform])

    def infer(self) -> tuple[Type, ...]:
        self.config.trees.check_width(self)
        x = self.tensor(0)
        return (TensorType(x.dtype, (dim_at(x.shape, 0), self.config.n_targets)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return c.trees.emit(e, c.n_targets, c.aggregate, c.post_transform)


def numbers_of(a: Attributes, name: str, needed: bool = True) -> tuple[float, ...]:
    """A list of floats; version 3 also accepts a tensor, perhaps of doubles."""
    if a.has(name + "_as_tensor"):
        return tuple(float(v) for v in a.tensor(name + "_as_tensor").list())
    return a.floats(name) if needed else a.floats(name, ())


def _check_no_cycle(rows: Sequence[Row], parents: list[int]) -> None:
    """Remove nodes from the roots on: a cycle remains. parents: how many nodes lead to each. Raises Problem."""
    open_ = [i for i, n in enumerate(parents) if not n]
    left = len(rows)
    while open_:
        row, left = rows[open_.pop()], left - 1
        for where, leaf in ((row[2], row[4]), (row[3], row[5])):
            if not leaf:
                parents[where] -= 1
                if not parents[where]:
                    open_.append(where)
    if left:
        raise Problem("a tree contains a cycle")


def old_trees(a: Attributes, what: str, n_targets: int) -> tuple[Trees, tuple[int, ...]]:
    """The tables of an ensemble written as until version 3, where leaves are nodes, and what each leaf adds is listed
    apart; and the targets that leaves add to. what: "class" or "target". Raises Problem."""
    keys = list(zip(a.ints("nodes_treeids"), a.ints("nodes_nodeids"), strict=False))
    modes, features, values = a.strings("nodes_modes"), a.ints("nodes_featureids"), numbers_of(a, "nodes_values")
    true, false = a.ints("nodes_truenodeids"), a.ints("nodes_falsenodeids")
    missing = a.ints("nodes_missing_value_tracks_true", ()) or (0,) * len(keys)
    a.has("nodes_hitrates"), a.has("nodes_hitrates_as_tensor")
    if len(set(keys)) < len(keys):
        raise Problem("two nodes of a tree have the same number")
    if any(len(column) != len(keys) for column in (modes, features, values, true, false, missing)):
        raise Problem("the tables of a tree ensemble must have one entry a node")
    leaf = {key: n for n, key in enumerate(k for k, m in zip(keys, modes, strict=True) if m == "LEAF")}
    branch = {key: n for n, key in enumerate(k for k, m in zip(keys, modes, strict=True) if m != "LEAF")}
    rows: list[Row] = []
    splits: list[float] = []
    for i, key in enumerate(keys):
        if key in leaf:
            continue
        if modes[i] not in MODES:
            raise Problem(f"a tree's node has the mode {modes[i]!r}, expected LEAF or one of {', '.join(MODES)}")
        ends = [(key[0], true[i]), (key[0], false[i])]
        for end in ends:
            if end not in leaf and end not in branch:
                raise Problem(f"tree {key[0]} refers to node {end[1]}, which does not exist")
        where = [leaf[end] if end in leaf else branch[end] for end in ends]
        rows.append((features[i], MODES.index(modes[i]), *where, *(int(end in leaf) for end in ends), missing[i]))
        splits.append(values[i])
    roots: dict[int, int] = {}
    for key in keys:
        if key[0] in roots:
            continue
        if key in leaf:  # a tree with only a leaf: both branches lead there
            roots[key[0]] = len(rows)
            rows.append((0, 0, leaf[key], leaf[key], 1, 1, 0))
            splits.append(0.0)
        else:
            roots[key[0]] = branch[key]
    adds = _added(a, what, leaf)
    entries = [entry for one in adds for entry in one]
    starts = [0]
    for one in adds:
        starts.append(starts[-1] + len(one))
    trees = checked(
        rows,
        floats_value(splits, (len(splits),)),
        (floats_value([w for _, w in entries], (len(entries),)), [t for t, _ in entries]),
        tuple(roots.values()),
        n_targets,
        None,
        None if all(len(one) == 1 for one in adds) else starts,
    )
    return trees, tuple(sorted({t for t, _ in entries}))


def added(e: Emitter, scores: Expr, base: tuple[float, ...]) -> Expr:
    """Scores and the values they start from."""
    if not any(base):
        return scores
    return Binary(
        "+", scores, lift(base[0]) if len(base) == 1 else e.parameter("base", floats_value(base, (len(base),)))
    )


@dataclass(frozen=True)
class TreeEnsembleRegressorConfig:
    trees: Trees
    base: tuple[float, ...]
    n_targets: int
    aggregate: Aggregation
    transform: PostTransform | None


class TreeEnsembleRegressor(Node[TreeEnsembleRegressorConfig]):
    """The older form of TreeEnsemble. With a single target, only probit has an effect, as in onnxruntime."""

    domain, since, loops = DOMAIN, (1, 3), True

    @classmethod
    def read(cls, a: Attributes) -> TreeEnsembleRegressorConfig:
        n_targets = a.int("n_targets")
        base = numbers_of(a, "base_values", False)
        if len(base) not in (0, n_targets):
            raise Problem(f"{len(base)} base_values for {n_targets} targets")
        aggregate = Aggregation(a.string("aggregate_function", "SUM", ("AVERAGE", "SUM", "MIN", "MAX")).lower())
        trees, _ = old_trees(a, "target", n_targets)
        return TreeEnsembleRegressorConfig(trees, base, n_targets, aggregate, transform_of(a))

    def infer(self) -> tuple[Type, ...]:
        self.config.trees.check_width(self)
        return (TensorType(dtypes.float32, (rows_of(self), self.config.n_targets)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        scores = _float32(self, e, c.trees.emit(e, c.n_targets, c.aggregate))
        transform = c.transform if c.n_targets > 1 or c.transform == "probit" else None
        return transformed(e, added(e, scores, c.base), transform)


@dataclass(frozen=True)
class TreeEnsembleClassifierConfig:
    """one_sided: the leaves score only one of two classes. gains: no leaf lowers a score."""

    trees: Trees
    base: tuple[float, ...]
    labels: Labels
    one_sided: bool
    gains: bool
    transform: PostTransform | None


class TreeEnsembleClassifier(Node[TreeEnsembleClassifierConfig]):
    """Trees that add to the scores of classes, and the label of the highest score. NaN follows the node's flag.

    If the leaves score only one of two classes, that score decides: over 0.5 if no leaf lowers it (the sum is a
    probability), else over 0. With leaves for both classes, the label is that of the higher score, as in ONNX's
    reference; onnxruntime returns 0 or 1 whatever the labels are.
    """

    domain, since, loops = DOMAIN, (1, 3), True

    @classmethod
    def read(cls, a: Attributes) -> TreeEnsembleClassifierConfig:
        labels = labels_of(a, "classlabels_int64s")
        if len(labels) < 2:
            raise Problem(f"cannot choose between classes: the only label is {labels[0]!r}")
        base, transform = numbers_of(a, "base_values", False), transform_of(a)
        trees, targets = old_trees(a, "class", len(labels))
        one_sided = len(labels) == 2 and len(targets) == 1
        if len(base) not in (0, len(labels), *((1,) if one_sided else ())):
            raise Problem(f"{len(base)} base_values for {len(labels)} classes")
        if one_sided:
            base = base[-1:]
            trees = replace(trees, leaf_targets=Value(dtypes.int64, trees.leaf_targets.shape, Fill(0)))
        gains = all(isinstance(w, float) and w >= 0 for w in trees.leaf_weights.list())
        return TreeEnsembleClassifierConfig(trees, base, labels, one_sided, gains, transform)

    def infer(self) -> tuple[Type, ...]:
        self.config.trees.check_width(self)
        return class_types(self, self.config.labels, len(self.config.labels))

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        scores = _float32(self, e, c.trees.emit(e, 1 if c.one_sided else len(c.labels), "sum"))
        scores = e.assign("scores", added(e, scores, c.base))
        if not c.one_sided:
            return best(e, scores, c.labels), transformed(e, scores, c.transform)
        label = positive(e, scores, c.labels, 0.5 if c.gains else 0.0)
        return label, both_sides(e, scores, c.transform, not c.gains)


def _float32(node: Node[Any], e: Emitter, scores: Expr) -> Expr:
    return e.call("cast", scores, dtypes.float32) if node.dtype(0) is dtypes.float64 else scores


def _added(a: Attributes, what: str, leaf: dict[tuple[int, int], int]) -> list[list[tuple[int, float]]]:
    """(target, weight) of what each leaf adds. leaf: (tree, node) -> its number. Raises Problem."""
    adds: list[list[tuple[int, float]]] = [[] for _ in leaf]
    ids, weights = a.ints(f"{what}_ids"), numbers_of(a, f"{what}_weights")
    at = list(zip(a.ints(f"{what}_treeids"), a.ints(f"{what}_nodeids"), strict=False))
    if not len(at) == len(ids) == len(weights):
        raise Problem(f"{len(at)} leaves, {len(ids)} {what}_ids and {len(weights)} {what}_weights")
    for key, target, weight in zip(at, ids, weights, strict=True):
        if key in leaf:
            adds[leaf[key]].append((target, weight))
    return adds
