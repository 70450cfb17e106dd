"""ONNX files with operators on integers: onnxruntime gives the numbers of the file of QuantizeLinear and
DequantizeLinear that they were made from, and emberlet those of the operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import codegen
from emberlet.codegen.quantized import activations, operators, preparing
from emberlet.host.quantization.calibration import Observed, range_of
from support.onnx_models import parse

onnxruntime = pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(6)
EXAMPLES = {
    "digits": ROOT / "examples" / "digits" / "digits.onnx",
    "wake_word": ROOT / "examples" / "micro_wake_word" / "wake_word.onnx",
}


def outputs(model: onnx.ModelProto, given: dict[str, Any]) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, given), strict=True))


def both(model: onnx.ModelProto, given: dict[str, Any]) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """(with QuantizeLinear and DequantizeLinear, with operators on integers)"""
    model = preparing.prepared(model)
    names = activations.tensors(model)
    values = {**given, **outputs(activations.observed(model, names), given)}
    ranges = {}
    for name in names:
        seen = Observed()
        seen.add(values[name])
        ranges[name] = range_of(seen, "minmax")
    made = activations.quantized(model, ranges)
    found = operators.of_integers(made)
    onnx.checker.check_model(found)
    return made, found


def kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def same(a: Any, b: Any) -> None:
    """But for numbers between two levels, which may go to either, and what is computed of them."""
    span = float(np.ptp(a)) or 1.0
    assert np.abs(a - b).max() <= 0.04 * span
    assert np.mean(np.abs(a - b) <= span / 200) > 0.95


@pytest.mark.parametrize("name", ["digits", "wake_word", "residual_cnn", "mobile_cnn", "unet", "vit", "gpt"])
def test_a_network_of_operators_gives_the_numbers_of_quantizelinear(name: str) -> None:
    model = onnx.load(EXAMPLES.get(name, ROOT / "tests" / "models" / name / "model.onnx"))
    if name in EXAMPLES:
        shape = [d.dim_value or 4 for d in model.graph.input[0].type.tensor_type.shape.dim]
        given = {model.graph.input[0].name: RNG.uniform(size=shape).astype(np.float32)}
    else:
        with np.load(next((ROOT / "tests" / "models" / name).glob("case*.npz"))) as held:
            given = {key.removeprefix("in_"): held[key] for key in held.files if key.startswith("in_")}
    made, found = both(model, given)
    had, has = kinds(made), kinds(found)
    apart = name in ("unet", "vit", "gpt")  # where norms read the sums
    for kind, wanted in (("Conv", "ConvInteger" if apart else "QLinearConv"), ("Gemm", "QGemm")):
        assert kind not in has
        assert (wanted in has) == (kind in had) or (apart and kind == "Gemm")
    assert "MatMulInteger" in has or name in ("unet", "digits", "wake_word", "residual_cnn", "mobile_cnn")
    wanted_of, theirs = outputs(made, given), outputs(found, given)
    ours = codegen.load(found, "numpy")(*[given[i.name] for i in found.graph.input if i.name in given])
    ours = ours if isinstance(ours, tuple) else (ours,)
    for (key, x), y in zip(wanted_of.items(), ours, strict=True):
        if x.dtype.kind == "f":
            same(x, theirs[key])
            same(theirs[key], np.asarray(y))


CASES = {
    "a product without a bias": (
        "(float[3, 8] x) => (float[3, 6] y) { y = MatMul(x, w) }", {"QLinearMatMul"}, {"MatMul"}),
    "a bias in float": (
        "(float[3, 8] x) => (float[3, 6] y) { h = MatMul(x, w) y = Add(h, b) }", {"MatMulInteger"}, {"MatMul"}),
    "two activations": (
        "(float[3, 8] x, float[8, 2] z) => (float[3, 2] y) { y = MatMul(x, z) }", {"QLinearMatMul"}, {"MatMul"}),
    "a relu that its integers cut": (
        "(float[3, 8] x) => (float[3, 6] y) { h = MatMul(x, w) y = Relu(h) }", {"QLinearMatMul"}, {"Relu"}),
    "a clip that its integers cut": (
        "(float[3, 8] x) => (float[3, 6] y) { h = MatMul(x, w) y = Clip(h, low) }", {"QLinearMatMul"}, {"Clip"}),
    "a clip by an array of one number": (
        "(float[3, 8] x) => (float[3, 6] y) { h = MatMul(x, w) y = Clip(h, floor) }", {"QLinearMatMul"}, {"Clip"}),
    "sums and products": (
        "(float[3, 8] x, float[3, 8] z) => (float[3, 8] y) { s = Add(x, z) y = Mul(s, z) }",
        {"QLinearAdd", "QLinearMul"}, {"Add", "Mul"}),
    "what is joined and moved": (
        "(float[1, 2, 4, 4] x, float[1, 3, 4, 4] z) => (float[1, 5, 2, 2] y)"
        " { c = Concat<axis = 1>(x, z) y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(c) }",
        {"QLinearConcat", "MaxPool"}, {"Concat"}),
    "functions of one number": (
        "(float[1, 2, 4, 4] x) => (float[1, 2, 1, 1] y)"
        " { s = Sigmoid(x) l = LeakyRelu<alpha = 0.2>(s) p = AveragePool<kernel_shape = [2, 2]>(l)"
        " y = GlobalAveragePool(p) }",
        {"QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool"}, {"Sigmoid"}),
    "a product that adds what it reads": (
        "(float[6, 8] x) => (float[6, 6] y) { h = MatMul(x, w) y = Gemm(h, v, h) }", {"QLinearMatMul"}, set()),
    "a product of a constant of three axes": (
        "(float[2, 3, 8] x) => (float[2, 3, 6] y) { y = MatMul(x, u) }", {"MatMul"}, {"QLinearMatMul"}),
    "means of distant elements": (
        "(float[1, 2, 5, 5] x) => (float[1, 2, 3, 3] y)"
        " { y = AveragePool<kernel_shape = [2, 2], dilations = [2, 2]>(x) }",
        {"AveragePool"}, {"QLinearAveragePool"}),
    "means that count a border": (
        "(float[1, 2, 4, 4] x) => (float[1, 2, 3, 3] y) { y = AveragePool<kernel_shape = [3, 3], strides = [2, 2],"
        " pads = [1, 1, 1, 1], ceil_mode = 1, count_include_pad = 1>(x) }",
        {"AveragePool"}, {"QLinearAveragePool"}),
    "a result that is read twice": (
        "(float[3, 8] x) => (float[3, 6] y, float[3, 6] z) { y = MatMul(x, w) z = Tanh(y) }", {"QLinearMatMul"}, set()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_operators_on_integers_stand_in_the_place_of_those_on_floats(case: str) -> None:
    text, wanted, gone = CASES[case]
    model = parse("net " + text)
    shapes: dict[str, tuple[int, ...]] = {"w": (8, 6), "v": (6, 6), "u": (2, 8, 6), "b": (6,)}
    values = {name: RNG.normal(size=shape) for name, shape in shapes.items()}
    for name, x in (*values.items(), ("low", np.array(0.0)), ("floor", np.array([0.0]))):
        if f" {name}" in text.partition("{")[2]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(x.astype(np.float32), name))
    given = {
        i.name: RNG.normal(size=[d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }
    made, found = both(model, given)
    assert wanted <= kinds(found)
    assert gone.isdisjoint(kinds(found))
    theirs = outputs(found, given)
    for key, x in outputs(made, given).items():
        same(x, theirs[key])
