"""ONNX models with activations in 8 bits: onnxruntime computes them as emberlet does, near the float model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import codegen
from emberlet.codegen.quantized import activations, preparing
from emberlet.errors import UnsupportedError
from emberlet.host.quantization.calibration import Observed, range_of
from support.joined_branches import joined_branches
from support.onnx_models import parse

onnxruntime = pytest.importorskip("onnxruntime")
MODELS = Path(__file__).resolve().parents[1] / "models"


def outputs(model: onnx.ModelProto, given: dict[str, Any]) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, given), strict=True))


def ranges(model: onnx.ModelProto, given: dict[str, Any]) -> dict[str, Any]:
    names = activations.tensors(model)
    values = {**given, **outputs(activations.observed(model, names), given)}
    found = {}
    for name in names:
        seen = Observed()
        seen.add(values[name])
        found[name] = range_of(seen, "minmax")
    return found


def close(a: Any, b: Any, share: float) -> None:
    """Within a share of the range."""
    assert np.abs(a - b).max() <= share * (np.ptp(a) or 1.0)


@pytest.mark.parametrize(
    ("name", "share"), [("residual_cnn", 0.1), ("gpt", 0.1), ("audio_frontend", 0.05), ("transformer_encoder", 0.1)]
)
def test_a_network_in_8_bits_is_onnxruntimes_and_near_the_float_one(name: str, share: float) -> None:
    model = preparing.prepared(onnx.load(MODELS / name / "model.onnx"))
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        given = {key.removeprefix("in_"): held[key] for key in held.files if key.startswith("in_")}
    spans = ranges(model, given)
    assert len(spans) >= 5
    small = activations.quantized(model, spans)
    theirs, wanted = outputs(small, given), outputs(model, given)
    for key, value in wanted.items():
        if value.dtype.kind == "f":
            close(value, theirs[key], share)
    found = codegen.load(small, "numpy")(*[given[i.name] for i in model.graph.input if i.name in given])
    found = found if isinstance(found, tuple) else (found,)
    for key, x in zip(wanted, found, strict=True):
        if wanted[key].dtype.kind == "f":
            close(theirs[key], np.asarray(x), share / 2)


MATMUL = """
net (float[n, 3] x) => (float[n, 2] y)
<float[2, 3] w = {1, 2, 3, -4, 5, 6}, float[2] b = {0.5, -0.5}>
{ t = Transpose <perm = [1, 0]> (w)
  h = MatMul(x, t)
  s = Add(h, b)
  y = Relu(s) }
