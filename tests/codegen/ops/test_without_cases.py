"""Operators without ONNX test cases, compared with onnxruntime or with properties of random draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from support.onnx_models import check, generated, parse

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.skipif(not hasattr(onnx.TensorProto, "FLOAT6E2M3"), reason="onnx has 6-bit floats from 1.23 on")
@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("raw", [True, False], ids=["raw_data", "int32_data"])
@pytest.mark.parametrize("kind", ["float6e2m3", "float6e3m2"])
def test_6_bit_floats_are_cast_and_quantized_as_by_the_reference(kind: str, raw: bool, backend: str) -> None:
    code = onnx.TensorProto.DataType.Value(kind.upper())
    text = f"""g (float[n] x, float s) => (
        {kind}[n] a, {kind}[n] b, float[n] c, {kind}[n] d, float[5] e, {kind}[3] f) {{
        a = Cast<to = {code}>(x)  b = QuantizeLinear<output_dtype = {code}>(x, s)  c = DequantizeLinear(b, s)
        d = QuantizeLinear(x, s, zero)  e = Cast<to = 1>(w)  f = Cast<to = {code}>(w16)
    }}"""
    model = onnx.parser.parse_model(f'<ir_version: 14, opset_import: ["" : 28]>\n{text}')
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code)
    w = np.array([0.0, 7.5, -0.125, 1.25, -28.0], np.float32).astype(dtype)
    for name, value in {"w": w, "zero": np.zeros((), dtype)}.items():
        t = onnx.numpy_helper.from_array(value, name)
        if not raw:
            t.ClearField("raw_data")
            t.int32_data.extend(value.view(np.uint8).ravel().tolist())
        model.graph.initializer.append(t)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([9, -0.3, 99], np.float16), "w16"))
    x = np.concatenate([normal(40) * 8, np.array([0.0, -0.0, 1e9, -np.inf, 0.0625, 0.1875], np.float32)])
    inputs = {"x": x, "s": np.array(0.7, np.float32)}
    want = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    got = generated(model, list(inputs.values()), backend)
    for g, v in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (v.dtype, v.shape)
        np.testing.assert_array_equal(g.view(np.uint8), v.view(np.uint8))


def test_max_roi_pool() -> None:
    text = """g (float[2, 3, 8, 9] x, float[3, 5] rois) => (float[a, b, c, d] y) {
        y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = 0.5>(x, rois)
    }"""
    rois = np.array([[0, 0, 0, 15, 13], [1, 3, 2, 9, 12], [1, 4, 4, 6, 7]], np.float32)
    check(parse(text), normal(2, 3, 8, 9), rois)


def drawn(text: str, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A random draw; with a seed, a new model's draw is the same."""
    first, second = (generated(parse(text), inputs)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    return first


@pytest.mark.parametrize("kind", ["like", "alone"])
def test_normal_draws(kind: str) -> None:
    how = "RandomNormalLike<%s>(x)" if kind == "like" else "RandomNormal<shape = [200, 50], %s>()"
    text = "g (float[200, 50] x) => (float[200, 50] y) { y = " + how % "mean = 3.0, scale = 2.0, seed = 5.0" + " }"
    y = drawn(text, np.zeros((200, 50), np.float32))
    assert (y.dtype, y.shape) == (np.float32, (200, 50))
    assert abs(y.mean() - 3) < 5 * 2 / 100 and abs(y.std() - 2) < 5 * 2 / 141
    assert abs((y < 3).mean() - 0.5) < 5 * 0.5 / 100


@pytest.mark.parametrize("kind", ["like", "alone"])
def test_uniform_draws(kind: str) -> None:
    how = "RandomUniformLike<%s>(x)" if kind == "like" else "RandomUniform<shape = [200, 50], %s>()"
    text = (
        "g (float[200, 50] x) => (double[200, 50] y) { y = "
        + how % "low = -1.0, high = 3.0, seed = 5.0, dtype = 11"
        + " }"
    )
    y = drawn(text, np.zeros((200, 50), np.float32))
    assert (y.dtype, y.shape) == (np.float64, (200, 50))
    assert y.min() >= -1 and y.max() < 3 and abs(y.mean() - 1) < 5 * 1.155 / 100
    assert abs((y < 0).mean() - 0.25) < 5 * 0.433 / 100


def test_multinomial_draws_classes_by_their_probabilities() -> None:
    text = "g (float[2, 3] x) => (int32[2, n] y) { y = Multinomial<sample_size = 4000, seed = 2.0, dtype = 6>(x) }"
    chances = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    with np.errstate(divide="ignore"):
        y = drawn(text, np.log(chances).astype(np.float32))
    assert (y.dtype, y.shape) == (np.int32, (2, 4000))
    for row, p in zip(y, chances, strict=True):
        found = np.bincount(row, minlength=3) / 4000
        assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / 4000)).all()
