"""Linear models and support vector machines of ai.onnx.ml: dense layers, and functions of one number between them.
Also columns of a table, thresholds, and labels at places that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.value import Text, Value
from emberlet.codegen.ops.machine_learning_features import ArrayFeatureExtractor, Binarizer, Normalizer
from emberlet.codegen.ops.machine_learning_models import (
    Kernel,
    LinearClassifier,
    LinearRegressor,
    SVMClassifier,
    SvmClassifierConfig,
    SVMRegressor,
)

from ..functions import Chain
from ..kernels.coupling import CouplingFloat
from ..kernels.distance import DistanceFloat
from ..kernels.dot import DotFloat
from ..kernels.elementwise import BinaryFloat, MapFloat
from ..kernels.lanes import Take
from ..kernels.pool import ReduceFloat
from ..kernels.softmax import SoftmaxFloat
from ..kernels.window import Window
from .distances import SQUARE
from .labels import decide
from .lanes import whole_of
from .layout import StoredTensor, dims_of
from .picks import pick
from .state import Importer
from .table import translates
from .values import numpy_of

Matrix = npt.NDArray[Any]

SIGMOID: Chain = (("sigmoid", ()),)


class _Row:
    """A row of numbers that passes through layers: each method appends a layer and returns the resulting row."""

    def __init__(self, t: Importer, label: str, name: str, size: int) -> None:
        self.t, self.label, self.name, self.size = t, label, name, size

    def _to(self, what: str, size: int) -> _Row:
        out = self.t.layout.fresh(f"{self.label}:{what}")
        self.t.layout.shapes[out] = (size,)
        return _Row(self.t, self.label, out, size)

    def dense(self, matrix: Matrix, bias: Matrix | Sequence[float], what: str) -> _Row:
        """matrix: (out, in)."""
        out = self._to(what, len(matrix))
        weights = np.asarray(matrix, np.float32).reshape(len(matrix), 1, 1, -1)
        offsets = np.asarray(bias, np.float32)
        at = (f"{self.label} {what}", (self.name,), out.name, (self.size,))
        self.t.add(DotFloat(*at, Window((1, 1)), 1, weights, offsets))
        return out

    def mapped(self, chain: Chain, what: str) -> _Row:
        out = self._to(what, self.size)
        self.t.add(MapFloat(f"{self.label} {what}", (self.name,), out.name, (self.size,), chain))
        return out

    def with_(self, other: _Row, operation: str, what: str) -> _Row:
        """other: of the same size, or one number."""
        out = self._to(what, self.size)
        at = (f"{self.label} {what}", (self.name, other.name), out.name, operation, (self.size,), (other.size,), None)
        self.t.add(BinaryFloat(*at))
        return out

    def distances(self, rows: Matrix, chain: Chain) -> _Row:
        """The sums over features of a function of the difference from each row."""
        out = self._to("distances", len(rows))
        at = (f"{self.label} distances", (self.name,), out.name)
        self.t.add(DistanceFloat(*at, np.asarray(rows, np.float32), chain))
        return out

    def total(self, what: str) -> _Row:
        out = self._to(what, 1)
        self.t.add(ReduceFloat(f"{self.label} {what}", (self.name,), out.name, (1, self.size, 1), "sum"))
        return out

    def greatest(self, what: str) -> _Row:
        out = self._to(what, 1)
        self.t.add(ReduceFloat(f"{self.label} {what}", (self.name,), out.name, (1, self.size, 1), "max"))
        return out

    def transformed(self, transform: str | None) -> _Row:
        """The scores after post_transform. Raises Problem."""
        if transform is None:
            return self
        if transform in ("sigmoid", "logistic"):
            return self.mapped(SIGMOID, "probabilities")
        if transform != "softmax":
            raise Problem(f"post_transform {transform} is not supported; NONE, SOFTMAX and LOGISTIC are")
        out = self._to("probabilities", self.size)
        self.t.add(SoftmaxFloat(f"{self.label} softmax", (self.name,), out.name, 1, self.size))
        return out

    def give(self, node: Node[Any], which: int) -> None:
        """The row is an output of the node."""
        self.t.layout.held[node.outputs[which].name] = StoredTensor(self.name, (1, self.size), (0, 1))


def _row(t: Importer, node: Node[Any]) -> _Row:
    held = t.of(node.inputs[0])
    size = held.dims[-1]
    if np.prod(held.dims) != size:
        raise Problem(f"the input has shape {held.dims}; only one row is supported")
    held = t.shaped(StoredTensor(held.name, held.dims, held.order), (size,))
    return _Row(t, node.name or node.outputs[-1].name, held.name, size)


def _matrix(numbers: Sequence[float], rows: int) -> Matrix:
    return np.asarray(numbers, np.float64).reshape(rows, -1)


def _offsets(numbers: Sequence[float], count: int) -> Matrix:
    return np.asarray(numbers or (0.0,) * count, np.float64)


@translates(LinearRegressor)
def linear_regressor(t: Importer, node: LinearRegressor) -> None:
    c = node.config
    scores = _row(t, node).dense(_matrix(c.coefficients, c.targets), _offsets(c.intercepts, c.targets), "scores")
    scores.transformed(c.transform if c.targets > 1 or c.transform not in ("softmax", "softmax_zero") else None).give(
        node, 0
    )


@translates(LinearClassifier)
def linear_classifier(t: Importer, node: LinearClassifier) -> None:
    c = node.config
    matrix, offsets = _matrix(c.coefficients, c.columns), _offsets(c.intercepts, c.columns)
    if c.columns == 1:
        _classes(t, node, _both(_row(t, node), matrix, offsets, c.transform, False), c.labels)
        return
    _classes(t, node, _row(t, node).dense(matrix, offsets, "scores").transformed(c.transform), c.labels)


def _both(x: _Row, matrix: Matrix, offsets: Matrix, transform: str | None, opposite: bool) -> _Row:
    """The scores of two classes given a single score s: (-s or 1 - s, s)."""
    sigmoid = transform in ("sigmoid", "logistic")
    turned = sigmoid or opposite
    both = x.dense(np.concatenate([-matrix, matrix]), np.concatenate([(not turned) - offsets, offsets]), "scores")
    return both.transformed("sigmoid" if sigmoid else None)


def _classes(t: Importer, node: Node[Any], scores: _Row, labels: Sequence[int | str]) -> None:
    """The label is the best score's."""
    scores.give(node, 1)
    decide(t, node.outputs[0], scores.name, True, labels)