"""


def test_a_transposed_weight_and_an_added_bias_belong_to_the_product() -> None:
    model = preparing.prepared(parse(MATMUL))
    assert activations.tensors(model) == ["x", "y"]
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    small = activations.quantized(model, ranges(model, {"x": x}))
    kinds = [n.op_type for n in small.graph.node]
    assert kinds.count("QuantizeLinear") == 2
    assert {t.name: t.data_type for t in small.graph.initializer}["w_quantized"] == onnx.TensorProto.INT8
    close(outputs(model, {"x": x})["y"], outputs(small, {"x": x})["y"], 0.02)
    assert np.array_equal(np.asarray(codegen.load(small, "numpy")(x)), outputs(small, {"x": x})["y"])


def test_weights_and_biases_of_several_products_serve_all_under_names_that_are_free() -> None:
    text = """net (float[4, 8] x) => (float[4, 8] y, float[4, 8] z)
    <float[8] b = {1, 2, 3, -4, 5, -6, 0.7, 8}, float[1] a_scale = {0.5}>
    { a = Mul(x, a_scale)
      c = MatMul(a, w)
      d = Add(c, b)
      e = Gemm<transB = 1>(d, w, b)
      y = MatMul(e, w_0)
      t = Transpose<perm = [1, 0]>(w)
      z = Gemm<transB = 1>(e, t, b) }"""
    model = parse(text)
    draw = np.random.default_rng(6)
    for name in ("w", "w_0"):
        array = draw.normal(size=(8, 8)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    given = {"x": draw.normal(size=(4, 8)).astype(np.float32)}
    model = preparing.prepared(model)
    small = activations.quantized(model, ranges(model, given))
    names = [t.name for t in small.graph.initializer]
    assert len(names) == len(set(names))
    wanted, found = outputs(model, given), outputs(small, given)
    for name in ("y", "z"):
        close(wanted[name], found[name], 0.05)


def test_a_batch_norm_is_folded_into_its_convolution() -> None:
    text = """net (float[1, 1, 5, 5] x) => (float[1, 2, 3, 3] y)
    <float[2] g = {2, 0.5}, float[2] b = {1, -1}, float[2] m = {0.1, 0.2}, float[2] v = {1, 4}>
    { c = Conv(x, w)
      y = BatchNormalization(c, g, b, m, v) }"""
    model = parse(text)
    w = np.random.default_rng(1).normal(size=(2, 1, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    x = {"x": np.random.default_rng(2).normal(size=(1, 1, 5, 5)).astype(np.float32)}
    folded = preparing.prepared(model)
    assert [n.op_type for n in folded.graph.node] == ["Conv"]
    np.testing.assert_allclose(outputs(folded, x)["y"], outputs(model, x)["y"], rtol=1e-5, atol=1e-5)


def test_what_logarithms_are_taken_of_stays_in_float() -> None:
    text = """net (float[n, 3] x) => (float[n, 2] y)
    <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[1] e = {0.001}>
    { h = MatMul(x, w)
      s = Add(h, e)
      y = Log(s) }"""
    assert activations.tensors(preparing.prepared(parse(text))) == ["x"]


NORMED = """net (float[n, 8] x) => (float[n, 8] y)
{ h = MatMul(x, w)
  r = Relu(h)
  k = MatMul(r, v)
  s = Add(k, r)
  m = MatMul(s, u)
  a = Add(m, x)
  NORM
  y = MatMul(o, z) }"""


@pytest.mark.parametrize(
    ("norm", "wanted"),
    [
        ("o = LayerNormalization(a, g)", ["x", "r", "k", "s", "o"]),
        ("q = Softmax(m)\n o = Mul(q, a)", ["x", "r", "k", "s", "o"]),
        ("e = Erf(a)\n f = Add(e, one)\n o = Mul(f, a)", ["x", "r", "k", "s", "o"]),
        ("o = Tanh(a)", ["x", "r", "k", "s", "m", "o", "y"]),
    ],
)
def test_integers_pass_between_products_and_norms_read_floats(norm: str, wanted: list[str]) -> None:
    """Where products read what a norm computes, only they, and sums of what they give, take integers."""
    model = parse(NORMED.replace("NORM", norm))
    draw = np.random.default_rng(9)
    for name in ("w", "v", "u", "z"):
        array = draw.normal(size=(8, 8)).astype(np.float32) / 3
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for name, shape in (("g", (8,)), ("one", (1,))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), name))
    given = {"x": draw.normal(size=(64, 8)).astype(np.float32)}
    model = preparing.prepared(model)
    small = activations.quantized(model, ranges(model, given))
    rounded = [n.input[0].removesuffix("_float") for n in small.graph.node if n.op_type == "QuantizeLinear"]
    assert sorted(rounded) == sorted(wanted)
    close(outputs(model, given)["y"], outputs(small, given)["y"], 0.05)


def test_a_transposed_convolution_between_norms_has_an_input_in_float() -> None:
    """No kernel multiplies integers there."""
    model = parse("""net (float[1, 4, 6, 6] x) => (float[1, 4, 12, 12] y)
    { n = InstanceNormalization(x, g, b)
      y = ConvTranspose<strides = [2, 2]>(n, w, b) }""")
    draw = np.random.default_rng(10)
    for name, array in (("w", draw.normal(size=(4, 4, 2, 2))), ("g", np.ones(4)), ("b", np.zeros(4))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    given = {"x": draw.normal(size=(1, 4, 6, 6)).astype(np.float32)}
    model = preparing.prepared(model)
    small = activations.quantized(model, ranges(model, given))
    assert "QuantizeLinear" not in {n.op_type for n in small.graph.node}
    assert onnx.TensorProto.INT8 in {t.data_type for t in small.graph.initializer}
    close(outputs(model, given)["y"], outputs(small, given)["y"], 0.02)


@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
@pytest.mark.parametrize("mask", [-1e4, -np.inf, np.finfo(np.float32).min])
def test_classes_that_a_bias_masks_leave_the_steps_to_the_others(product: str, mask: float) -> None:
    ends = "l = Gemm(h, w, b)" if product == "Gemm" else "s = MatMul(h, w)\n l = Add(s, b)"
    text = f"""net (float[n, 8] x) => (float[n, 5] y)
    {{ h = MatMul(x, v)
      {ends}
      y = Softmax<axis = -1>(l) }}"""
    draw = np.random.default_rng(8)
    bias = draw.normal(size=5)
    bias[2:4] = mask
    model = parse(text)
    for name, array in (("v", draw.normal(size=(8, 16))), ("w", draw.normal(size=(16, 5)) / 4), ("b", bias)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    given = {"x": draw.normal(size=(64, 8)).astype(np.float32)}
    model = preparing.prepared(model)
    assert activations.tensors(model) == ["x", "h"]
    found, want = outputs(activations.quantized(model, ranges(model, given)), given)["y"], outputs(model, given)["y"]
    close(want, found, 0.05)
    assert (found.argmax(1) == want.argmax(1)).mean() > 0.95


@pytest.mark.parametrize("operator", sorted(preparing.QUANTIZED))
def test_a_quantized_model_is_refused(operator: str) -> None:
    model = parse("net (float[4, 1, 2] x) => (float[4, 1, 2] y) { y = Relu(x) }")
    model.graph.node[0].op_type = operator
    with pytest.raises(UnsupportedError, match="quantized already"):
        preparing.prepared(model)


def test_what_is_computed_in_float16_stays() -> None:
    model = parse("""net (float16[4, 2] x) => (float16[4, 2] y) <float16[2, 2] w = {1, 2, 3, 4}, float16[2] b = {1, 2}>
    { t = MatMul(x, w)
      r = Relu(t)
      y = Add(r, b) }""")
    assert not activations.tensors(preparing.prepared(model))


def test_a_batch_norm_stays_where_the_convolution_is_an_output_too() -> None:
    text = """net (float[1, 1, 5, 5] x) => (float[1, 2, 3, 3] c, float[1, 2, 3, 3] y)
    <float[2] g = {2, 0.5}, float[2] b = {1, -1}, float[2] m = {0.1, 0.2}, float[2] v = {1, 4}>
    { c = Conv(x, w)
      y = BatchNormalization(c, g, b, m, v) }"""
    model = parse(text)
    w = np.random.default_rng(1).normal(size=(2, 1, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    x = {"x": np.random.default_rng(2).normal(size=(1, 1, 5, 5)).astype(np.float32)}
    found, wanted = outputs(preparing.prepared(model), x), outputs(model, x)
    for name in ("c", "y"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)


BRANCHES = """
net (bool p, float[n, 3] x) => (float[n, 3] y)
<float[3, 3] w = {1, 2, 3, -4, 5, 6, 7, 8, -9}, float[3] low = {1, 2, 3}, float[3] high = {3, 4, 5}>
{ h = MatMul(x, w)
  y = If (p) <then_branch = yes () => (float[n, 3] a) { r = Relu(h)
                                                        a = Add(r, low) },
              else_branch = no () => (float[n, 3] b) { b = Add(h, high) }> }
