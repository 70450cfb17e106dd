"""What estimators of scikit-learn lose in int8: at most a point of their score, or the build refuses and says how much.

Each is trained on one half of the rows and scored on the other, then the other way round, so that every row counts
once: of half of wine's rows, one alone would be more than a point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import LEAST_AGREEMENT, BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC
from sklearn.tree import DecisionTreeClassifier
from support.microcontrollers.estimators import classes_of, converted, halves, numbers_of
from support.rows import every

Array = npt.NDArray[Any]
Make = Callable[[], Any]


def logistic() -> Any:
    return LogisticRegression(max_iter=200)


def two() -> list[tuple[str, Any]]:
    return [("a", logistic()), ("b", LinearDiscriminantAnalysis())]


CLASSIFIERS: dict[str, Make] = {
    "logistic regression": logistic, "ridge": RidgeClassifier,
    "gradient descent": lambda: SGDClassifier(random_state=0), "perceptron": Perceptron, "support vectors": SVC,
    "support vectors, linear kernel": lambda: SVC(kernel="linear"),
    "support vectors, polynomial kernel": lambda: SVC(kernel="poly"), "support vectors, few": lambda: NuSVC(nu=0.2),
    "neighbors": lambda: KNeighborsClassifier(3),
    "neighbors by distance": lambda: KNeighborsClassifier(5, weights="distance"), "naive Bayes": GaussianNB,
    "linear discriminants": LinearDiscriminantAnalysis,
    "quadratic discriminants": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
    "a network": lambda: MLPClassifier((16,), max_iter=300, random_state=0),
    "one against the rest": lambda: OneVsRestClassifier(logistic()),
    "one against one": lambda: OneVsOneClassifier(logistic()),
    "calibrated": lambda: CalibratedClassifierCV(LinearSVC(random_state=0), cv=2),
    "bags": lambda: BaggingClassifier(logistic(), 3, random_state=0),
    "votes": lambda: VotingClassifier(two(), voting="soft", flatten_transform=False),
    "a stack": lambda: StackingClassifier(two(), cv=2),
    "a tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "a forest": lambda: RandomForestClassifier(5, random_state=0),
    "boosted trees": lambda: GradientBoostingClassifier(n_estimators=4, random_state=0),
    "adaptive boosting": lambda: AdaBoostClassifier(n_estimators=4, random_state=0),
}  # fmt: skip
REGRESSORS: dict[str, Make] = {
    "linear": LinearRegression, "ridge": Ridge, "few columns": Lasso, "two penalties": lambda: ElasticNet(alpha=0.01),
    "Bayesian": BayesianRidge, "robust": lambda: HuberRegressor(max_iter=200),
    "linear support vectors": lambda: LinearSVR(C=10, max_iter=2000, random_state=0),
    "partial least squares": lambda: PLSRegression(2),
    "a network": lambda: MLPRegressor(hidden_layer_sizes=(16,), max_iter=300, random_state=0),
    "support vectors": lambda: SVR(C=100), "neighbors": lambda: KNeighborsRegressor(5),
}  # fmt: skip
REFUSED = {"support vectors, polynomial kernel", "adaptive boosting"}
REFUSED_REGRESSORS = {"support vectors", "neighbors"}
"""Those of which a half may be refused behind a scaler."""

COMPOSED = {"one against the rest", "one against one", "calibrated", "bags", "votes", "a stack"}
"""Large graphs, tried behind a scaler only, for time's sake."""

TWO = ("logistic regression", "ridge", "support vectors", "neighbors", "naive Bayes", "a network")
REFUSED_OF_TWO = {"naive Bayes", "neighbors"}


def predicted(result: BuildResult, rows: Array) -> Array:
    """The classes, or the first numbers, that a build gives."""
    if any(port.labels for port in result.program.outputs):
        return classes_of(result, rows)
    return np.array([numbers_of(result, row, result.graph.outputs[0])[0] for row in rows])


def tumors(**options: Any) -> tuple[Array, Array]:
    x, y = load_breast_cancer(**options)
    return x[:200], y[:200]


def diabetes(**options: Any) -> tuple[Array, Array]:
    found: tuple[Array, Array] = load_diabetes(scaled=False, **options)
    return found


