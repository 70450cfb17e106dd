"""Models whose products quantize their inputs by the range of each call: onnxruntime computes them as emberlet does,
near the float model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
from emberlet import codegen, functional, nn
from emberlet.codegen.quantized import dynamic, preparing
from emberlet.errors import UnsupportedError
from emberlet.host.numpy_backend.backend import NumpyBackend
from emberlet.host.numpy_backend.compile import compile
from emberlet.host.numpy_backend.integers import find_levels
from support.onnx_models import parse

onnxruntime = pytest.importorskip("onnxruntime")
MODELS = Path(__file__).resolve().parents[1] / "models"
RNG = np.random.default_rng(17)
WAYS = ("numpy", "python", "numpy compiled", "native compiled", "wasm compiled")


def with_weights(text: str, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """A model in the textual format with weights drawn at random."""
    model = parse(text)
    for name, shape in shapes.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(RNG.normal(size=shape).astype(np.float32), name))
    return preparing.prepared(model)


def theirs(model: onnx.ModelProto, given: dict[str, Any], optimized: bool = False) -> list[Any]:
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


def ours(model: onnx.ModelProto, given: dict[str, Any], way: str) -> list[Any]:
    backend, _, compiled = way.partition(" ")
    made = codegen.load(model, backend)
    run = made.compile(backend=backend) if compiled else made
    found = run(*[emberlet.asarray(given[i.name], backend=backend) for i in model.graph.input])
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def kinds(graph: onnx.GraphProto) -> list[str]:
    """The operators of a graph, its branches and its bodies."""
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for a in node.attribute:
            found += kinds(a.g) if a.HasField("g") else []
    return found


PRODUCTS = """net (float[3, 8] x) => (float[3, 5] y, float[3, 6] z, float[3, 4] p)
{ h = MatMul(x, w)
  y = Add(h, b)
  z = Gemm<transB = 1, alpha = 0.5>(x, v, c)
  t = Transpose<perm = [1, 0]>(u)
  p = MatMul(x, t) }"""


@pytest.mark.parametrize("way", WAYS)
def test_products_give_onnxruntimes_numbers(way: str) -> None:
    model = with_weights(PRODUCTS, w=(8, 5), b=(5,), v=(6, 8), c=(6,), u=(4, 8))
    small = dynamic.quantized(model)
    assert kinds(small.graph).count("DynamicQuantizeLinear") == 1  # of what three read
    assert kinds(small.graph).count("MatMulInteger") == 3
    for scale in (1.0, 1e-3, 1e4):
        given = {"x": (RNG.normal(size=(3, 8)) * scale).astype(np.float32)}
        wanted = theirs(model, given)
        for found, same, near in zip(ours(small, given, way), theirs(small, given), wanted, strict=True):
            np.testing.assert_allclose(found, same, rtol=2e-6, atol=2e-6 * scale)
            assert np.abs(found - near).max() < 0.02 * np.ptp(near)


CONVOLUTIONS = [
    ((2, 4, 9), (6, 4, 3), "pads = [1, 1]"),
    ((2, 4, 9, 8), (6, 2, 3, 3), "group = 2, strides = [2, 1]"),
    ((2, 4, 9, 8), (4, 1, 3, 3), 'group = 4, auto_pad = "SAME_UPPER"'),
    ((1, 2, 5, 5, 5), (3, 2, 3, 3, 3), "pads = [1, 1, 1, 1, 1, 1], dilations = [1, 2, 1]"),
]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("shape", "weight", "options"), CONVOLUTIONS)
def test_convolutions_give_onnxruntimes_numbers(
    shape: tuple[int, ...], weight: tuple[int, ...], options: str, biased: bool
) -> None:
    text = f"net (float[{', '.join(map(str, shape))}] x) => (float y) {{ y = Conv<{options}>(x, w{', b' * biased}) }}"
    model = with_weights(text, w=weight, **({"b": weight[:1]} if biased else {}))
    small, given = dynamic.quantized(model), {"x": RNG.normal(size=shape).astype(np.float32)}
    (near,), (same,) = theirs(model, given), theirs(small, given)
    assert np.abs(same - near).max() < 0.02 * np.ptp(near)
    for way in WAYS:
        np.testing.assert_allclose(ours(small, given, way)[0], same, rtol=2e-6, atol=2e-6, err_msg=way)


@pytest.mark.parametrize("name", ["gpt", "transformer_encoder", "residual_cnn"])
def test_a_network_is_onnxruntimes_and_near_the_float_one(name: str) -> None:
    model = preparing.prepared(onnx.load(MODELS / name / "model.onnx"))
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        given = {key.removeprefix("in_"): held[key] for key in held.files if key.startswith("in_")}
    small = dynamic.quantized(model)
    assert "DynamicQuantizeLinear" in kinds(small.graph)
    wanted, same = theirs(model, given), theirs(small, given, optimized=True)
    for way in ("numpy compiled", "native compiled"):
        for found, theirs_, near in zip(ours(small, given, way), same, wanted, strict=True):
            if near.dtype.kind == "f":
                span = np.ptp(near) or 1.0
                assert np.abs(theirs_ - found).max() <= 0.01 * span, way  # a level of an input, where a sum differs
                assert np.abs(near - found).max() <= 0.1 * span, way


def test_weights_of_branches_are_quantized() -> None:
    text = """net (float[3, 8] x, bool c) => (float[3, 5] y)
    { y = If(c) <then_branch = a () => (float[3, 5] p) { p = MatMul(x, w) },
                 else_branch = b () => (float[3, 5] q) { q = Gemm(x, v, d) }> }"""
    model = with_weights(text, w=(8, 5), v=(8, 5), d=(5,))
    then = next(a.g for a in model.graph.node[0].attribute if a.name == "then_branch")
    held = next(t for t in model.graph.initializer if t.name == "w")
    then.node.insert(0, onnx.helper.make_node("Constant", [], ["w"], value=held))
    model.graph.initializer.remove(held)
    small = dynamic.quantized(preparing.prepared(model))
    assert kinds(small.graph).count("MatMulInteger") == 2
    assert "Constant" not in kinds(small.graph)
    for c in (True, False):
        given = {"x": RNG.normal(size=(3, 8)).astype(np.float32), "c": np.array(c)}
        (near,), (same,) = theirs(model, given), theirs(small, given)
        np.testing.assert_allclose(ours(small, given, "numpy")[0], same, rtol=2e-6, atol=2e-6)
        assert np.abs(same - near).max() < 0.02 * np.ptp(near)


def test_what_no_operator_of_integers_computes_stays_in_float() -> None:
    text = """net (float[8, 3] x, float[3, 5] s, float[3, 8, 2] b) => (float y, float z, float p, float q)
    { y = Gemm<transA = 1>(x, w)
      t = Transpose<perm = [1, 0]>(x)
      z = Gemm<beta = 0.5>(t, v, s)
      p = MatMul(b, g)
      q = MatMul(t, k) }"""
    model = with_weights(text, w=(8, 5), v=(8, 5), g=(3, 2, 5), k=(8, 4))
    small = dynamic.quantized(model)
    assert [n.output[0] for n in small.graph.node if n.op_type == "MatMulInteger"] == ["q_sums"]
    assert "MatMulInteger" not in kinds(dynamic.quantized(model, keep=["k"]).graph)


@pytest.mark.parametrize(
    ("text", "shape", "integers"),
    [
        ("(float[2, 8] x) => (float y) { y = MatMul(x, w) }", (8, 4), True),
        ("(float[2, 8] x) => (float y) { y = MatMul(x, w) }", (8, 3), False),
        ("(float[2, 8] x) => (float y) { y = Gemm<transB = 1>(x, w) }", (1, 8), False),
        ("(float[1, 8, 9] x) => (float y) { y = Conv(x, w) }", (1, 8, 1), False),
        ("(float[1, 8, 9] x) => (float y) { y = Conv(x, w) }", (2, 8, 3), True),
        ("(float[1, 8, 9] x) => (float y) { y = Conv<strides = [2]>(x, w) }", (2, 8, 3), False),
        ("(float[1, 8, 9, 9] x) => (float y) { y = Conv<group = 8>(x, w) }", (8, 1, 3, 3), True),
        ("(float[1, 8, 9, 9] x) => (float y) { y = Conv<group = 8, strides = [2, 2]>(x, w) }", (8, 1, 3, 3), False),
    ],
)
def test_what_multiplies_each_number_a_few_times_stays_in_float(
    text: str, shape: tuple[int, ...], integers: bool
) -> None:
    small = dynamic.quantized(with_weights(f"net {text}", w=shape))
    assert ("DynamicQuantizeLinear" in kinds(small.graph)) == integers


def test_a_plan_on_numpy_repeats_scales_over_a_few_short_rows() -> None:
    text = "net (float[1, 4, 9] x) => (float y) { y = Conv<pads = [1, 1]>(x, w, b) }"
    made = codegen.load(dynamic.quantized(with_weights(text, w=(40, 4, 3), b=(40,))), "numpy")
    x = emberlet.asarray(RNG.normal(size=(1, 4, 9)).astype(np.float32))
    planned = made.compile(backend="numpy")
    np.testing.assert_array_equal(np.asarray(planned(x)), np.asarray(made(x)))
    shapes = [{a.shape for a in step.args} - {()} for step in planned.plan(x).steps if step.function is np.multiply]
    assert shapes == [{(1, 9, 40)}] * 2


def test_a_plan_on_numpy_finds_the_range_of_one_tensor_once() -> None:
    model = with_weights(PRODUCTS, w=(8, 5), b=(5,), v=(6, 8), c=(6,), u=(4, 8))
    made = codegen.load(dynamic.quantized(model), "numpy")
    plan = made.compile(backend="numpy").plan(emberlet.asarray(RNG.normal(size=(3, 8)).astype(np.float32)))
    assert [step.function for step in plan.steps].count(find_levels) == 1


def test_dynamic_convolutions_keep_their_channels_last_between_them() -> None:
    text = """net (float[1, 4, 9] x) => (float y) { a = Conv<pads = [1, 1]>(x, v)
      b = Relu(a)
      c = Conv<pads = [1, 1]>(b, w)
      d = Relu(c)
      y = Conv(d, u) }"""
    made = codegen.load(dynamic.quantized(with_weights(text, v=(8, 4, 3), w=(6, 8, 3), u=(5, 6, 1))), "numpy")
    x = emberlet.asarray(RNG.normal(size=(1, 4, 9)).astype(np.float32))
    planned = made.compile(backend="numpy")
    np.testing.assert_allclose(np.asarray(planned(x)), np.asarray(made(x)), rtol=1e-5, atol=1e-5)
    found = [step for step in planned.plan(x).steps if step.function is find_levels]
    assert [step.args[1].shape for step in found] == [(1, 4, 9), (1, 9, 8), (1, 9, 6)]


def test_levels_by_the_range_are_the_definitions_also_of_infinities_and_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [1, 1e-30, 1e30, 1e-43, 0]
    given = [RNG.normal(size=shape).astype(np.float32) * np.float32(k) for shape in ((), (7,), (3, 5)) for k in sizes]
    ends = ([np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, np.inf, 0], [-1, -2], [3, 2], [-0.0, 0.0], [3e38, -3e38])
    tensors = [emberlet.asarray(x, device="numpy") for x in [*given, *(np.array(x, np.float32) for x in ends)]]
    found = [functional.dynamic_quantize_linear(x) for x in tensors]
    planned = [compile(functional.dynamic_quantize_linear, x)(x) for x in tensors]
    monkeypatch.setattr(NumpyBackend, "range_levels", lambda backend, x: None)
    for x, *ways in zip(tensors, found, planned, strict=True):
        for wanted, *parts in zip(functional.dynamic_quantize_linear(x), *ways, strict=True):
            assert {(part.dtype, part.data.tobytes()) for part in parts} == {(wanted.dtype, wanted.data.tobytes())}, x


def by_definition(x: Any, weight: Any, bias: Any) -> Any:
    """x @ weight + bias with x in uint8 by its range with 0, as DynamicQuantizeLinear says, and weight in int8."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    levels = np.clip(np.rint(x / scale) + zero, 0, 255) - zero
    steps = np.abs(weight).max(0) / 127
    return levels @ np.rint(weight / steps) * scale * steps + bias


