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
from emberlet.micro.builder.build import LEAST_OF_CLASSES, Agreement, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.indices import stored
from onnx import TensorProto, helper, numpy_helper
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.linear_model import (
    LogisticRegression,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR
from support.microcontrollers.estimators import classes_of, converted, halves, numbers_of
from support.microcontrollers.onnx_models import Maker

from tools.micropython import Port

Array = npt.NDArray[Any]


def logistic() -> Any:
    return LogisticRegression(max_iter=5000)


def transformed() -> Any:
    some = ColumnTransformer([("a", StandardScaler(), [3, 0, 2]), ("b", MinMaxScaler(), [1, 4, 5])])
    return make_pipeline(some, logistic())


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
