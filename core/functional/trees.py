"""Ensembles of decision trees (ai.onnx.ml TreeEnsemble). Reads its input: every row takes its own way."""

import math

from .operands import floating

# Comparison of a feature with a split, by ONNX's number.
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _MEMBER = 0, 1, 2, 3, 4, 5, 6
_INF = float("inf")  # math.inf is missing on some ports
AVERAGE, SUM, MIN, MAX = 0, 1, 2, 3


class TreeEnsemble:
    """Trees as parallel lists, as ONNX stores them.

    nodes: dict of lists, one entry a node: split, feature, mode, true_id, false_id, true_leaf, false_leaf,
    missing_true; leaves: dict of target and weight; roots: node of each tree; members: per node a set, MEMBER.
    """

    def __init__(self, nodes, leaves, roots, n_targets, aggregate=SUM, post_transform=0, members=None):
        self.nodes = nodes
        self.leaves = leaves
        self.roots = roots
        self.n_targets = n_targets
        self.aggregate = aggregate
        self.post_transform = post_transform
        self.members = members or {}

    def __call__(self, x):
        """x (rows, features) -> (rows, n_targets) in x's dtype."""
        x = floating(x)
        out = []
        for row in x.tolist():
            out += self._transformed(self._row(row))
        return x.backend.from_list(out, x.dtype, (x.shape[0], self.n_targets))

    def _goes_true(self, node, value):
        nodes = self.nodes
        if value != value:
            return bool(nodes["missing_true"][node])
        split, mode = nodes["split"][node], nodes["mode"][node]
        if mode == _LEQ:
            return value <= split
        if mode == _LT:
            return value < split
        if mode == _GTE:
            return value >= split
        if mode == _GT:
            return value > split
        if mode == _EQ:
            return value == split
        if mode == _NEQ:
            return value != split
        return value in self.members[node]

    def _leaf(self, root, row):
        nodes = self.nodes
        node = root
        if nodes["true_leaf"][root] and nodes["false_leaf"][root] and nodes["true_id"][root] == nodes["false_id"][root]:
            return nodes["true_id"][root]  # a tree that is a single leaf
        while True:
            side = "true" if self._goes_true(node, row[nodes["feature"][node]]) else "false"
            following = nodes[side + "_id"][node]
            if nodes[side + "_leaf"][node]:
                return following
            node = following

    def _row(self, row):
        start = _INF if self.aggregate == MIN else -_INF if self.aggregate == MAX else 0.0
        out = [start] * self.n_targets
        for root in self.roots:
            leaf = self._leaf(root, row)
            target, weight = self.leaves["target"][leaf], self.leaves["weight"][leaf]
            if self.aggregate == MIN:
                out[target] = min(out[target], weight)
            elif self.aggregate == MAX:
                out[target] = max(out[target], weight)
            else:
                out[target] += weight
        if self.aggregate == AVERAGE:
            out = [v / len(self.roots) for v in out]
        return [0.0 if v in (_INF, -_INF) else v for v in out]

    def _transformed(self, out):
        kind = self.post_transform
        if kind == 1 or kind == 3:  # softmax; softmax that leaves zeros alone
            top = max(out)
            powers = [0.0 if kind == 3 and v == 0 else math.exp(v - top) for v in out]
            total = sum(powers)
            return [p / total if total else 0.0 for p in powers]
        if kind == 2:
            return [1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v)) for v in out]
        if kind == 4:
            return [_probit(v) for v in out]
        return out


def _probit(p):
    """Inverse of the normal distribution function, by bisection of erf (SciPy's special.ndtri gives the same)."""
    if not 0 < p < 1:
        return float("nan") if not p == 0 and not p == 1 else (-_INF if p == 0 else _INF)
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        if 0.5 * (1 + math.erf(middle / math.sqrt(2))) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
