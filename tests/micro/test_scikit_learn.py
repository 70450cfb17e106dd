"""Operators that skl2onnx writes besides trees and linear models: columns, thresholds, the label of the highest
score."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx.utils
import onnxruntime
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_regression
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, KBinsDiscretizer, MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, NuSVC

Array = npt.NDArray[Any]

X, Y = make_classification(300, 8, n_informative=6, n_classes=4, random_state=1)
X = X.astype(np.float32)
NAMES = np.array(["red", "green", "blue", "gray"])[Y]
UNSEEN = (X * np.random.default_rng(3).uniform(0.3, 2, X.shape)).astype(np.float32)
XR, YR = make_regression(200, 6, noise=5, random_state=2)
XR, YR = XR.astype(np.float32), np.abs(YR) / 100


def columns() -> Any:
    scaled = ColumnTransformer([("a", StandardScaler(), [5, 0, 2]), ("b", MaxAbsScaler(), [1, 7])])
    return make_pipeline(scaled, SGDClassifier(random_state=0))


CLASSIFIERS: dict[str, tuple[Callable[[], Any], Array]] = {
    "perceptron": (Perceptron, Y),
    "perceptron of names": (Perceptron, NAMES),
    "multilayer perceptron": (lambda: MLPClassifier((8,), max_iter=50, random_state=0), Y),
    "multilayer perceptron of names": (lambda: MLPClassifier((8,), max_iter=50, random_state=0), NAMES),
    "multilayer perceptron of two": (lambda: MLPClassifier((8,), max_iter=50, random_state=0), Y % 2),
    "stochastic gradient descent": (lambda: SGDClassifier(random_state=0), Y),
    "ridge": (RidgeClassifier, Y),
    "selected columns": (lambda: make_pipeline(SelectKBest(k=3), SGDClassifier(random_state=0)), Y),
    "columns": (columns, Y),
    "thresholds": (lambda: make_pipeline(Binarizer(threshold=0.3), Perceptron()), Y),
    "bins": (lambda: make_pipeline(KBinsDiscretizer(4, encode="ordinal"), Perceptron()), Y),
}

SEVERAL: dict[str, Callable[[], Any]] = {
    "linear": lambda: SVC(kernel="linear"),
    "rbf": SVC,
    "nu": lambda: NuSVC(nu=0.2),
    "thresholds": lambda: make_pipeline(Binarizer(), SVC(kernel="poly")),
}


def converted(estimator: Any, x: Array, y: Array, **options: Any) -> bytes:
    estimator.fit(x, y)
    given = {id(estimator): {"zipmap": False, **options}} if hasattr(estimator, "classes_") else None
    return bytes(to_onnx(estimator, x[:1], options=given).SerializeToString())


def built(data: bytes) -> BuildResult:
    return build(read_graph(data, "m"), Options("m"))


def scores_of(result: BuildResult, x: Array) -> Array:
    source, target = result.graph.inputs[0], result.graph.outputs[0]
    return np.array([result.graph.run({source: row})[target].reshape(-1) for row in x])


def answers(data: bytes, x: Array) -> list[Array]:
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, {session.get_inputs()[0].name: x})]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_row_gets_its_class(name: str) -> None:
    make, y = CLASSIFIERS[name]
    data = converted(make(), X, y)
    result = built(data)
    labels = result.program.outputs[0].labels
    assert [labels[k] for k in scores_of(result, UNSEEN).argmax(1)] == answers(data, UNSEEN)[0].tolist()


@pytest.mark.parametrize("name", SEVERAL)
def test_support_vector_machines_of_several_classes_give_their_scores(name: str) -> None:
    data = converted(SEVERAL[name](), X, Y)
    result = built(data)
    label, wanted = answers(data, UNSEEN)
    found = scores_of(result, UNSEEN)
    close = np.isclose(found, wanted, atol=2e-4).all(1)
    assert close.mean() > 0.98  # a decision next to 0 may turn
    # Where as many pairs vote for two classes, libsvm takes the first, and the scores the surer one.
    votes = np.rint(np.sort(wanted, 1))
    clear = close & (votes[:, -1] > votes[:, -2])
    labels = np.array(result.program.outputs[0].labels)
    assert (labels[found.argmax(1)] == label)[clear].all() and clear.mean() > 0.5


@pytest.mark.parametrize("make", [PoissonRegressor, TweedieRegressor])
def test_generalized_linear_models_are_close(make: Callable[[], Any]) -> None:
    data = converted(make(), XR, YR)
    np.testing.assert_allclose(scores_of(built(data), XR), answers(data, XR)[0].reshape(-1, 1), rtol=1e-4)


@pytest.mark.parametrize("make", [lambda: OneVsRestClassifier(LogisticRegression()), GaussianNB])
def test_the_label_of_scores_that_stay_inside_is_refused_and_the_way_out_works(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    data = converted(make(), X, Y)
    with pytest.raises(ModelError, match="the class is that of the greatest of") as caught:
        built(data)
    (scores,) = re.findall(r"extract_model\(file, new_file, \[input\], \['(.*)'\]\)", str(caught.value))
    (tmp_path / "a.onnx").write_bytes(data)
    onnx.utils.extract_model(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), ["X"], [scores])
    result = built((tmp_path / "b.onnx").read_bytes())
    assert scores_of(result, UNSEEN).argmax(1).tolist() == answers(data, UNSEEN)[0].tolist()
