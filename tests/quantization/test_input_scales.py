"""AWQ in ONNX files: scaled inputs leave the float model as it is, and onnxruntime computes the integers of the file as
the module does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import codegen
from emberlet.codegen.quantized import input_scales, preparing
from onnx import numpy_helper
from support.onnx_models import parse

onnxruntime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(23)


def with_weights(text: str, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """A model in the textual format with weights drawn at random."""
    model = parse(text)
    for name, shape in shapes.items():
        drawn = RNG.normal(size=shape) / (shape[0] ** 0.5 if len(shape) > 1 else 1)
        model.graph.initializer.append(numpy_helper.from_array(drawn.astype(np.float32), name))
    return preparing.prepared(model)


def theirs(model: onnx.ModelProto, x: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x}))


# The nodes before, the tensor that the product reads, whether another node has to scale it.
BEFORE = {
    "a norm": ("h = LayerNormalization(x, g, b)", "h", False),
    "a norm without a bias": ("h = LayerNormalization(x, g)", "h", False),
    "a product": ("h = MatMul(x, v)", "h", False),
    "a product, a bias and a relu": ("p = MatMul(x, v) q = Add(b, p) h = Relu(q)", "h", False),
    "a transposed product": ("p = Gemm<transB = 1, alpha = 0.5>(x, v, b) h = LeakyRelu(p)", "h", False),
    "a factor": ("a = Abs(x) s = Sqrt(a) h = Mul(s, g)", "h", False),
    "a gate": ("s = MatMul(x, u) t = Sigmoid(s) p = MatMul(x, v) h = Mul(t, p)", "h", False),
    "the model's input": ("", "x", True),
    "a curve": ("p = MatMul(x, v) h = Tanh(p)", "h", True),
    "what something else reads": ("h = MatMul(x, v) o = Neg(h)", "h", True),
    "a norm whose weight another has": ("q = LayerNormalization(x, g) h = LayerNormalization(q, g)", "h", True),
    "a gate of one product": ("p = MatMul(x, v) h = Mul(p, p)", "h", True),
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    "reading", ["MatMul(h, w)", "Gemm<transB = 1>(h, w, c)", "com.microsoft.FusedMatMul<transB = 1, alpha = 2.0>(h, w)"]
)
def test_scaled_inputs_leave_what_a_model_computes(before: str, reading: str) -> None:
    nodes, h, mul = BEFORE[before]
    turned = "transB" in reading
    more = ", float[3, 8] o" if "o = " in nodes else ""
    text = f"net (float[3, 8] x) => (float[3, 5] y{more}) {{ {nodes} y = {reading.replace('(h', '(' + h)} }}"
    shapes = {"w": (5, 8) if turned else (8, 5), "v": (8, 8), "u": (8, 8), "g": (8,), "b": (8,), "c": (5,)}
    model = with_weights(text, **{n: shape for n, shape in shapes.items() if f"{n})" in text or f"{n}," in text})
    factor = RNG.exponential(size=8).astype(np.float32) + 0.05
    found = input_scales.scaled(model, {"w": factor})
    x = RNG.normal(size=(3, 8)).astype(np.float32)
    for one, other in zip(theirs(found, x), theirs(model, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert len(found.graph.node) - len(model.graph.node) == mul
    was, held = (numpy_helper.to_array(next(t for t in m.graph.initializer if t.name == "w")) for m in (model, found))
    np.testing.assert_allclose(held * (factor if turned else factor[:, None]), was, rtol=1e-5)


def test_products_of_one_input_are_scaled_together_and_others_apart() -> None:
    text = """net (float[3, 8] x) => (float[3, 5] y, float[3, 5] z, float[3, 5] p, float[3, 5] q, float[5, 8] r)
    { y = MatMul(x, w) z = MatMul(x, v) p = MatMul(x, u) t = Transpose(k) q = MatMul(x, t) r = Neg(k) }"""
    model = with_weights(text, w=(8, 5), v=(8, 5), u=(8, 5), k=(5, 8))
    one, other = (RNG.exponential(size=8).astype(np.float32) + 0.05 for _ in range(2))
    found = input_scales.scaled(model, {"w": one, "v": one, "u": other, "k": one})  # k is read by another node, too
    assert [n.op_type for n in found.graph.node].count("Mul") == 2
    x = RNG.normal(size=(3, 8)).astype(np.float32)
    for has, wanted in zip(theirs(found, x), theirs(model, x), strict=True):
        np.testing.assert_allclose(has, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "before",
    [
        "h = MatMul(x, v)",
        "r = MatMul(u, x) h = MatMul(r, k)",
        "h = RandomUniform<low = 2.0, high = 2.0, shape = [1, 2, 8]>()",
    ],
    ids=["a stack of matrices", "a vector", "no input"],
)
def test_a_mul_scales_what_no_matrix_makes(before: str) -> None:
    model = with_weights(
        f"net (float[8, 8] x) => (float[a, b, 5] y) {{ {before} y = MatMul(h, w) }}",
        w=(8, 5), v=(2, 8, 8), u=(1, 8, 8, 8), k=(8,),
    )  # fmt: skip
    found = input_scales.scaled(model, {"w": RNG.exponential(size=8).astype(np.float32) + 0.05})
    assert len(found.graph.node) == len(model.graph.node) + 1
    x = RNG.normal(size=(8, 8)).astype(np.float32)
    np.testing.assert_allclose(theirs(found, x)[0], theirs(model, x)[0], rtol=1e-4, atol=1e-5)


BLOCK = """net (float[n, 32] x) => (float[n, 32] y)
{ h = LayerNormalization(x, g, b) a = MatMul(h, w) c = MatMul(h, v) s = Sigmoid(a) p = Mul(s, c) q = MatMul(p, u)
  y = Add(x, q) }"""


@pytest.mark.parametrize(
    "named",
    [
        {"activations": "dynamic"},
        {"activations": "static"},
        {"activations": "static", "onnx": "qoperator"},
        {"activations": "static", "correct_bias": True, "keep_worst": 1},
    ],
    ids=str,
)
def test_the_onnx_file_has_the_inputs_that_awq_scaled(named: dict[str, Any], tmp_path: Path) -> None:
    """A norm gives two channels that are far larger than the others, as in trained language models."""
    model = with_weights(BLOCK, w=(32, 64), v=(32, 64), u=(64, 32), b=(32,))
    gain = np.ones(32, np.float32)
    gain[[3, 17]] = 60
    model.graph.initializer.append(numpy_helper.from_array(gain, "g"))
    onnx.save(model, tmp_path / "net.onnx")
    x, held = RNG.normal(size=(2, 200, 32)).astype(np.float32)
    wanted, off = theirs(model, held)[0], []
    for weights in ("rtn", "awq"):
        out = tmp_path / weights
        made, _ = codegen.quantize(tmp_path / "net.onnx", x, weights=weights, out=out, **named)
        found = onnxruntime.InferenceSession(out / "net.onnx").run(None, {"x": held})[0]
        np.testing.assert_allclose(np.asarray(made(held)), found, atol=1e-2 * np.abs(found).max())
        assert np.mean(np.isclose(np.asarray(made(held)), found, rtol=1e-3, atol=1e-3 * np.abs(found).max())) > 0.9
        off.append(np.mean(np.square(found - wanted)))
    assert off[1] < 0.9 * off[0]
