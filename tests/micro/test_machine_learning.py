"""scikit-learn models converted by skl2onnx predict onnxruntime's classes for every row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.importer.trees import before_scaling
from emberlet.micro.builder.kernels.trees import MIDDLE
from skl2onnx import to_onnx
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

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

REGRESSORS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestRegressor(8, random_state=0),
    "boosted": lambda: GradientBoostingRegressor(n_estimators=15),
    "ridge": Ridge,
    "svm": SVR,
}


def converted(estimator: Any, x: Array, y: Array) -> bytes:
    estimator.fit(x, y)
    maps = hasattr(estimator, "classes_") and not isinstance(estimator, LinearSVC)
    options = {id(estimator): {"zipmap": False}} if maps else None
    return bytes(to_onnx(estimator, x[:1], options=options).SerializeToString())


def built(data: bytes) -> BuildResult:
    return build(read_graph(data, "m"), Options("m"))


def row_by_row(data: bytes, x: Array) -> list[Array]:
    """onnxruntime's outputs, one row at a time, since it sums the trees of many rows in another order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    rows = [session.run(None, {name: row[None]}) for row in x]
    return [np.concatenate([np.asarray(row[k]) for row in rows]) for k in range(len(rows[0]))]


def scores_of(result: BuildResult, x: Array) -> Array:
    """As the built module computes them, before a transform."""
    graph, port = result.graph, result.program.inputs[0]
    source, target = graph.inputs[0], graph.outputs[0]
    if not graph.sums:
        return np.array([graph.run({source: row})[target].reshape(-1) for row in x])
    assert port.cuts is not None
    wide, sums, found = port.size > len(port.cuts), graph.sums[target], []
    for row in x:
        ranks = [bisect_left(cuts, float(v)) for cuts, v in zip(port.cuts, row, strict=True)]
        given = [b for r in ranks for b in ((r & 255, r >> 8) if wide else (r,))]
        words = graph.run({source: np.array(given, np.uint8)})[target].view("<u4")
        found.append((words.astype(np.int64) - MIDDLE) * sums.step)
    return np.array(found)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_row_gets_its_class(name: str) -> None:
    make, y = CLASSIFIERS[name]
    data = converted(make(), X, y)
    result = built(data)
    labels = result.program.outputs[0].labels
    found = [labels[k] for k in scores_of(result, UNSEEN).argmax(1)]
    assert found == row_by_row(data, UNSEEN)[0].tolist()


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_close(name: str) -> None:
    data = converted(REGRESSORS[name](), XR, YR)
    expected = row_by_row(data, XR)[0].reshape(-1)
    found = scores_of(built(data), XR).reshape(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * float(np.ptp(expected)))


@pytest.mark.parametrize("name", ["forest", "forest of two", "tree of names", "boosted", "scaled forest"])
@pytest.mark.parametrize("bytecode", [False, True])
def test_the_module_predicts_on_micropython(name: str, bytecode: bool, unix_port: Port, tmp_path: Path) -> None:
    make, y = CLASSIFIERS[name]
    data = converted(make(), X, y)
    result = built(data)
    files = {**{k: v.encode() for k, v in result.sources.items()}, **result.extra}
    if bytecode:
        del files["m_kernels.py"]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    rows = UNSEEN[:40]
    script = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport m\n"
        f"for row in {rows.astype(float).tolist()!r}:\n"
        "    scores = m.predict(row)\n    print(m.best(), *scores)\n"
    )
    lines = unix_port.run(script, heap="16M", micropypath=[]).check().stdout.splitlines()
    found = np.array([[float(v) for v in line.split()] for line in lines])
    labels, probabilities = row_by_row(data, rows)
    assert [result.program.outputs[0].labels[int(k)] for k in found[:, 0]] == labels.tolist()
    np.testing.assert_allclose(found[:, 1:], probabilities, rtol=1e-4, atol=1e-5)


def test_scaled_numbers_are_compared_as_before_they_were_scaled() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        offset, cut = (np.float32(v) for v in rng.normal(0, 3, 2))
        scale = np.float32(rng.normal(0, 2))
        border, turned = before_scaling(float(cut), float(offset), float(scale))
        for x in (np.float32(border), np.nextafter(np.float32(border), np.float32(np.inf)), np.float32(rng.normal())):
            assert bool((x - offset) * scale <= cut) == (bool(x <= np.float32(border)) != turned)


def test_layers_before_trees_are_refused() -> None:
    data = converted(make_pipeline(Normalizer(), DecisionTreeClassifier()), X, Y)
    with pytest.raises(ModelError, match="the trees must read the model's input"):
        built(data)
