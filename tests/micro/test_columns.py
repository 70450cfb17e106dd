"""Columns of tables keep ranges of their own, and a build that disagrees with float32 fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.errors import UnsupportedError
from emberlet.host import cli
from emberlet.micro.builder import build as building
from emberlet.micro.builder.build import LEAST_OF_CLASSES, Agreement, BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.indices import stored
from emberlet.micro.builder.quantization.reference import dequantize
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
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
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVR, NuSVC
from support.microcontrollers.onnx_models import Maker

from tools.micropython import Port

Array = npt.NDArray[Any]


def logistic() -> Any:
    return LogisticRegression(max_iter=5000)


def transformed() -> Any:
    some = ColumnTransformer([("a", StandardScaler(), [3, 0, 2]), ("b", MinMaxScaler(), [1, 4, 5])])
    return make_pipeline(some, logistic())


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "standardized": lambda: make_pipeline(StandardScaler(), logistic()),
    "between 0 and 1": lambda: make_pipeline(MinMaxScaler(), logistic()),
    "by quartiles": lambda: make_pipeline(RobustScaler(), logistic()),
    "by the largest": lambda: make_pipeline(MaxAbsScaler(), logistic()),
    "without a scaler": RidgeClassifier,
    "columns in groups": transformed,
    "gradient descent": lambda: make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    "support vectors": lambda: make_pipeline(StandardScaler(), SVC()),
    "neighbors": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
    "support vectors, few": lambda: make_pipeline(StandardScaler(), NuSVC(nu=0.2)),
    "perceptron": lambda: make_pipeline(StandardScaler(), Perceptron()),
    "discriminants": lambda: make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    "one against the rest": lambda: make_pipeline(StandardScaler(), OneVsRestClassifier(logistic())),
    "a network": lambda: make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=500, random_state=0)),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "linear": LinearRegression,
    "standardized": lambda: make_pipeline(StandardScaler(), Ridge()),
    "few columns": Lasso,
    "two penalties": lambda: make_pipeline(StandardScaler(), ElasticNet(alpha=0.01)),
    "Bayesian": lambda: make_pipeline(StandardScaler(), BayesianRidge()),
    "robust": lambda: make_pipeline(StandardScaler(), HuberRegressor()),
    "support vectors": lambda: make_pipeline(StandardScaler(), LinearSVR(C=10, max_iter=20000)),
    "partial least squares": lambda: make_pipeline(StandardScaler(), PLSRegression(2)),
}


def halves(load: Callable[..., tuple[Array, Array]], **options: Any) -> tuple[Array, Array, Array, Array]:
    """Rows to train on and to calibrate with, others to score, and their targets."""
    x, y = load(return_X_y=True, **options)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    return x[::2], x[1::2], y[::2], y[1::2]


def converted(estimator: Any, x: Array) -> bytes:
    classifies = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    return bytes(to_onnx(estimator, x[:1], options={"zipmap": False} if classifies else None).SerializeToString())


def numbers_of(result: BuildResult, row: Array, name: str) -> Array:
    """An output of the int8 graph, as numbers."""
    graph = result.graph
    x = graph.columns["X"].of(row) if "X" in graph.columns else row
    y = graph.run({"X": stored(graph, "X", x)})[name]
    return dequantize(y, graph.grids[name].scale, graph.grids[name].zero).reshape(-1)


def classes_of(result: BuildResult, rows: Array) -> Array:
    graph = result.graph
    port = next(p for p in result.program.outputs if p.labels)
    found = [numbers_of(result, row, graph.decides or port.name) for row in rows]
    return np.array([port.labels[round(float(v[0])) if graph.decides else int(v.argmax())] for v in found])


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer], ids=["wine", "tumors"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_lose_at_most_one_point_of_their_score(name: str, load: Callable[..., Any]) -> None:
    seen, unseen, y, wanted = halves(load)
    estimator = ESTIMATORS[name]().fit(seen, y)
    result = build(read_graph(converted(estimator, seen), "m"), Options("m", least_agreement=None), {"X": seen})
    score = float(np.mean(classes_of(result, unseen) == wanted))
    assert score >= estimator.score(unseen, wanted) - 0.01
    assert f"the same {'class' if result.graph.decides else 'largest output'} in" in str(result.agreement)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressions_lose_at_most_one_point_of_their_score(name: str) -> None:
    seen, unseen, y, wanted = halves(load_diabetes, scaled=False)
    estimator = REGRESSORS[name]().fit(seen, y)
    result = build(read_graph(converted(estimator, seen), "m"), Options("m", least_agreement=None), {"X": seen})
    found = np.array([numbers_of(result, row, result.graph.outputs[0])[0] for row in unseen])
    score = 1 - np.sum((found - wanted) ** 2) / np.sum((wanted - wanted.mean()) ** 2)
    assert score >= estimator.score(unseen, wanted) - 0.01


@pytest.mark.parametrize("make", [GaussianNB, lambda: make_pipeline(StandardScaler(), SVR(C=100))])
def test_a_build_that_disagrees_with_float32_fails_and_names_the_ways_out(make: Callable[[], Any]) -> None:
    seen, _, y, _ = halves(load_wine)
    graph = read_graph(converted(make().fit(seen, y), seen), "m")
    with pytest.raises(UnsupportedError, match=r"% .*--float.*--least-agreement") as caught:
        build(graph, Options("m", least_agreement=0.9999), {"X": seen})
    least = float(str(caught.value).rpartition(" ")[2])
    assert build(graph, Options("m", least_agreement=least), {"X": seen}).agreement
    assert build(graph, Options("m", floats=True), {"X": seen}).program.is_float


def test_classes_with_labels_and_other_scores_have_to_agree_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 99 of 100 samples: a point of the score."""
    seen, _, y, _ = halves(load_wine)
    graph = read_graph(converted(RidgeClassifier().fit(seen, y), seen), "m")
    found = Agreement(200, 0.985, 0.03, 0.1)
    monkeypatch.setattr(building, "compare", lambda *_: found)
    with pytest.raises(UnsupportedError, match=r"98\.5%.* less than 99% .*--float.*--least-agreement 0\.98"):
        build(graph, Options("m", least_agreement=None), {"X": seen})
    assert build(replace(graph, labels={}), Options("m", least_agreement=None), {"X": seen}).agreement
    found = replace(found, rms=0.01)
    assert build(graph, Options("m", least_agreement=None), {"X": seen}).agreement


