"""Models of ai.onnx.ml that consist of a few products: linear ones and support vector machines."""

from __future__ import annotations

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, lift
from ..ir.choices import KernelType, PostTransform
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .machine_learning import (
    DOMAIN,
    Labels,
    best,
    both_sides,
    check_features,
    class_types,
    floats_value,
    labels_of,
    linear,
    matrix,
    positive,
    rows_of,
    split_rows,
    transform_of,
    transformed,
)

FAMILY = "machine learning"


@dataclass(frozen=True)
class LinearRegressorConfig:
    coefficients: tuple[float, ...]
    intercepts: tuple[float, ...]
    targets: int
    transform: PostTransform | None


class LinearRegressor(Node[LinearRegressorConfig]):
    """A dense layer. A softmax of a single target changes nothing, as in onnxruntime."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> LinearRegressorConfig:
        return LinearRegressorConfig(
            a.floats("coefficients"), a.floats("intercepts", ()), a.int("targets", 1), transform_of(a)
        )

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        check_features(self, split_rows(c.coefficients, c.targets))
        return (TensorType(dtypes.float32, (rows_of(self), c.targets)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        scores = linear(e, matrix(self, e), c.coefficients, c.targets, c.intercepts)
        return (
            scores
            if c.targets == 1 and c.transform in ("softmax", "softmax_zero")
            else transformed(e, scores, c.transform)
        )


@dataclass(frozen=True)
class LinearClassifierConfig:
    coefficients: tuple[float, ...]
    intercepts: tuple[float, ...]
    labels: Labels
    transform: PostTransform | None

    @property
    def columns(self) -> int:
        """The number of scores: one per class, or one for both of two."""
        return 1 if len(self.labels) == 2 and len(self.intercepts) == 1 else len(self.labels)


class LinearClassifier(Node[LinearClassifierConfig]):
    """A dense layer, and the label of its highest score; a single score may decide between two classes."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> LinearClassifierConfig:
        a.has("multi_class")  # how it was trained does not affect what it computes
        labels = labels_of(a, "classlabels_ints")
        if len(labels) < 2:
            raise Problem(f"cannot choose between classes: the only label is {labels[0]!r}")
        return LinearClassifierConfig(a.floats("coefficients"), a.floats("intercepts", ()), labels, transform_of(a))

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        check_features(self, split_rows(c.coefficients, c.columns))
        return class_types(self, c.labels, len(c.labels))

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        scores = e.assign("scores", linear(e, matrix(self, e), c.coefficients, c.columns, c.intercepts))
        if c.columns == 1:
            return positive(e, scores, c.labels), both_sides(e, scores, c.transform, False)
        return best(e, scores, c.labels), transformed(e, scores, c.transform)


@dataclass(frozen=True)
class Kernel:
    kind: KernelType
    gamma: float
    coef0: float
    degree: int

    @classmethod
    def read(cls, a: Attributes) -> Kernel:
        numbers = a.floats("kernel_params", ()) or (0.0, 0.0, 0.0)
        if len(numbers) != 3:
            raise Problem(f"kernel_params are {len(numbers)} numbers, expected gamma, coef0 and degree")
        kind = KernelType(a.string("kernel_type", "LINEAR", tuple(k.name for k in KernelType)).lower())
        return cls(kind, numbers[0], numbers[1], int(numbers[2]))

    def emit(self, e: Emitter, x: Expr, vectors: tuple[float, ...], count: int) -> Expr:
        """The kernel of each row of x with each support vector."""
        held = e.parameter("support_vectors", floats_value(vectors, (count, split_rows(vectors, count))))
        c = self
        return e.call(
            "svm_kernel",
            x,
            held,
            kind=default(c.kind),
            gamma=default(c.gamma if c.kind != "linear" else 0.0),
            coef0=default(c.coef0 if c.kind in ("poly", "sigmoid") else 0.0),
            degree=default(c.degree if c.kind == "poly" else 0),
        )


@dataclass(frozen=True)
class SvmRegressorConfig:
    kernel: Kernel
    coefficients: tuple[float, ...]
    vectors: tuple[float, ...]
    n_supports: int
    rho: tuple[float, ...]
    one_class: bool
    transform: PostTransform | None