"""


@pytest.mark.parametrize("p", [True, False])
def test_what_only_branches_read_stays(p: bool) -> None:
    model = preparing.prepared(parse(BRANCHES))
    x = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)
    given = {"p": np.array(p), "x": x}
    small = activations.quantized(model, ranges(model, given))
    close(outputs(model, given)["y"], outputs(small, given)["y"], 0.02)


def test_weights_of_older_files_do_not_become_inputs() -> None:
    model = parse(MATMUL)
    model.ir_version = 3
    for t in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
    x = np.random.default_rng(4).normal(size=(50, 3)).astype(np.float32)
    older = preparing.prepared(model)
    small = activations.quantized(older, ranges(older, {"x": x}))
    assert [i.name for i in small.graph.input] == ["x"]
    close(outputs(model, {"x": x})["y"], outputs(small, {"x": x})["y"], 0.02)


def test_activations_of_float16_have_no_grid_where_nothing_declares_their_dtype(tmp_path: Path) -> None:
    """onnxruntime loads no file that quantizes them by a scale of float32."""
    made = parse("""net (float16[n, 1, 5, 5] x, float[n, 8] z) => (float16[n, 8] y, float[n, 8] v)
    { h = Conv(x, w)
      r = PRelu(h, slope)
      s = GlobalAveragePool(r)
      y = Flatten(s)
      v = MatMul(z, u) }""")
    draw = np.random.default_rng(4)
    held = {"w": draw.normal(size=(8, 1, 3, 3)).astype(np.float16), "slope": np.full((8, 1, 1), 0.25, np.float16),
            "u": draw.normal(size=(8, 8)).astype(np.float32)}  # fmt: skip
    made.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in held.items())
    onnx.save(made, tmp_path / "net.onnx")
    given = {"x": draw.normal(size=(40, 1, 5, 5)).astype(np.float16), "z": draw.normal(size=(40, 8)).astype(np.float32)}
    codegen.quantize(tmp_path / "net.onnx", given, activations="static", out=tmp_path / "small")
    found = onnx.load(tmp_path / "small" / "net.onnx")
    onnx.checker.check_model(found, full_check=True)
    assert any(n.op_type == "QuantizeLinear" for n in found.graph.node)
    for a, b in zip(outputs(found, given).values(), outputs(made, given).values(), strict=True):
        np.testing.assert_allclose(a, b, atol=0.05 * np.ptp(b))


@pytest.mark.parametrize("activations", ["static", "dynamic"])
def test_outputs_without_a_shape_are_taken(activations: str, tmp_path: Path) -> None:
    """onnxruntime reads such files, ONNX's checker does not."""
    made = parse("net (float[n, 6] x) => (float[n, 6] y) { h = MatMul(x, w) y = Relu(h) }")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    w = np.random.default_rng(1).normal(size=(6, 6)).astype(np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    onnx.save(made, tmp_path / "net.onnx")
    given = np.random.default_rng(2).normal(size=(40, 6)).astype(np.float32)
    codegen.quantize(tmp_path / "net.onnx", given, activations=activations, out=tmp_path / "small")
    found = outputs(onnx.load(tmp_path / "small" / "net.onnx"), {"x": given})["y"]
    np.testing.assert_allclose(found, np.maximum(given @ w, 0), atol=0.05 * np.ptp(found))


@pytest.mark.parametrize(("more", "grids"), [("", 3), (", float[1, 4, 4, 4] left", 4), (", float[1, 4, 8, 8] b", 4)])
def test_what_only_a_concatenation_reads_is_rounded_to_the_grid_of_the_whole(more: str, grids: int) -> None:
    model = preparing.prepared(joined_branches(more))
    draw = np.random.default_rng(1)
    given = {"x": draw.normal(size=(1, 3, 8, 8)).astype(np.float32)}
    small = activations.quantized(model, ranges(model, given))
    values = {t.name: onnx.numpy_helper.to_array(t) for t in small.graph.initializer}
    quantizing = [n for n in small.graph.node if n.op_type == "QuantizeLinear"]
    assert len({(float(values[n.input[1]]), int(values[n.input[2]])) for n in quantizing}) == grids
    wanted = outputs(small, given)
    found = codegen.load(small, "numpy")(given["x"])
    for name, x in zip(wanted, found if isinstance(found, tuple) else (found,), strict=True):
        assert np.array_equal(np.asarray(x), wanted[name])
        close(outputs(model, given)[name], wanted[name], 0.03)