# -- support vectors --------------------------------------------------------------------------------------------------


def _likeness(x: _Row, kernel: Kernel, vectors: Matrix) -> _Row:
    """The kernel of a row with each support vector. Raises Problem."""
    gamma, count = kernel.gamma, len(vectors)
    if kernel.kind == "linear":
        return x.dense(vectors, np.zeros(count), "kernel")
    if kernel.kind == "poly":
        products = x.dense(gamma * vectors, np.full(count, kernel.coef0), "products")
        chain: Chain = (("pow", (float(kernel.degree),)),)
        return products.mapped(chain, "kernel")
    if kernel.kind == "sigmoid":
        return x.dense(gamma * vectors, np.full(count, kernel.coef0), "products").mapped((("tanh", ()),), "kernel")
    return x.distances(vectors, SQUARE).mapped((("affine", (-gamma, 0.0)), ("exp", ())), "kernel")


@translates(SVMRegressor)
def svm_regressor(t: Importer, node: SVMRegressor) -> None:
    c, x = node.config, _row(t, node)
    if c.transform is not None:
        raise Problem(f"post_transform {c.transform} is not supported")
    if c.n_supports:
        x = _likeness(x, c.kernel, _matrix(c.vectors, c.n_supports))
    score = x.dense(_matrix(c.coefficients, 1), c.rho, "score")
    if c.one_class:
        score = score.mapped((("greater", (0.0,)), ("affine", (2.0, -1.0))), "side")
    score.give(node, 0)