def test_layers_of_a_module_quantize_their_inputs() -> None:
    model = nn.Sequential(nn.Linear(24, 16), nn.Relu(), nn.Linear(16, 5))
    parts = [{key: np.asarray(p.val()) for key, p in model[n].named_params()} for n in (0, 2)]
    assert model.quantize_weights(activations="dynamic", keep=["2"]) == ["0"]
    x = RNG.normal(size=(9, 24)).astype(np.float32)
    hidden = np.maximum(by_definition(x, parts[0]["weight"], parts[0]["bias"]), 0)
    want = hidden @ parts[1]["weight"] + parts[1]["bias"]
    for way in ("numpy", "native"):
        made = model.fork(way)
        for run in (made, made.compile(backend=way)):
            np.testing.assert_allclose(np.asarray(run(emberlet.asarray(x, backend=way))), want, rtol=1e-4, atol=1e-4)
    assert nn.Lstm(6, 4).quantize_weights(activations="dynamic")  # whose gates stay as they are
    lstm = nn.Lstm(6, 4)
    lstm.quantize_weights(activations="dynamic")
    assert np.isfinite(np.asarray(lstm(emberlet.asarray(np.ones((1, 3, 6), np.float32)))[0])).all()


@pytest.mark.parametrize(
    "options",
    [{"mode": "affine"}, {"level": 4}, {"fake": True}, {"scale_dtype": "float16"}, {"bits": 4, "value_dtype": "nf4"}],
)  # fmt: skip
def test_weights_that_integers_are_not_multiplied_with_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="leave out activations"):
        nn.Linear(8, 4).quantize_weights(activations="dynamic", **options)


