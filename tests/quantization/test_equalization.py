"""Cross-layer equalization: onnxruntime gives the same for the model, whose weights use their range better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen.quantized import preparing
from emberlet.codegen.quantized.equalization import equalized, pairs
from onnx import numpy_helper
from support.onnx_models import parse

onnxruntime = pytest.importorskip("onnxruntime")
MODELS = Path(__file__).resolve().parents[1] / "models"


def outputs(model: onnx.ModelProto, given: dict[str, Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each weight rounded to 8 bits, one scale a tensor."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for t in found.graph.initializer:
        w = numpy_helper.to_array(t)
        if w.ndim >= 2 and w.dtype == np.float32:
            scale = np.abs(w).max() / 127
            t.CopyFrom(numpy_helper.from_array((np.rint(w / scale) * scale).astype(np.float32), t.name))
    return found


def drawn(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The model whose declared constants are drawn, with channels of sizes from 1 / 30 to 30."""
    draw = np.random.default_rng(seed)
    for v in model.graph.value_info:
        w = draw.normal(size=[d.dim_value for d in v.type.tensor_type.shape.dim])
        w *= np.exp(draw.uniform(-3.4, 3.4, (len(w), *[1] * (w.ndim - 1))))
        model.graph.initializer.append(numpy_helper.from_array(w.astype(np.float32), v.name))
    del model.graph.value_info[:]
    return model


CHAINS = {
    "convolutions": (
        """net (float[n, 3, 9, 9] x) => (float[n, 4, 2, 2] y)
        <float[8, 3, 3, 3] a, float[8] b, float[8, 1, 3, 3] c, float[8] d, float[4, 8, 1, 1] e>
        { h = Conv(x, a, b) r = Relu(h) p = MaxPool <kernel_shape = [2, 2]> (r)
          i = Conv <group = 8> (p, c, d) s = Relu(i) q = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (s)
          y = Conv(q, e) }""",
        2,
    ),
    "grouped": (
        """net (float[n, 4, 5, 5] x) => (float[n, 6, 3, 3] y) <float[8, 4, 1, 1] a, float[6, 4, 3, 3] c, float[6] d>
        { h = Conv(x, a) r = LeakyRelu <alpha = 0.1> (h) y = Conv <group = 2> (r, c, d) }""",
        1,
    ),
    "dense": (
        """net (float[n, 5] x) => (float[n, 4] y) <float[5, 8] a, float[8] b, float[6, 8] c, float[6] d, float[6, 4] e>
        { h = MatMul(x, a) g = Add(h, b) r = Relu(g) i = Gemm <transB = 1> (r, c, d) s = Relu(i) y = MatMul(s, e) }""",
        2,
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_computes_the_same_and_loses_less_when_rounded(name: str) -> None:
    text, count = CHAINS[name]
    model = preparing.prepared(drawn(parse(text)))
    assert len(pairs(model.graph)) == count
    shape = [d.dim_value or 16 for d in model.graph.input[0].type.tensor_type.shape.dim]
    given = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}
    [wanted] = outputs(model, given)
    better = equalized(model)
    [found] = outputs(better, given)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * size)
    lost, kept = (np.abs(outputs(rounded(m), given)[0] - wanted).mean() for m in (model, better))
    assert kept < 0.9 * lost


@pytest.mark.parametrize("name", ["residual_cnn", "mobile_cnn", "unet", "vit", "speech_encoder", "detector"])
def test_a_network_computes_the_same(name: str) -> None:
    model = preparing.prepared(onnx.load(MODELS / name / "model.onnx"))
    with np.load(next((MODELS / name).glob("case*.npz"))) as held:
        given = {key.removeprefix("in_"): held[key] for key in held.files if key.startswith("in_")}
    for a, b in zip(outputs(model, given), outputs(equalized(model), given), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4 * max(np.abs(a).max(), 1e-3))


@pytest.mark.parametrize(
    "text",
    [
        # a function between that scaling does not pass through
        "{ h = Conv(x, a, b) r = Sigmoid(h) y = Conv(r, c) }",
        "{ h = Conv(x, a, b) r = HardSwish(h) y = Conv(r, c) }",
        # another reader
        "{ h = Conv(x, a, b) r = Relu(h) s = Conv(r, c) y = Add(s, r) }",
        # the model returns what lies between
        "{ y = Conv(x, a, b) r = Relu(y) z = Conv(r, c) }",
        # one weight for both
        "{ h = Conv(x, a, b) r = Relu(h) y = Conv(r, a, b) }",
    ],
)
def test_what_scaling_would_change_is_left(text: str) -> None:
    model = parse(
        "net (float[n, 4, 3, 3] x) => (float[n, 4, 3, 3] y) "
        f"<float[4, 4, 1, 1] a, float[4] b, float[4, 4, 1, 1] c> {text}"
    )
    assert pairs(preparing.prepared(drawn(model)).graph) == []


def test_a_channel_of_tiny_weights_keeps_its_bias_within_the_others() -> None:
    draw = np.random.default_rng(2)
    model = parse(
        "net (float[n, 5] x) => (float[n, 4] y) <float[5, 8] a, float[8] b, float[8, 4] c> "
        "{ h = Gemm(x, a, b) r = Relu(h) y = MatMul(r, c) }"
    )
    values = {"a": draw.normal(size=(5, 8)), "b": draw.normal(size=8), "c": draw.normal(size=(8, 4))}
    values["a"][:, 0] = 1e-20
    values["b"][0] = 0.5
    del model.graph.value_info[:]
    model.graph.initializer.extend(numpy_helper.from_array(w.astype(np.float32), name) for name, w in values.items())
    better = equalized(preparing.prepared(model))
    biases = numpy_helper.to_array(next(t for t in better.graph.initializer if t.name == "b"))
    assert np.abs(biases).max() <= np.abs(values["b"]).max() * (1 + 1e-6)
    given = {"x": draw.normal(size=(9, 5)).astype(np.float32)}
    np.testing.assert_allclose(outputs(better, given)[0], outputs(model, given)[0], rtol=1e-4, atol=1e-5)


def test_a_weight_that_the_model_returns_is_left() -> None:
    model = drawn(parse("net (float[n, 4] x) => (float[n, 4] y) <float[4, 4] a, float[4, 4] c> "
                        "{ h = MatMul(x, a) r = Relu(h) y = MatMul(r, c) }"))  # fmt: skip
    assert len(pairs(preparing.prepared(model).graph)) == 1
    model.graph.output.append(onnx.helper.make_tensor_value_info("a", 1, [4, 4]))
    assert pairs(preparing.prepared(model).graph) == []
