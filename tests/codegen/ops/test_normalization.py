"""Normalization at every opset against onnxruntime: layers if weights are constants, else functions."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import codegen
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import assert_same, check, generated, parse, source, with_constants

RANDOM = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_a_layer_norm_with_constants_is_a_layer() -> None:
    model = with_constants(
        "g (float[N, 3, 8] x) => (float[N, 3, 8] y) { y = LayerNormalization<epsilon = 0.001>(x, w, b) }",
        w=floats(8),
        b=floats(8),
    )
    assert "nn.LayerNorm(8, epsilon=0.001, backend=backend)" in source(model)
    check(model, floats(2, 3, 8))


def test_a_layer_norm_over_several_axes() -> None:
    model = with_constants(
        "g (float[2, 3, 8] x) => (float[2, 3, 8] y) { y = LayerNormalization<axis = 1>(x, w) }", w=floats(3, 8)
    )
    assert "nn.LayerNorm((3, 8), bias=False, backend=backend)" in source(model)
    check(model, floats(2, 3, 8))


@pytest.mark.parametrize("shape", [(1,), (3, 1)])
def test_a_weight_that_broadcasts_is_no_layer(shape: tuple[int, ...]) -> None:
    axis = -len(shape)
    model = with_constants(
        f"g (float[2, 3, 8] x) => (float[2, 3, 8] y) {{ y = LayerNormalization<axis = {axis}>(x, w) }}",
        w=floats(*shape),
    )
    assert "F.layer_norm(" in source(model)
    x = floats(2, 3, 8)
    mean = x.mean(tuple(range(axis, 0)), keepdims=True)
    deviation = np.sqrt(((x - mean) ** 2).mean(tuple(range(axis, 0)), keepdims=True) + 1e-5)
    weight = numpy_helper.to_array(model.graph.initializer[0])
    assert_same(generated(model, [x]), [(x - mean) / deviation * weight])


def test_root_mean_square_is_a_layer() -> None:
    model = with_constants(
        "g (float[N, 3, 8] x) => (float[N, 3, 8] y) { y = RMSNormalization(x, w) }", opset=23, w=floats(8)
    )
    assert "nn.RmsNorm(8, backend=backend)" in source(model)
    x, w = floats(2, 3, 8), numpy_helper.to_array(model.graph.initializer[0])
    assert_same(generated(model, [x]), [x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w])


def group_norm(x: np.ndarray, groups: int, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    cut = x.reshape(x.shape[0], groups, -1)
    normal = (cut - cut.mean(-1, keepdims=True)) / np.sqrt(cut.var(-1, keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * weight[:, None, None] + bias[:, None, None]


def test_a_group_norm_per_channel_is_a_layer() -> None:
    model = with_constants(
        "g (float[N, 6, 4, 4] x) => (float[N, 6, 4, 4] y) { y = GroupNormalization<num_groups = 3>(x, w, b) }",
        w=floats(6),
        b=floats(6),
    )
    assert "nn.GroupNorm(3, 6, backend=backend)" in source(model)
    x, w, b = floats(2, 6, 4, 4), *(numpy_helper.to_array(t) for t in model.graph.initializer)
    assert_same(generated(model, [x]), [group_norm(x, 3, w, b)])


def test_a_group_norm_of_opset_18_has_weights_for_each_group() -> None:
    model = parse(
        """g (float[N, 6, 4, 4] x, float[3] w, float[3] b) => (float[N, 6, 4, 4] y) {
            y = GroupNormalization<num_groups = 3>(x, w, b)
        }""",
        18,
    )
    x, w, b = floats(2, 6, 4, 4), floats(3), floats(3)
    assert_same(generated(model, [x, w, b]), [group_norm(x, 3, w.repeat(2), b.repeat(2))])


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 14, 15])
def test_a_batch_norm_with_constants_is_a_layer_at_every_opset(opset: int) -> None:
    test = ", is_test = 1" if opset < 7 else ""
    model = with_constants(
        f"g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) "
        f"{{ y = BatchNormalization<epsilon = 0.01{test}>(x, w, b, m, v) }}",
        opset,
        w=floats(3),
        b=floats(3),
        m=floats(3),
        v=np.abs(floats(3)),
    )
    assert "nn.BatchNorm2d(3, epsilon=0.01, backend=backend)" in source(model, passes=[])
    x = floats(2, 3, 4, 4)
    w, b, m, v = (numpy_helper.to_array(t)[:, None, None] for t in model.graph.initializer)
    assert_same(generated(model, [x]), [(x - m) / np.sqrt(v + 0.01) * w + b])


@pytest.mark.parametrize("size", [2, 3, 4])
def test_lrn_takes_one_channel_more_behind_of_an_even_size(size: int) -> None:
    """The formula of ONNX's specification; PyTorch takes one more before."""
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.5, beta=0.6, bias=2.0)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 5, 3]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(2).normal(size=(2, 5, 3)).astype(np.float32) * 3
    square = x.astype(np.float64) ** 2
    sums = [square[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].sum(1) for c in range(5)]
    expected = x / (2 + 0.5 / size * np.stack(sums, 1)) ** 0.6
    np.testing.assert_allclose(np.asarray(codegen.load(model)(x)), expected, rtol=1e-5)