def test_a_matrix_that_is_read_in_two_forms_has_integers_of_both() -> None:
    model = with_weights(
        "net (float[3, 8] x) => (float[3, 8] y, float[3, 8] z) { y = MatMul(x, w) z = Gemm<transB = 1>(x, w) }"
    )
    signs = np.sign(RNG.normal(size=(8, 8))).astype(np.float32)  # every row and column has the same scale
    model.graph.initializer.append(onnx.numpy_helper.from_array(signs, "w"))
    x = RNG.normal(size=(3, 8)).astype(np.float32)
    found = theirs(dynamic.quantized(model), {"x": x})
    for got, want in zip(found, (x @ signs, x @ signs.T), strict=True):
        np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max())


def test_a_name_of_a_body_hides_a_constant_around_it() -> None:
    body = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Identity", ["more"], ["go"]),
            onnx.helper.make_node("MatMul", ["x", "v"], ["y"]),
            onnx.helper.make_node("Add", ["v", "v"], ["v_next"]),
        ],
        "body",
        [
            onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            onnx.helper.make_tensor_value_info("more", onnx.TensorProto.BOOL, []),
            onnx.helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [8, 8]),
        ],
        [
            onnx.helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            onnx.helper.make_tensor_value_info("v_next", onnx.TensorProto.FLOAT, [8, 8]),
            onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 8]),
        ],
    )
    model = with_weights(
        "net (float[3, 8] x) => (float[2, 3, 8] y) { h = MatMul(x, v) y = Unsqueeze(h, h) }", v=(8, 8), s=(8, 8)
    )
    del model.graph.node[:]
    ports = [("n", np.array(2)), ("yes", np.array(True))]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in ports)
    model.graph.node.append(onnx.helper.make_node("Loop", ["n", "yes", "s"], ["last", "y"], body=body))
    model.graph.node.append(onnx.helper.make_node("MatMul", ["x", "v"], ["other"]))
    x = RNG.normal(size=(3, 8)).astype(np.float32)
    (want,), (got,) = theirs(model, {"x": x}), theirs(dynamic.quantized(model), {"x": x})
    np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max())
