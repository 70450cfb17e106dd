"""Ensembles of random trees, whose nodes may test membership in a set, against a recursive search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from scipy.special import expit, softmax
from scipy.stats import norm
from support.backends import array, tensor
from support.rows import every

NAN = math.nan


def _reached(row: Any, tree: Any) -> int:
    """The leaf of a tree given as nested tuples (feature, mode, split, missing, true, false), by recursion."""
    while isinstance(tree, tuple):
        feature, mode, split, missing, yes, no = tree
        v = row[feature]
        holds = [v <= split, v < split, v >= split, v > split, v == split, v != split] if mode < 6 else None
        true = missing if np.isnan(v) else (bool(v in split) if holds is None else bool(holds[mode]))
        tree = yes if true else no
    return int(tree)


@every("transform", [None, "softmax", "softmax_zero", "logistic", "probit"])
@pytest.mark.parametrize("seed", range(3))
def test_trees_with_sets_reach_the_leaves_of_a_recursive_search(backend: Any, seed: int, transform: Any) -> None:
    draw = np.random.default_rng(seed)
    table: list[list[int]] = []
    splits: list[float] = []
    members: list[float] = []
    leaves: list[int] = []

    def grow(depth: int) -> tuple[int, bool, Any]:
        """(number, whether it is a leaf, the tree as nested tuples); sets are written true branch first."""
        if depth == 0 or (depth < 3 and draw.random() < 0.2):
            leaves.append(len(leaves))
            return len(leaves) - 1, True, len(leaves) - 1
        number = len(table)
        feature, mode, missing = int(draw.integers(3)), int(draw.integers(7)), int(draw.integers(2))
        table.append([feature, mode, 0, 0, 0, 0, missing])
        split: Any = float(draw.integers(0, 4))
        splits.append(split)
        if mode == 6:
            split = set(draw.integers(0, 4, 2).astype(float).tolist())
            members.extend([*split, NAN])
        yes, no = grow(depth - 1), grow(depth - 1)
        table[number][2:6] = [yes[0], no[0], int(yes[1]), int(no[1])]
        return number, False, (feature, mode, split, bool(missing), yes[2], no[2])

    trees = [grow(3) for _ in range(3)]
    weights = draw.uniform(0.02, 0.3, len(leaves)).astype(np.float32)
    targets = draw.integers(0, 2, len(leaves))
    x = draw.integers(0, 4, (9, 3)).astype(np.float32)
    x[draw.random(x.shape) < 0.1] = np.nan
    for aggregate, combine in (("sum", sum), ("average", lambda v: sum(v) / 3), ("min", min), ("max", max)):
        expected = np.zeros((9, 2))
        for r in range(9):
            reached = [_reached(x[r], tree[2]) for tree in trees]
            for t in range(2):
                found = [float(weights[leaf]) for leaf in reached if targets[leaf] == t]
                expected[r, t] = combine(found) if found else 0
        if transform == "softmax":
            expected = softmax(expected, 1)
        elif transform == "softmax_zero":
            powers = np.where(expected == 0, 0, np.exp(expected - expected.max(1, keepdims=True)))
            expected = powers / np.maximum(powers.sum(1, keepdims=True), 1e-30)
        elif transform == "logistic":
            expected = expit(expected)
        elif transform == "probit":
            expected = np.where(expected > 0, norm.ppf(expected), -np.inf)
        nodes = [tensor(np.array(table)), tensor(weights), tensor(targets), tensor(np.array([t[0] for t in trees]))]
        result = F.tree_ensemble(
            tensor(x), tensor(np.float32(splits)), *nodes, 2, aggregate, transform, tensor(np.float32(members))
        )
        finite = np.isfinite(expected)
        np.testing.assert_allclose(array(result)[finite], expected[finite], rtol=2e-5, atol=1e-5)