@translates(SVMClassifier)
def svm_classifier(t: Importer, node: SVMClassifier) -> None:
    """The label is the class with the most votes, the first of equal ones, as in libsvm; the scores may be others."""
    c, x = node.config, _row(t, node)
    n = len(c.labels)
    if not c.vectors_per_class:
        rows = len(c.coefficients) // x.size
        if rows != n:
            raise Problem(f"got {rows} rows of coefficients for {n} classes")
        scores = x.dense(_matrix(c.coefficients, n), _offsets(c.rho, 1)[:1].repeat(n), "scores")
        _classes(t, node, scores.transformed(c.transform), c.labels)
        return
    alike = _likeness(x, c.kernel, _matrix(c.vectors, sum(c.vectors_per_class)))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    decisions = alike.dense(_matrix(node.decisions(), len(pairs)), c.rho, "decisions")
    if node.outputs[1].name in t.outputs.read:
        _decided(t, decisions, c).give(node, 1)
    if node.outputs[0].name not in t.outputs.read:
        return
    # A vote for the first class of a pair where its decision is over 0, else for the second.
    votes, base = np.zeros((n, len(pairs))), np.zeros(n)
    for k, (i, j) in enumerate(pairs):
        votes[i, k], votes[j, k] = 1, -1
        base[j] += 1
    counted = decisions.mapped((("greater", (0.0,)),), "sides").dense(votes, base, "votes")
    decide(t, node.outputs[0], counted.name, True, c.labels)


def _decided(t: Importer, decisions: _Row, c: SvmClassifierConfig) -> _Row:
    """The scores: probabilities, or the decisions."""
    n = len(c.labels)
    if c.prob_a:
        out = decisions._to("chances", n)
        at = (f"{decisions.label} chances", (decisions.name,), out.name)
        t.add(CouplingFloat(*at, n, c.prob_a, c.prob_b))
        return out.transformed(c.transform)
    if n > 2:
        return decisions.transformed(c.transform)
    one = np.eye(1)
    return _both(decisions, one, np.zeros(1), c.transform, c.transform is None)


@translates(Normalizer)
def normalizer(t: Importer, node: Normalizer) -> None:
    x, norm = _row(t, node), str(node.config.norm)
    if norm == "MAX":
        x.with_(x.greatest("greatest").mapped((("inverse", ()),), "norm"), "mul", "normalized").give(node, 0)
        return
    parts = x.mapped((("abs", ()),) if norm == "L1" else (("pow", (2.0,)),), "parts").total("sum")
    root: Chain = () if norm == "L1" else (("sqrt", ()),)
    inverse = parts.mapped((*root, ("inverse", ())), "norm")
    x.with_(inverse, "mul", "normalized").give(node, 0)


# -- columns, thresholds, labels --------------------------------------------------------------------------------------


@translates(ArrayFeatureExtractor)
def columns(t: Importer, node: ArrayFeatureExtractor) -> None:
    """Columns at places that are known or computed, or the label of the class whose place is computed."""
    names = node.value(0)
    if node.value(1) is not None:
        pick(t, node)
        return
    at = t.of(node.inputs[1])
    labels = None if names is None else _labels(names)
    if labels is not None and prod(at.dims) == 1:
        decide(t, node.outputs[0], at.name, False, labels)
        return
    if names is not None and isinstance(names.source, Text):
        raise Problem("text at places that the model computes is not supported; use integers")
    indices = whole_of(t, node, 1)
    indices = t.ordered(indices, tuple(range(len(indices.dims))))
    table = None if names is None else t.array(node, 0, "what is picked from").astype(np.float32)
    given = t.of(node.inputs[0]) if table is None else None
    if given is not None:
        given = t.ordered(given, tuple(range(len(given.dims))))
    sizes = table.shape if table is not None else given.dims if given is not None else ()
    dims = dims_of(node.outputs[0])
    out = t.define(node.outputs[0], tuple(range(len(dims))))
    read = (indices.name,) if given is None else (given.name, indices.name)
    t.add(Take(node.name, read, out.name, (prod(sizes[:-1]), sizes[-1], 1), prod(indices.dims), table))


def _labels(names: Value) -> list[int | str] | None:
    """Names of classes; None for other numbers."""
    if isinstance(names.source, Text):
        return list(names.source.items)
    return [int(v) for v in numpy_of(names).reshape(-1)] if names.dtype.is_integer else None


@translates(Binarizer)
def binarizer(t: Importer, node: Binarizer) -> None:
    held = t.of(node.inputs[0])
    out = t.define(node.outputs[0], held.order)
    t.add(MapFloat(node.name, (held.name,), out.name, out.shape, (("greater", (node.config.threshold,)),)))
