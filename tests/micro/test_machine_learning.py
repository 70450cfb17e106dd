"""scikit-learn models converted by skl2onnx predict onnxruntime's classes for every row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.importer.trees import before_scaling
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from support.machine_learning import one_node
from support.microcontrollers import estimators
from support.microcontrollers.modules import importable
from support.microcontrollers.rows import row_by_row, scores_of

from tools.micropython import Port

Array = npt.NDArray[Any]

X, Y = make_classification(300, 8, n_informative=6, n_classes=3, random_state=1)
X = X.astype(np.float32)
PAIR = (Y > 0).astype(int)
NAMES = np.array(["red", "green", "blue"])[Y]
XR, YR = make_regression(300, 6, noise=5, random_state=2)
XR = XR.astype(np.float32)
UNSEEN = (X * np.random.default_rng(3).uniform(0.3, 2, X.shape)).astype(np.float32)

CLASSIFIERS: dict[str, tuple[Callable[[], Any], Array]] = {
    "tree": (DecisionTreeClassifier, Y),
    "tree of names": (DecisionTreeClassifier, NAMES),
    "forest": (lambda: RandomForestClassifier(12, random_state=0), Y),
    "forest of two": (lambda: RandomForestClassifier(40, max_depth=6, random_state=0), PAIR),
    "extra trees": (lambda: ExtraTreesClassifier(12, random_state=0), Y),
    "boosted": (lambda: GradientBoostingClassifier(n_estimators=8), Y),
    "boosted, two": (lambda: GradientBoostingClassifier(n_estimators=12), PAIR),
    "scaled forest": (lambda: make_pipeline(StandardScaler(), RandomForestClassifier(8, random_state=0)), Y),
    "logistic": (lambda: LogisticRegression(max_iter=1000), Y),
    "scaled logistic": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), PAIR),
    "normalized logistic": (lambda: make_pipeline(Normalizer(), LogisticRegression()), Y),
    "linear svm": (LinearSVC, Y),
    "svm of two": (lambda: SVC(kernel="poly"), PAIR),
    "rbf svm of two": (SVC, PAIR),
}


def converted(estimator: Any, x: Array, y: Array) -> bytes:
    return estimators.converted(estimator.fit(x, y), x)


def built(data: bytes) -> BuildResult:
    return build(read_graph(data, "m"), Options("m"))


def on_micropython(
    result: BuildResult, x: Array, port: Port, folder: Path, bytecode: bool = False
) -> tuple[list[int | str], Array]:
    """The label and the scores of each row."""
    rows = repr(x.astype(float).tolist()).replace("nan", "float('nan')")
    script = importable(folder, result, bytecode=bytecode) + (
        f"import m\nfor row in {rows}:\n    scores = m.predict(row)\n    print(m.best(), *scores)\n"
    )
    lines = port.run(script, heap="16M", micropypath=[]).check().stdout.splitlines()
    found = np.array([[float(v) for v in line.split()] for line in lines])
    labels = next(p.labels for p in result.program.outputs if p.labels)
    return [labels[int(k)] for k in found[:, 0]], found[:, 1:]


@pytest.mark.parametrize("name", ["forest", "forest of two", "tree of names", "boosted", "scaled forest"])
@pytest.mark.parametrize("bytecode", [False, True])
def test_the_module_predicts_on_micropython(name: str, bytecode: bool, unix_port: Port, tmp_path: Path) -> None:
    make, y = CLASSIFIERS[name]
    data = converted(make(), X, y)
    result = built(data)
    best, scores = on_micropython(result, UNSEEN[:40], unix_port, tmp_path, bytecode)
    labels, probabilities = row_by_row(data, UNSEEN[:40])
    assert best == labels.tolist()
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-5)


def test_scaled_numbers_are_compared_as_before_they_were_scaled() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        offset, cut = (np.float32(v) for v in rng.normal(0, 3, 2))
        scale = np.float32(rng.normal(0, 2))
        border, turned = before_scaling(float(cut), (float(offset), float(scale)))
        for x in (np.float32(border), np.nextafter(np.float32(border), np.float32(np.inf)), np.float32(rng.normal())):
            assert bool((x - offset) * scale <= cut) == (bool(x <= np.float32(border)) != turned)


@pytest.mark.parametrize("bytecode", [False, True])
def test_trees_beside_other_layers_predict_on_micropython(bytecode: bool, unix_port: Port, tmp_path: Path) -> None:
    model = make_pipeline(PCA(4), RandomForestClassifier(6, max_depth=5, random_state=0))
    data = converted(model, X, NAMES)
    best, scores = on_micropython(built(data), UNSEEN[:40], unix_port, tmp_path, bytecode)
    labels, probabilities = row_by_row(data, UNSEEN[:40])
    assert best == labels.tolist()
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-5)


NAN: dict[str, Callable[[], Any]] = {
    "imputed by the mean": lambda: make_pipeline(SimpleImputer(), RandomForestClassifier(8, random_state=0)),
    "imputed and scaled": lambda: make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), RobustScaler(), DecisionTreeClassifier()
    ),
    "imputed, not for trees": lambda: make_pipeline(SimpleImputer(), LogisticRegression()),
    "told by a forest": lambda: RandomForestClassifier(12, random_state=0),
}


def with_gaps(x: Array) -> Array:
    x = x.copy()
    x[np.random.default_rng(5).random(x.shape) < 0.15] = np.nan
    return x


@pytest.mark.parametrize("name", NAN)
def test_missing_numbers_go_the_way_that_the_model_says(name: str, unix_port: Port, tmp_path: Path) -> None:
    data = converted(NAN[name](), with_gaps(X), NAMES)
    rows = with_gaps(UNSEEN)
    result = built(data)
    assert result.program.is_float == (name == "imputed, not for trees")
    best, scores = on_micropython(result, rows[:120], unix_port, tmp_path)
    labels, probabilities = row_by_row(data, rows[:120])
    assert best == labels.tolist()
    np.testing.assert_allclose(scores, probabilities, rtol=1e-4, atol=1e-5)


def test_a_feature_whose_missing_numbers_go_either_way_has_two_ranks() -> None:
    """Random trees with random directions for NaN, and with comparisons of all kinds."""
    rng = np.random.default_rng(2)
    copied = 0
    for _ in range(30):
        data = ensemble_at_random(rng)
        result = built(data)
        copied += len(result.program.inputs[0].nan[1])
        x = with_gaps(np.round(rng.normal(0, 2, (40, 3))).astype(np.float32))
        expected = row_by_row(data, x)[0].reshape(-1)
        np.testing.assert_allclose(scores_of(result, x).reshape(-1), expected, rtol=1e-5, atol=1e-5)
    assert copied


def ensemble_at_random(rng: np.random.Generator) -> Any:
    """Four full trees of depth 3 over 3 features."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    rows = [(tree, n) for tree in range(4) for n in range(15)]
    mode = str(rng.choice(modes))
    attributes: dict[str, Any] = {
        "nodes_treeids": [tree for tree, _ in rows],
        "nodes_nodeids": [n for _, n in rows],
        "nodes_featureids": rng.integers(0, 3, len(rows)).tolist(),
        "nodes_values": np.round(rng.normal(0, 2, len(rows))).tolist(),
        "nodes_modes": [mode if n < 7 else "LEAF" for _, n in rows],
        "nodes_truenodeids": [2 * n + 1 if n < 7 else 0 for _, n in rows],
        "nodes_falsenodeids": [2 * n + 2 if n < 7 else 0 for _, n in rows],
        "nodes_missing_value_tracks_true": rng.integers(0, 2, len(rows)).tolist(),
        "target_treeids": [tree for tree in range(4) for _ in range(8)],
        "target_nodeids": [n for _ in range(4) for n in range(7, 15)],
        "target_ids": [0] * 32,
        "target_weights": rng.normal(0, 1, 32).tolist(),
        "n_targets": 1,
    }
    return one_node("TreeEnsembleRegressor", [np.zeros((1, 3), np.float32)], **attributes).SerializeToString()
