"""Imported ONNX models compute onnxruntime's results, and their int8 form stays close."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.codegen.ops.elementwise import Elementwise
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build, calibrated
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.kernels.select import Select
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.quantization.agreement import compare
from emberlet.micro.builder.quantization.calibrate import check_samples
from support.microcontrollers.onnx_models import MODELS, Maker
from support.microcontrollers.quantized import samples_of
from support.microcontrollers.stateful import stateful
from support.rows import every


def run_onnx(model: onnx.ModelProto, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


@pytest.mark.parametrize("name", MODELS)
def test_graph_has_the_numbers_of_onnxruntime(name: str) -> None:
    model = MODELS[name]()
    graph = read_graph(model.SerializeToString(), name)
    fused = fuse(graph)
    samples = samples_of(model, 2, 3)
    laid = check_samples({"x": samples}, graph)["x"]
    for x, mine in zip(samples, laid, strict=True):
        expected = run_onnx(model, x)
        for g in (graph, fused):
            values = g.run({"x": mine})
            for y, output in zip(expected, g.outputs, strict=True):
                np.testing.assert_allclose(values[output].reshape(-1), y.reshape(-1), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_int8_stays_close(name: str) -> None:
    model = MODELS[name]()
    graph = fuse(read_graph(model.SerializeToString(), name))
    samples = {"x": samples_of(model, 24, 3)}
    quantized, agreement, _ = calibrated(graph, samples, Options(name))
    assert agreement.rms < 0.02, agreement
    fresh = check_samples({"x": samples_of(model, 8, 9)}, graph)
    assert compare(graph, quantized, fresh).rms < 0.04
    assert plan(quantized).arena > 0


ELEMENTWISE = {
    "PRelu": {"slope": np.array([[[0.5]], [[-0.25]], [[2.0]]], np.float32)},
    "Shrink": {"bias": 0.25, "lambd": 0.5},
    "Celu": {"alpha": 0.5},
    "Gelu": {"approximate": "tanh"},
}
NOT_NUMBERS = {"BitwiseNot", "IsInf", "IsNaN", "Not", "SwiGLU"}


def leaves(kind: type) -> set[str]:
    """The names of a class's subclasses that have no subclasses."""
    below = kind.__subclasses__()
    return {kind.__name__} if not below else set().union(*map(leaves, below))


@every("op", sorted(leaves(Elementwise) - NOT_NUMBERS))
def test_every_function_of_one_number_is_taken(op: str) -> None:
    m = Maker()
    attributes = dict(ELEMENTWISE.get(op, {}))
    slope = attributes.pop("slope", None)
    if slope is not None:
        m.constant("slope", slope)
    if op in ("Asin", "Acos", "Atanh"):
        m("Sigmoid", "x", "inside")
    elif op in ("Acosh", "Log", "Sqrt"):
        m("Exp", "x", "positive")
        m("Add", "positive one", "inside")
        m.constant("one", np.float32(1))
    else:
        m("Identity", "x", "inside")
    m(op, "inside" + (" slope" if slope is not None else ""), "y", **attributes)
    model = m.model([1, 3, 4, 5], opset=24 if op == "Swish" else 20, ir=10)
    graph = read_graph(model.SerializeToString(), op)
    samples = samples_of(model, 12, 3)
    laid = check_samples({"x": samples}, graph)["x"]
    try:
        wanted = [run_onnx(model, x)[0] for x in samples]
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        wanted = [x / (1 + np.exp(-x)) for x in samples]  # Swish
    for y, mine in zip(wanted, laid, strict=True):
        found = fuse(graph).run({"x": mine})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), y.reshape(-1), rtol=2e-4, atol=2e-5)
    assert calibrated(fuse(graph), {"x": samples}, Options("m"))[1].rms < 0.1


@every("seed", range(12), share=3)
def test_states_that_come_in_slices_are_remembered(seed: int) -> None:
    model, names = stateful(seed)
    graph = read_graph(model.SerializeToString(), "m")
    assert graph.inputs == ("x",)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    states = {i.name: np.zeros(i.shape, np.float32) for i in session.get_inputs() if i.name != "x"}
    kept: dict[str, Any] = {}
    for x in samples_of(model, 4, 3):
        y, *new = session.run(None, {"x": x, **states})
        states = dict(zip(names, new, strict=True))
        found = graph.run({"x": x}, kept)[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), y.reshape(-1), rtol=1e-4, atol=1e-5)
    assert calibrated(fuse(graph), {"x": samples_of(model, 40, 3)}, Options("m"))[1].rms < 0.05


def test_a_factor_scales_the_weights_that_came_quantized() -> None:
    m = Maker()
    m.constant("q", m.rng.integers(-127, 128, (5, 7)), "int8")
    m.constant("scale", np.linspace(0.01, 0.05, 5), "float32")
    m("DequantizeLinear", "q scale", "w", axis=0)
    m("Gemm", "x w", "y", transB=1, alpha=-2.0)
    (scales,) = read_graph(m.model([1, 7]).SerializeToString(), "m").weight_scales.values()
    np.testing.assert_allclose(scales, 2 * np.linspace(0.01, 0.05, 5), rtol=1e-6)


def test_every_operator_that_is_not_done_is_listed() -> None:
    m = Maker()
    m("LRN", "x", "a", size=3)
    m("Relu", "a", "b")
    m("Det", "x", "c")
    m("Add", "b b", "y")
    with pytest.raises(ModelError) as caught:
        read_graph(m.model([1, 3, 3], "y c").SerializeToString(), "m")
    text = str(caught.value)
    assert "LRN" in text and "Det" in text
    assert "Relu" not in text


@pytest.mark.parametrize("after", ["Softmax", "Tanh"])
def test_large_negative_constants_are_masks_before_softmax_alone(after: str) -> None:
    m = Maker()
    m.constant("c", np.array([0.5, -2e4, 0, 0], np.float32))
    m("Add", "x c", "s")
    m(after, "s", "y")
    model = m.model([1, 4], "y")
    graph = read_graph(model.SerializeToString(), "m")
    assert any(isinstance(layer, Select) for layer in graph.layers) == (after == "Softmax")
    x = samples_of(model, 1, 3)
    found = graph.run({"x": check_samples({"x": x}, graph)["x"][0]})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(-1), run_onnx(model, x[0])[0].reshape(-1), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.0])
def test_a_sum_or_product_with_one_number(op: str, number: float) -> None:
    m = Maker()
    m.constant("c", np.array(number, np.float32))
    m(op, "x c", "y")
    model = m.model([1, 5])
    x = np.random.default_rng(0).standard_normal((8, 1, 5)).astype(np.float32)
    graph = fuse(read_graph(model.SerializeToString(), "m"))
    np.testing.assert_array_equal(graph.run({"x": x[0]})[graph.outputs[0]].reshape(-1), run_onnx(model, x[0])[0][0])
    assert not build(graph, Options("m", method="minmax"), {"x": x}).program.is_float
