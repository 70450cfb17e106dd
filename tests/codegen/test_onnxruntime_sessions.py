"""What a session of emberlet.onnxruntime runs on, what it is called, and what install() puts in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from emberlet import onnxruntime as ours
from emberlet.onnxruntime import session as sessions

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x) => (float[N, 3] y, float[M] z) {
  y = Relu(x)
  one = Constant<value_ints = [-1]>()
  z = Reshape(x, one)
}"""
X = np.float32([[1, -2, 3]])


def model(change: Any = lambda graph: None) -> bytes:
    found = onnx.parser.parse_model(TEXT)
    change(found.graph)
    return bytes(found.SerializeToString())


def quiet(ort: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options


def of(ort: Any, data: Any, **more: Any) -> Any:
    return ort.InferenceSession(data, quiet(ort), **more)


def test_a_sequence_stays_one_output_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")  # the second call is run by the plan
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[3, 6] x) => (seq(float[3, 2]) y) {
      two = Constant<value_int = 2>()
      z = Mul(x, x)
      y = SplitToSequence<axis = 1>(z, two)
    }"""
    data = onnx.parser.parse_model(text).SerializeToString()
    feed = {"x": np.arange(18, dtype=np.float32).reshape(3, 6)}
    (wanted,) = of(theirs, data, providers=["CPUExecutionProvider"]).run(None, feed)
    made = of(ours, data)
    for _ in range(3):
        (found,) = made.run(None, feed)
        np.testing.assert_array_equal(found, wanted)


def test_without_numpy_plain_python_runs_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "backend_of", lambda provider: "python")
    made = of(ours, model())
    assert made._backend.name == "python"
    assert type(made._model).__name__ == "G"
    assert made.run(["y"], {"x": X})[0].tolist() == [[1, 0, 3]]


def test_outputs_without_a_shape_get_the_inferred_one() -> None:
    def change(graph: Any) -> None:
        graph.output[0].type.tensor_type.ClearField("shape")

    for data in (model(), model(change)):
        told = [[(o.name, o.type, len(o.shape)) for o in of(ort, data).get_outputs()] for ort in (theirs, ours)]
        assert told[0] == told[1]
    assert of(ours, model(change)).get_outputs()[0].shape == ["N", 3]
    assert of(ours, model()).get_outputs()[1].shape == ["M"]


@pytest.mark.parametrize("source", [3, None, 2.5, ["a"]])
def test_a_model_is_a_path_or_bytes(source: Any) -> None:
    for ort in (theirs, ours):
        with pytest.raises(TypeError, match=f"Unable to load from type '{type(source)}'"):
            ort.InferenceSession(source)


@pytest.mark.parametrize(
    ("said", "told"),
    [("await the _async twin instead", "this browser cannot suspend Python .*run_awaited"), ("lost", ": lost$")],
)
def test_a_failure_while_computing_is_a_runtime_exception(said: str, told: str, monkeypatch: Any) -> None:
    made = of(ours, model())

    def fail(values: Any) -> Any:
        raise RuntimeError(said)

    monkeypatch.setattr(made, "_quick", fail)
    with pytest.raises(sessions.RuntimeException, match=told):
        made.run(None, {"x": X})


@pytest.mark.parametrize("name", ["nothing", "Values", "OrtValues"])
def test_a_name_that_is_none_is_an_attribute_error_of_the_module(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'emberlet.onnxruntime' has no attribute '{name}'$"):
        getattr(ours, name)