def test_the_command_fails_where_agreement_is_poor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen, _, y, _ = halves(load_wine)
    (tmp_path / "nb.onnx").write_bytes(converted(GaussianNB().fit(seen, y), seen))
    np.savez(tmp_path / "rows.npz", X=seen)
    words = ["micro", "build", str(tmp_path / "nb.onnx"), "--calibration", str(tmp_path / "rows.npz")]
    words += ["--out", str(tmp_path / "dist")]
    assert cli.main(words) == 2
    assert f"less than {LEAST_OF_CLASSES:.0%} agreement" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()
    assert cli.main([*words, "--least-agreement", "0"]) == 0


def test_a_device_shifts_and_scales_columns_and_counts_numbers(unix_port: Port, tmp_path: Path) -> None:
    seen, unseen, y, _ = halves(load_wine)
    estimator = transformed().fit(seen, y)
    result = build(read_graph(converted(estimator, seen), "m"), Options("m", weights="module"), {"X": seen})
    for file, text in result.sources.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    rows = unseen[:40]
    (tmp_path / "rows.py").write_text(f"ROWS = {[[float(v) for v in row] for row in rows]!r}\n", encoding="utf-8")
    script = (
        "import m\nfrom rows import ROWS\n"
        "for row in ROWS:\n    m.predict(row)\n    print(m.labels[m.best()])\n"
        "for wrong in (ROWS[0] + [1.0], ROWS[0][1:]):\n"
        "    try:\n        m.predict(wrong)\n    except ValueError as e:\n        print(e)\n"
    )
    lines = unix_port.run(script, micropypath=[tmp_path]).check().stdout.splitlines()
    assert [int(line) for line in lines[:40]] == classes_of(result, rows).tolist()
    assert "found 14" in lines[40] and "found 12" in lines[41]


def test_inputs_with_and_without_columns_are_put_each_in_their_way(unix_port: Port, tmp_path: Path) -> None:
    m = Maker(1)
    m.constant("factor", np.array([0.1, 0.001, 0.03, 0.025], np.float32))
    m("Mul", "x factor", "scaled")
    m("MatMul", "scaled z", "y")
    model = m.model([1, 4])
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [4, 3]))
    draw = np.random.default_rng(0)
    samples = {"x": draw.uniform(-1, 1, (40, 1, 4)) * [10, 1000, 30, 40], "z": draw.uniform(-1, 1, (40, 4, 3))}
    samples = {name: x.astype(np.float32) for name, x in samples.items()}
    result = build(read_graph(model.SerializeToString(), "m"), Options("m", weights="module"), samples)
    assert list(result.graph.columns) == ["x"]
    for file, text in result.sources.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    rows = [samples[port.name][0].reshape(-1).tolist() for port in result.program.inputs]
    script = f"import m\nfor k, row in enumerate({rows!r}):\n    m.put(row, k)\n    print(list(m.inputs[k]))\n"
    lines = unix_port.run(script, micropypath=[tmp_path]).check().stdout.splitlines()
    for line, port in zip(lines, result.program.inputs, strict=True):
        x = samples[port.name][:1]
        x = result.graph.columns[port.name].of(x) if port.name in result.graph.columns else x[0]
        assert np.abs(np.array(json.loads(line)) - stored(result.graph, port.name, x).reshape(-1)).max() <= 1


