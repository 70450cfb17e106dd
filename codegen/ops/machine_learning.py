"""Operators of ai.onnx.ml: trees, thresholds, picking features."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..ir.node import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type, product
from ..ir.value import Inline, Value, ints_value
from .attributes import Attributes
from .base import Plain, one_channel_or


class ArrayFeatureExtractor(Plain):
    """Columns of the last axis; from a vector, one row of them."""

    domain = "ai.onnx.ml"

    def infer(self) -> tuple[Type, ...]:
        x, wanted = self.tensor(0), self.shape(1)
        count = product(wanted) if wanted is not None else None
        if x.shape is None:
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, (*(x.shape[:-1] or (1,)), count)),)

    def emit(self, e: Emitter) -> Emission:
        indices = e.method(e.x(1), "reshape", (-1,))
        picked = e.call("take", e.x(0), indices, axis=-1)
        return e.method(picked, "reshape", (1, -1)) if self.rank(0) == 1 else picked


@dataclass(frozen=True)
class BinarizerConfig:
    threshold: float


class Binarizer(Node[BinarizerConfig]):
    """1 where the input is over the threshold, else 0."""

    domain = "ai.onnx.ml"

    @classmethod
    def read(cls, a: Attributes) -> BinarizerConfig:
        return BinarizerConfig(a.float("threshold", 0.0))

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("cast", e.call("greater", e.x(0), self.config.threshold), self.dtype(0))


AGGREGATE = ("average", "sum", "min", "max")
POST_TRANSFORM = (None, "softmax", "logistic", "softmax_zero", "probit")


@dataclass(frozen=True)
class TreeEnsembleConfig:
    splits: Value
    nodes: Value
    leaf_weights: Value
    leaf_targets: Value
    roots: Value
    members: Value | None
    n_targets: int
    aggregate: str
    post_transform: str | None


class TreeEnsemble(Node[TreeEnsembleConfig]):
    """An ensemble of decision trees; its tables become constants of the model."""

    domain, since = "ai.onnx.ml", (5,)

    @classmethod
    def read(cls, a: Attributes) -> TreeEnsembleConfig:
        splits, modes = a.tensor("nodes_splits"), tuple(int(m) for m in a.tensor("nodes_modes").list())
        count = splits.size
        columns = [
            a.ints("nodes_featureids"),
            modes,
            a.ints("nodes_truenodeids"),
            a.ints("nodes_falsenodeids"),
            a.ints("nodes_trueleafs"),
            a.ints("nodes_falseleafs"),
            a.ints("nodes_missing_value_tracks_true", (0,) * count),
        ]
        a.has("nodes_hitrates")
        weights, targets, roots = a.tensor("leaf_weights"), a.ints("leaf_targetids"), a.ints("tree_roots")
        if any(len(c) != count for c in columns) or weights.size != len(targets):
            raise Problem("the tables of a tree ensemble must have one entry a node, and one a leaf")
        for true, false, true_leaf, false_leaf in zip(*columns[2:6], strict=True):
            for where, leaf in ((true, true_leaf), (false, false_leaf)):
                if not 0 <= where < (len(targets) if leaf else count):
                    raise Problem(f"a tree refers to {'leaf' if leaf else 'node'} {where}, which does not exist")
        n_targets = a.int("n_targets")
        if any(not 0 <= r < count for r in roots) or any(not 0 <= t < n_targets for t in targets):
            raise Problem("a tree's root or a leaf's target does not exist")
        if any(not 0 <= m < 7 for m in modes):
            raise Problem("a node's mode must be 0 to 6")
        aggregate, transform = a.int("aggregate_function", 1), a.int("post_transform", 0)
        if aggregate not in range(4) or transform not in range(5):
            raise Problem(f"aggregate_function {aggregate} or post_transform {transform} does not exist")
        rows = [v for row in zip(*columns, strict=True) for v in row]
        return TreeEnsembleConfig(
            splits,
            Value(dtypes.int64, (count, len(columns)), Inline(struct.pack(f"<{len(rows)}q", *rows))),
            weights,
            ints_value(targets),
            ints_value(roots),
            a.tensor("membership_values") if a.has("membership_values") else None,
            n_targets,
            AGGREGATE[aggregate],
            POST_TRANSFORM[transform],
        )

    def infer(self) -> tuple[Type, ...]:
        x = self.tensor(0)
        return (TensorType(x.dtype, (one_channel_or(x.shape, 0), self.config.n_targets)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "tree_ensemble",
            e.x(0),
            e.parameter("splits", c.splits),
            e.parameter("nodes", c.nodes),
            e.parameter("leaf_weights", c.leaf_weights),
            e.parameter("leaf_targets", c.leaf_targets),
            e.parameter("roots", c.roots),
            c.n_targets,
            aggregate=default(c.aggregate, "sum"),
            post_transform=default(c.post_transform, None),
            members=default(e.parameter("members", c.members) if c.members is not None else None, None),
        )


Family = ArrayFeatureExtractor | Binarizer | TreeEnsemble
