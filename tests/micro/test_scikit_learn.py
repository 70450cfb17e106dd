"""Everything that skl2onnx writes besides trees and linear models: columns, thresholds, labels, estimators made of
others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx.utils
import pytest
from emberlet.errors import ModelError, UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto, helper
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import (
    LogisticRegression,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from support.microcontrollers import estimators
from support.microcontrollers.rows import row_by_row, scores_of

Array = npt.NDArray[Any]

X, Y = make_classification(300, 8, n_informative=6, n_classes=4, random_state=1)
X = X.astype(np.float32)
UNSEEN = (X * np.random.default_rng(3).uniform(0.3, 2, X.shape)).astype(np.float32)
XR, YR = make_regression(200, 6, noise=5, random_state=2)
XR, YR = XR.astype(np.float32), np.abs(YR) / 100


def columns() -> Any:
    scaled = ColumnTransformer([("a", StandardScaler(), [5, 0, 2]), ("b", MaxAbsScaler(), [1, 7])])
    return make_pipeline(scaled, SGDClassifier(random_state=0))


SEVERAL: dict[str, Callable[[], Any]] = {
    "linear": lambda: SVC(kernel="linear"),
    "rbf": SVC,
    "nu": lambda: NuSVC(nu=0.2),
    "thresholds": lambda: make_pipeline(Binarizer(), SVC(kernel="poly")),
}


PREPARED: dict[str, Callable[[], Any]] = {
    "greatest": lambda: Normalizer("max"),
    "quantiles": lambda: QuantileTransformer(n_quantiles=8),
    "powers": PowerTransformer,
    "products": lambda: PolynomialFeatures(3),
    "distances": lambda: KMeans(3, random_state=0),
}


def some() -> list[tuple[str, Any]]:
    return [("a", DecisionTreeClassifier(max_depth=3)), ("b", GaussianNB()), ("c", LogisticRegression())]


def converted(estimator: Any, x: Array, y: Array) -> bytes:
    return estimators.converted(estimator.fit(x, y), x)


def built(data: bytes) -> BuildResult:
    return build(read_graph(data, "m"), Options("m"))


def classes_of(result: BuildResult, x: Array) -> list[int | str]:
    """The results of `best`, as labels."""
    graph = result.graph
    labels = next(port.labels for port in result.program.outputs if port.labels)
    found = [graph.run({graph.inputs[0]: row})[graph.decides or graph.outputs[0]].reshape(-1) for row in x]
    return [labels[round(float(v[0])) if graph.decides else int(v.argmax())] for v in found]


@pytest.mark.parametrize("name", SEVERAL)
def test_support_vector_machines_of_several_classes_give_the_label_and_the_scores(name: str) -> None:
    data = converted(SEVERAL[name](), X, Y)
    result = built(data)
    label, wanted = row_by_row(data, UNSEEN)
    np.testing.assert_allclose(scores_of(result, UNSEEN), wanted, atol=2e-4)
    assert classes_of(result, UNSEEN) == label.tolist()


@pytest.mark.parametrize("y", [Y, Y % 2], ids=["several", "two"])
def test_probabilities_of_support_vector_machines_are_coupled(y: Array) -> None:
    data = converted(SVC(probability=True, random_state=0), X, y)
    result = built(data)
    label, wanted = row_by_row(data, UNSEEN)
    np.testing.assert_allclose(scores_of(result, UNSEEN), wanted, atol=1e-5)
    assert classes_of(result, UNSEEN) == label.tolist()


def test_a_label_that_the_model_computes_as_a_number_is_an_output() -> None:
    data = converted(OneVsOneClassifier(LogisticRegression()), X, Y)
    assert scores_of(built(data), UNSEEN)[:, 0].tolist() == row_by_row(data, UNSEEN)[0].reshape(-1).tolist()


@pytest.mark.parametrize("name", PREPARED)
def test_preprocessors(name: str) -> None:
    data = converted(PREPARED[name](), X, Y)
    wanted = row_by_row(data, UNSEEN)[0].reshape(len(UNSEEN), -1)
    np.testing.assert_allclose(scores_of(built(data), UNSEEN), wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "make", [PowerTransformer, lambda: PolynomialFeatures(2), lambda: QuantileTransformer(n_quantiles=8)]
)
def test_what_bytes_cannot_hold_is_built_with_float(make: Callable[[], Any]) -> None:
    graph = read_graph(converted(make(), X, Y), "m")
    with pytest.raises(UnsupportedError, match="--float"):
        build(graph, Options("m"), {"X": X})
    assert build(graph, Options("m", floats=True), {"X": X}).program.is_float


def test_a_support_vector_machine_has_an_int8_form() -> None:
    """The distances are split into basic operations."""
    data = converted(SVC(), X, Y % 2)
    result = build(read_graph(data, "m"), Options("m"), {"X": X})
    graph, grid = result.graph, result.graph.grids["X"]
    port = next(p for p in result.program.outputs if p.labels and p.decides)
    found = [
        graph.run({"X": np.clip(np.rint(row / grid.scale) + grid.zero, 0, 255).astype(np.uint8)})[port.name].item()
        for row in X
    ]
    right = np.mean([port.labels[int(v)] == y for v, y in zip(found, row_by_row(data, X)[0], strict=True)])
    assert right > 0.93


def test_labels_that_are_text_and_read_inside_are_refused_and_integers_work() -> None:
    def model(labels: dict[str, Any]) -> bytes:
        node = helper.make_node(
            "LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
            coefficients=[1.0, 2.0, -1.0, 0.5], intercepts=[0.1, 0.2], **labels,
        )  # fmt: skip
        again = helper.make_node("Concat", ["label", "label"], ["both"], axis=0)
        last = helper.make_node("Equal", ["both", "both"], ["same"])
        info = helper.make_tensor_value_info
        outputs = [info("scores", TensorProto.FLOAT, [1, 2]), info("same", TensorProto.BOOL, [2])]
        graph = helper.make_graph([node, again, last], "g", [info("x", TensorProto.FLOAT, [1, 2])], outputs)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())

    with pytest.raises(ModelError, match="labels that are text, and that another node reads, are not supported; use"):
        built(model({"classlabels_strings": ["a", "b"]}))
    graph = built(model({"classlabels_ints": [7, 9]})).graph
    assert graph.run({"x": np.ones(2, np.float32)})[graph.outputs[1]].tolist() == [1, 1]


def test_several_labels_are_refused_and_the_scores_alone_work(tmp_path: Path) -> None:
    info, opsets = helper.make_tensor_value_info, [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    nodes = [
        helper.make_node(
            "LinearClassifier", ["x"], [f"label{k}", f"scores{k}"], domain="ai.onnx.ml",
            coefficients=[1.0, 2.0, -1.0, k], intercepts=[0.1, 0.2], classlabels_strings=["a", "b"],
        )
        for k in (1.0, 2.0)
    ]  # fmt: skip
    labels = [info(f"label{k}", TensorProto.STRING, [1]) for k in (1.0, 2.0)]
    scores = [info(f"scores{k}", TensorProto.FLOAT, [1, 2]) for k in (1.0, 2.0)]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [1, 2])], labels + scores)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=r"'label1\.0', 'label2\.0'") as caught:
        built((tmp_path / "a.onnx").read_bytes())
    assert "onnx.utils.extract_model(file, new_file, inputs, scores)" in str(caught.value)
    onnx.utils.extract_model(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), ["x"], ["scores1.0", "scores2.0"])
    assert len(built((tmp_path / "b.onnx").read_bytes()).program.outputs) == 2