def test_strange_calibration_samples_are_noticed() -> None:
    seen, _, y, _ = halves(load_wine)
    data = converted(make_pipeline(StandardScaler(), logistic()).fit(seen, y), seen)

    def notes(samples: Array) -> str:
        return " ".join(build(read_graph(data, "m"), Options("m"), {"X": samples}).notes)

    assert not notes(seen)
    assert "3 calibration samples are few" in notes(seen[:3])
    assert "equal" in notes(np.zeros((20, 13), np.float32))
    assert "scaled as they were in training" in notes(seen * 1e-3 + 1e6)


def test_the_grid_of_the_file_is_of_the_numbers_as_they_come() -> None:
    """A byte of the input means there what it means in the file, also in front of a scaler."""
    m = Maker(1)
    m.constant("step", np.float32(2))
    m.constant("zero", 100, "uint8")
    m.constant("factor", np.array([1, 0.01, 0.25, 0.2], np.float32))
    m.weight("w", 4, 3)
    m("QuantizeLinear", "x step zero", "bytes")
    m("DequantizeLinear", "bytes step zero", "numbers")
    m("Mul", "numbers factor", "scaled")
    m("MatMul", "scaled w", "y")
    seen = (np.random.default_rng(0).standard_normal((40, 4)) * [10, 100, 40, 50]).astype(np.float32)
    graph = build(read_graph(m.model([1, 4]).SerializeToString(), "m"), Options("m"), {"x": seen}).graph
    assert (graph.grids["x"].scale, graph.grids["x"].zero) == (2, 100)
    assert not graph.columns


def test_places_in_a_table_stay_whole() -> None:
    """Each column has rows of its own in one table of embeddings."""
    m = Maker(1)
    m.constant("first", np.arange(8) * 30)
    m.weight("w", 240, 4)
    m("Add", "x first", "places")
    m("Gather", "w places", "y", axis=0)
    model = m.model([1, 8])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    seen = np.random.default_rng(0).integers(0, 30, (60, 8)).astype(np.float32)
    result = build(read_graph(model.SerializeToString(), "m"), Options("m"), {"x": seen})
    assert result.agreement and result.agreement.worst < 0.01


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("picked", [True, False])
def test_whole_numbers_may_need_finer_steps_once_they_are_scaled(scaled: bool, picked: bool) -> None:
    m = Maker(1)
    m.constant("places", np.array([3, 1, 0, 2]))
    m.constant("factor", np.array([0.1, 0.001, 0.03, 0.025], np.float32))
    m.weight("w", 4, 3)
    if picked:
        m("Gather", "x places", "p", axis=1)
    m("Cast", "p" if picked else "x", "f", to=1)
    if scaled:
        m("Mul", "f factor", "s")
    m("MatMul", "s w" if scaled else "f w", "y")
    model = m.model([1, 4])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    seen = np.random.default_rng(0).integers(0, 5, (60, 4)).astype(np.float32) * [10, 40, 3, 4]
    result = build(read_graph(model.SerializeToString(), "m"), Options("m"), {"x": seen})
    assert result.agreement and result.agreement.worst < 0.02


def test_a_stream_takes_numbers_as_they_come() -> None:
    """`put` takes one step of a stream, so it cannot scale each of the steps in its own way."""
    m = Maker(1)
    m.constant("window", np.hanning(42)[1:-1].astype(np.float32))
    m.weight("w", 4, 1, 5)
    m("Mul", "x window", "s")
    m("Conv", "s w", "y")
    seen = np.random.default_rng(0).standard_normal((40, 1, 1, 40)).astype(np.float32)
    graph = read_graph(m.model([1, 1, 40]).SerializeToString(), "m")
    assert build(graph, Options("m"), {"x": seen}).graph.columns
    assert not build(graph, Options("m", stream=2), {"x": seen}).graph.columns


def test_picked_columns_that_are_an_output_stay_as_they_are() -> None:
    info = helper.make_tensor_value_info
    constants = {"places": np.array([3, 1]), "mean": np.array([500.0, 0.5], np.float32)}
    constants |= {"deviation": np.array([100.0, 0.1], np.float32)}
    nodes = [
        helper.make_node("Gather", ["X", "places"], ["picked"], axis=1),
        helper.make_node("Sub", ["picked", "mean"], ["centered"]),
        helper.make_node("Div", ["centered", "deviation"], ["scaled"]),
    ]
    outputs = [info(name, TensorProto.FLOAT, [1, 2]) for name in ("picked", "scaled")]
    weights = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [info("X", TensorProto.FLOAT, [1, 4])], outputs, weights),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
    )
    rows = np.random.default_rng(0).uniform([0, 0, 0, 300], [1, 1, 1, 700], (40, 4)).astype(np.float32)
    result = build(read_graph(model.SerializeToString(), "m"), Options("m"), {"X": rows})
    name = result.graph.outputs[0]
    found = np.array([numbers_of(result, row, name) for row in rows])
    assert np.abs(found - rows[:, [3, 1]]).max() <= result.graph.grids[name].scale * 1.01
