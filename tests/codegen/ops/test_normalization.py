"""Normalization at every opset against onnxruntime: layers if weights are constants, else functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import codegen
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import assert_same, generated, parse, source, with_constants
from support.rows import every

RANDOM = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


BATCH = "BatchNormalization<epsilon = 0.01{}>(x, w, b, m, v)"


@every(
    ("node", "opset", "shapes", "layer"),
    [
        ("LayerNormalization<epsilon = 0.001>(x, w, b)", 21, {"w": (4,), "b": (4,)}, "LayerNorm(4, epsilon=0.001,"),
        ("LayerNormalization<axis = 1>(x, w)", 21, {"w": (3, 4, 4)}, "LayerNorm((3, 4, 4), bias=False,"),
        ("RMSNormalization(x, w)", 23, {"w": (4,)}, "RmsNorm(4,"),
        ("GroupNormalization<num_groups = 3>(x, w, b)", 21, {"w": (3,), "b": (3,)}, "GroupNorm(3, 3,"),
        *((BATCH.format(", is_test = 1" if opset < 7 else ""), opset, dict.fromkeys("wbmv", (3,)),
           "BatchNorm2d(3, epsilon=0.01,") for opset in (1, 6, 7, 9, 14, 15)),
    ],
)  # fmt: skip
def test_a_normalization_with_constants_is_a_layer(node: str, opset: int, shapes: dict[str, Any], layer: str) -> None:
    """Its results are compared in test_changed_nodes.py, and here with the function's where the weights are inputs."""
    held = {name: np.abs(floats(*shape)) for name, shape in shapes.items()}
    model = with_constants(f"g (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y) {{ y = {node} }}", opset, **held)
    assert f"nn.{layer} backend=backend)" in source(model, passes=[])
    given = ", ".join(f"float[{', '.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    open_ = parse(f"g (float[2, 3, 4, 4] x, {given}) => (float[2, 3, 4, 4] y) {{ y = {node} }}", opset)
    assert "nn." not in source(open_)
    x = floats(2, 3, 4, 4)
    assert_same(generated(model, [x]), generated(open_, [x, *held.values()]))


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


def group_norm(x: np.ndarray, groups: int, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    cut = x.reshape(x.shape[0], groups, -1)
    normal = (cut - cut.mean(-1, keepdims=True)) / np.sqrt(cut.var(-1, keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * weight[:, None, None] + bias[:, None, None]


def test_a_group_norm_of_opset_18_has_weights_for_each_group() -> None:
    model = parse(
        """g (float[N, 6, 4, 4] x, float[3] w, float[3] b) => (float[N, 6, 4, 4] y) {
            y = GroupNormalization<num_groups = 3>(x, w, b)
        }""",
        18,
    )
    x, w, b = floats(2, 6, 4, 4), floats(3), floats(3)
    assert_same(generated(model, [x, w, b]), [group_norm(x, 3, w.repeat(2), b.repeat(2))])


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