def check(make: Make, load: Callable[..., Any], may_be_refused: bool, score: Callable[[Array, Array], float]) -> None:
    """Both halves: what is built loses at most a point, what is not names the way out."""
    lost, scored = 0.0, 0
    first, second, y_first, y_second = halves(load)
    for seen, unseen, y, wanted in ((first, second, y_first, y_second), (second, first, y_second, y_first)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = make().fit(seen, y)
        graph = read_graph(converted(estimator, seen), "m")
        try:
            result = build(graph, Options("m", least_agreement=None), {"X": seen})
        except UnsupportedError as error:
            assert may_be_refused and "--float" in str(error), error
            continue
        if result.graph.sums:  # trees in integers, which round nothing
            continue
        found = predicted(result, unseen)
        lost += len(unseen) * (score(estimator.predict(unseen).reshape(-1), wanted) - score(found, wanted))
        scored += len(unseen)
    assert lost <= 0.01 * max(scored, 1)


def right(found: Array, wanted: Array) -> float:
    return float(np.mean(np.rint(found) == wanted))


def explained(found: Array, wanted: Array) -> float:
    return float(1 - np.sum((found - wanted) ** 2) / np.sum((wanted - wanted.mean()) ** 2))


@every("name", CLASSIFIERS, share=2)
def test_classifiers(name: str) -> None:
    make = CLASSIFIERS[name]
    check(lambda: make_pipeline(StandardScaler(), make()), load_wine, name in REFUSED, right)


@every("name", [name for name in CLASSIFIERS if name not in COMPOSED], share=2)
def test_classifiers_without_a_scaler(name: str) -> None:
    check(CLASSIFIERS[name], load_wine, True, right)


@every("name", TWO, share=2)
def test_classifiers_of_two_classes(name: str) -> None:
    make = CLASSIFIERS[name]
    check(lambda: make_pipeline(StandardScaler(), make()), tumors, name in REFUSED_OF_TWO, right)


@every("name, scaled", list(product(REGRESSORS, [True, False])), share=2)
def test_regressors(name: str, scaled: bool) -> None:
    make = REGRESSORS[name]
    check(
        lambda: make_pipeline(StandardScaler(), make()) if scaled else make(),
        diabetes,
        name in REFUSED_REGRESSORS,
        explained,
    )


def support_vectors(seed: int, c: float) -> tuple[Any, Graph, Array, Array, Array]:
    """Trained on 90 rows: the estimator, its graph, those rows, others, and the targets of the others."""
    x, y = diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    estimator = make_pipeline(StandardScaler(), SVR(C=c)).fit(x[:90], y[:90])
    return estimator, read_graph(converted(estimator, x[:90]), "m"), x[:90], x[90:], y[90:]


@pytest.mark.parametrize("seed, c", [(3, 100), (4, 100), (10, 100)])
def test_a_build_fails_that_agrees_only_on_the_samples_that_gave_its_ranges(seed: int, c: float) -> None:
    _, graph, rows, *_ = support_vectors(seed, c)
    agreement = build(graph, Options("m"), {"X": rows}).agreement
    assert agreement and agreement.share >= LEAST_AGREEMENT
    with pytest.raises(UnsupportedError, match=r"left out .* difference [2-9]\.\d+%.* less than 98%.*--float"):
        build(graph, Options("m", least_agreement=None), {"X": rows})


def test_one_row_that_is_far_from_the_others_does_not_refuse_a_regression() -> None:
    x, y = diabetes(return_X_y=True)
    order = np.random.default_rng(2).permutation(len(x))[:100]
    rows = x[order].astype(np.float32)
    graph = read_graph(converted(LinearRegression().fit(rows, y[order]), rows), "m")
    assert build(graph, Options("m", least_agreement=None), {"X": rows}).agreement


@pytest.mark.parametrize("seed", [2, 5, 7])
def test_rows_that_are_farther_than_any_sample_lose_little(seed: int) -> None:
    estimator, graph, rows, unseen, wanted = support_vectors(seed, 100)
    result = build(graph, Options("m", least_agreement=None), {"X": rows})
    due, norms = estimator.predict(unseen), [(estimator[0].transform(x) ** 2).sum(1) for x in (rows, unseen)]
    assert (norms[1] > norms[0].max()).any()
    assert explained(due, wanted) - explained(predicted(result, unseen), wanted) <= 0.01


def test_a_layer_without_an_int8_form_is_named_in_words() -> None:
    seen, _, y, _ = halves(load_wine)
    graph = read_graph(converted(CLASSIFIERS["adaptive boosting"]().fit(seen, y), seen), "m")
    with pytest.raises(UnsupportedError, match="a group of trees behind or beside other layers has no int8 form"):
        build(graph, Options("m"), {"X": seen})