class SVMRegressor(Node[SvmRegressorConfig]):
    """A sum over support vectors, or a dense layer without any; one_class returns the sign."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> SvmRegressorConfig:
        c = SvmRegressorConfig(
            Kernel.read(a),
            a.floats("coefficients"),
            a.floats("support_vectors", ()),
            a.int("n_supports", 0),
            a.floats("rho"),
            a.flag("one_class"),
            transform_of(a),
        )
        if len(c.rho) != 1 or (c.n_supports and c.n_supports != len(c.coefficients)) or c.n_supports < 0:
            raise Problem(f"{c.n_supports} support vectors, {len(c.coefficients)} coefficients, {len(c.rho)} rho")
        return c

    def infer(self) -> tuple[Type, ...]:
        c = self.config
        check_features(self, split_rows(c.vectors if c.n_supports else c.coefficients, c.n_supports or 1))
        return (TensorType(dtypes.float32, (rows_of(self), 1)),)

    def emit(self, e: Emitter) -> Emission:
        c, x = self.config, matrix(self, e)
        if c.n_supports:
            x = c.kernel.emit(e, x, c.vectors, c.n_supports)
        score = linear(e, x, c.coefficients, 1, c.rho)
        if c.one_class:
            return e.call("where", Binary(">", score, lift(0.0)), 1.0, -1.0)
        return e.call("probit", score) if c.transform == "probit" else score


@dataclass(frozen=True)
class SvmClassifierConfig:
    kernel: Kernel
    coefficients: tuple[float, ...]
    vectors: tuple[float, ...]
    vectors_per_class: tuple[int, ...]
    rho: tuple[float, ...]
    prob_a: tuple[float, ...]
    prob_b: tuple[float, ...]
    labels: Labels
    transform: PostTransform | None

    @property
    def pairs(self) -> int:
        return len(self.labels) * (len(self.labels) - 1) // 2


class SVMClassifier(Node[SvmClassifierConfig]):
    """Support vectors that decide between each pair of classes, and a vote; without support vectors, a dense layer.

    The scores are probabilities if prob_a and prob_b are given, else the decisions: for two classes, the only
    decision's negative and itself.
    """

    domain, loops = DOMAIN, True

    @classmethod
    def read(cls, a: Attributes) -> SvmClassifierConfig:
        c = SvmClassifierConfig(
            Kernel.read(a),
            a.floats("coefficients"),
            a.floats("support_vectors", ()),
            a.ints("vectors_per_class", ()),
            a.floats("rho"),
            a.floats("prob_a", ()),
            a.floats("prob_b", ()),
            labels_of(a, "classlabels_ints"),
            transform_of(a),
        )
        if len(c.labels) < 2:
            raise Problem(f"cannot choose between classes: the only label is {c.labels[0]!r}")
        if not c.vectors_per_class:
            return c
        if len(c.vectors_per_class) != len(c.labels) or any(n < 0 for n in c.vectors_per_class):
            raise Problem(f"vectors_per_class says {c.vectors_per_class} of {len(c.labels)} classes")
        if split_rows(c.coefficients, len(c.labels) - 1) != sum(c.vectors_per_class):
            raise Problem(f"{len(c.coefficients)} coefficients for {sum(c.vectors_per_class)} support vectors")
        if len(c.rho) != c.pairs or len(c.prob_a) != len(c.prob_b) or len(c.prob_a) not in (0, c.pairs):
            raise Problem(f"{len(c.rho)} rho, {len(c.prob_a)} prob_a, {len(c.prob_b)} prob_b for {c.pairs} pairs")
        return c

    def infer(self) -> tuple[Type, ...]:
        c, classes = self.config, len(self.config.labels)
        if not c.vectors_per_class:
            check_features(self, split_rows(c.coefficients, classes))
            return class_types(self, c.labels, classes)
        check_features(self, split_rows(c.vectors, sum(c.vectors_per_class)))
        return class_types(self, c.labels, classes if c.prob_a else max(2, c.pairs))

    def decisions(self) -> list[float]:
        """(pairs, vectors): the coefficients of each pair's support vectors, 0 for those of other classes.

        ONNX keeps those of class i against j in row j - 1, those of class j against i in row i.
        """
        c = self.config
        count, classes = sum(c.vectors_per_class), len(c.labels)
        starts = [sum(c.vectors_per_class[:i]) for i in range(classes)]
        out = []
        for i in range(classes):
            for j in range(i + 1, classes):
                row = [0.0] * count
                for own, against in ((i, j - 1), (j, i)):
                    for v in range(starts[own], starts[own] + c.vectors_per_class[own]):
                        row[v] = c.coefficients[against * count + v]
                out += row
        return out

    def emit(self, e: Emitter) -> Emission:
        c, classes, x = self.config, len(self.config.labels), matrix(self, e)
        if not c.vectors_per_class:
            scores = e.assign("scores", linear(e, x, c.coefficients, classes, c.rho[:1] * classes))
            return best(e, scores, c.labels), transformed(e, scores, c.transform)
        alike = c.kernel.emit(e, x, c.vectors, sum(c.vectors_per_class))
        decided = e.assign("decisions", linear(e, alike, self.decisions(), c.pairs, c.rho))
        label = best(e, e.call("one_against_one", decided, classes), c.labels)
        if c.prob_a:
            chances = e.assign("chances", e.call("pairwise_coupling", decided, c.prob_a, c.prob_b, classes))
            return label, transformed(e, chances, c.transform)
        if classes == 2:
            return label, both_sides(e, decided, c.transform, c.transform is None)
        return label, transformed(e, decided, c.transform)
