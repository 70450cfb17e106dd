"""Ensembles of decision trees (ai.onnx.ml TreeEnsemble). Reads its input, because every row takes its own path."""

import math

from ...errors import ArgumentError, ShapeError
from ..operands import floating
from ..overriding import composite
from .classifier_outputs import probit_of

_INF = float("inf")  # math.inf is missing on some ports

# Columns of `nodes`: the comparison of a node, and its branches.
FEATURE, MODE, TRUE_ID, FALSE_ID, TRUE_LEAF, FALSE_LEAF, MISSING_TRUE = range(7)

_COMPARISONS = (
    lambda value, split: value <= split,
    lambda value, split: value < split,
    lambda value, split: value >= split,
    lambda value, split: value > split,
    lambda value, split: value == split,
    lambda value, split: value != split,
    lambda value, split: value in split,
)
_MEMBER = 6


#: function; ai.onnx.ml TreeEnsemble; splits: Sequence[float]; nodes: Sequence[Any]; leaf_weights: Sequence[float];
#:   leaf_targets: Sequence[int]; roots: Sequence[int]; n_targets: int; post_transform: str; members: Any;
#:   leaf_starts: Sequence[int]
@composite
def tree_ensemble(
    x,
    splits,
    nodes,
    leaf_weights,
    leaf_targets,
    roots,
    n_targets,
    aggregate="sum",
    post_transform=None,
    members=None,
    leaf_starts=None,
):
    """The sum, average, minimum or maximum of the leaves that each row reaches: x (rows, features) -> (rows,
    n_targets).

    splits (n,): the value each node compares its feature with; nodes int64 (n, 7): feature, mode (0 <=, 1 <, 2 >=, 3 >,
    4 ==, 5 !=, 6 member), node or leaf for true and for false, whether that is a leaf, whether NaN counts as true;
    leaf_weights and leaf_targets: one entry per leaf; roots: the first node of each tree; members: the sets of the
    mode-6 nodes in traversal order, each terminated by a NaN. post_transform: None, "softmax", "logistic",
    "softmax_zero" or "probit". leaf_starts (leaves + 1,): leaf i has the entries leaf_starts[i] to leaf_starts[i + 1]
    (any number) instead of entry i. Raises ShapeError if a node reads a feature that x does not have or a branch leads
    back to a node above it.
    """
    if aggregate not in ("sum", "average", "min", "max"):
        raise ArgumentError(
            "tree_ensemble: aggregate is 'sum', 'average', 'min' or 'max', found {!r}".format(aggregate)
        )
    if post_transform not in (None, "softmax", "logistic", "softmax_zero", "probit"):
        raise ArgumentError("tree_ensemble: unknown post_transform {!r}".format(post_transform))
    x = floating(x)
    if x.ndim != 2:
        raise ShapeError("tree_ensemble takes (rows, features), found {}".format(x.shape))
    table, splits = nodes.tolist(), splits.tolist()
    weights, targets, roots = leaf_weights.tolist(), leaf_targets.tolist(), roots.tolist()
    if table and max([node[FEATURE] for node in table]) >= x.shape[1]:
        raise ShapeError("tree_ensemble: a node reads a feature that {} does not have".format(x.shape))
    if members is not None:
        _give_sets(table, splits, roots, members.tolist())
    starts = None if leaf_starts is None else leaf_starts.tolist()
    out = []
    for row in x.tolist():
        start = _INF if aggregate == "min" else -_INF if aggregate == "max" else 0.0
        scores = [start] * n_targets
        for root in roots:
            leaf = _leaf(table, splits, root, row)
            for entry in (leaf,) if starts is None else range(starts[leaf], starts[leaf + 1]):
                target, weight = targets[entry], weights[entry]
                if aggregate == "min":
                    scores[target] = min(scores[target], weight)
                elif aggregate == "max":
                    scores[target] = max(scores[target], weight)
                else:
                    scores[target] += weight
        if aggregate == "average":
            scores = [s / len(roots) for s in scores]
        out += _transformed([0.0 if s in (_INF, -_INF) else s for s in scores], post_transform)
    return x.backend.from_list(out, x.dtype, (x.shape[0], n_targets))


def _is_leaf(node):
    """Whether a tree is a single leaf: both branches of its root lead to the same leaf."""
    return node[TRUE_LEAF] and node[FALSE_LEAF] and node[TRUE_ID] == node[FALSE_ID]


def _give_sets(table, splits, roots, members):
    """Replace the split of every membership node by its set; the sets are in depth-first order, true branch first."""
    at = 0
    for root in roots:
        waiting = [root]
        seen = 0
        while waiting:
            number = waiting.pop()
            seen += 1
            if seen > len(table):
                raise _circle()
            node = table[number]
            if node[MODE] == _MEMBER:
                chosen = set()
                while members[at] == members[at]:
                    chosen.add(members[at])
                    at += 1
                at += 1
                splits[number] = chosen
            if not _is_leaf(node):
                if not node[FALSE_LEAF]:
                    waiting.append(node[FALSE_ID])
                if not node[TRUE_LEAF]:
                    waiting.append(node[TRUE_ID])


def _leaf(table, splits, root, row):
    """The leaf that `row` reaches from `root`."""
    number = root
    for _ in table:  # a path has each node at most once
        node, value = table[number], row[table[number][FEATURE]]
        if value != value:
            true = node[MISSING_TRUE]
        else:
            true = _COMPARISONS[node[MODE]](value, splits[number])
        number = node[TRUE_ID if true else FALSE_ID]
        if node[TRUE_LEAF if true else FALSE_LEAF]:
            return number
    raise _circle()


def _circle():
    return ShapeError("tree_ensemble: a branch leads back to a node above it")


def _transformed(scores, kind):
    if kind == "softmax" or kind == "softmax_zero":  # softmax_zero keeps zeros
        top = max(scores)
        powers = [0.0 if kind == "softmax_zero" and s == 0 else math.exp(s - top) for s in scores]
        total = sum(powers)
        return [p / total if total else 0.0 for p in powers]
    if kind == "logistic":
        return [1 / (1 + math.exp(-s)) if s >= 0 else math.exp(s) / (1 + math.exp(s)) for s in scores]
    if kind == "probit":
        return [probit_of(s) for s in scores]
    return scores
