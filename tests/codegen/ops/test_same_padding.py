"""auto_pad SAME along open axes: the padding follows from the sizes of each call."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import asarray, nn
from emberlet import functional as F
from emberlet.codegen import generate, load
from emberlet.errors import ShapeError
from onnx import helper, numpy_helper
from support.rows import every

FLOAT = onnx.TensorProto.FLOAT
GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))


def drawn(choose: random.Random) -> onnx.ModelProto:
    """A convolution and two poolings in sequence, each with SAME and a stride, over "height" and "width"."""
    rng = np.random.default_rng(choose.randrange(1 << 30))

    def window(most: int) -> dict[str, object]:
        strides = [choose.randint(1, 3), choose.randint(2, 3)]
        return {
            "kernel_shape": [choose.randint(s, most) for s in strides],  # onnxruntime takes no kernel below its stride
            "strides": strides,
            "auto_pad": choose.choice(["SAME_UPPER", "SAME_LOWER"]),
        }

    first = window(5)
    kernel = first["kernel_shape"]
    weight = rng.standard_normal((4, 2, *kernel)).astype(np.float32)  # type: ignore[misc]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], **first),
        helper.make_node("MaxPool", ["a"], ["m"], **window(4)),
        helper.make_node("AveragePool", ["a"], ["y"], **window(4), count_include_pad=choose.randint(0, 1)),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", 2, "height", "width"])
    outputs = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("m", "y")]
    initializers = [
        numpy_helper.from_array(weight, "w"),
        numpy_helper.from_array(rng.standard_normal(4).astype(np.float32), "b"),
    ]
    graph = helper.make_graph(nodes, "same", [x], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@every("seed", range(6), share=2)
@pytest.mark.parametrize(
    "backend", ["python", "numpy", "compiled", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))]
)
def test_drawn_windows_equal_onnxruntime_at_every_size(backend: str, seed: int) -> None:
    choose = random.Random(seed)
    model = drawn(choose)
    judge = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ours = load(model, "python" if backend == "python" else "numpy")
    run = ours.compile(backend="numpy") if backend == "compiled" else ours
    if backend == "wgpu":
        run = ours.compile(backend="wgpu", dims={"batch": 4, "height": 32, "width": 32})
    for _ in range(8):
        size = (choose.randint(1, 2), 2, choose.randint(1, 17), choose.randint(1, 17))
        x = np.random.default_rng(choose.randrange(1 << 30)).standard_normal(size).astype(np.float32)
        for got, want in zip(run(asarray(x, backend="numpy")), judge.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(np.asarray(got.tolist()), want, rtol=1e-4, atol=1e-5, err_msg=str(size))
    if backend == "wgpu":
        assert len(run._open) == 1 and not run._plans, (run, run.fixed)


def test_integer_convolutions_too() -> None:
    weight = np.random.default_rng(0).integers(-8, 8, (3, 2, 3, 2)).astype(np.int8)
    node = helper.make_node(
        "ConvInteger", ["x", "w"], ["y"], strides=[2, 3], auto_pad="SAME_LOWER", kernel_shape=[3, 2]
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT8, ["batch", 2, "height", "width"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    model = helper.make_model(
        helper.make_graph([node], "same", [x], [y], [numpy_helper.from_array(weight, "w")]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    run = load(model, "numpy")
    for height, width in ((1, 1), (4, 5), (7, 6), (8, 9)):
        given = np.random.default_rng(height).integers(-9, 9, (1, 2, height, width)).astype(np.int8)
        float_model = onnx.ModelProto()
        float_model.CopyFrom(model)
        float_model.graph.node[0].op_type = "Conv"
        for value in (*float_model.graph.input, *float_model.graph.output):
            value.type.tensor_type.elem_type = FLOAT
        float_model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight.astype(np.float32), "w"))
        judge = onnxruntime.InferenceSession(float_model.SerializeToString(), providers=["CPUExecutionProvider"])
        (want,) = judge.run(None, {"x": given.astype(np.float32)})
        np.testing.assert_array_equal(np.asarray(run(asarray(given, backend="numpy"))), want.astype(np.int32))


def test_a_kernel_below_its_stride_is_not_padded() -> None:
    x = asarray(np.random.default_rng(3).standard_normal((1, 1, 9, 8)).astype(np.float32), backend="numpy")
    found = F.max_pool(x, 1, stride=2, padding="same_upper")
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x)[:, :, ::2, ::2])
    for layer in (nn.ConvTranspose2d(1, 1, 3, padding="same_lower"), lambda x: F.im2col(x, 3, padding="same_upper")):
        with pytest.raises(ShapeError, match="padding"):
            layer(x)


def test_a_layer_says_it_by_name(tmp_path: object) -> None:
    choose = random.Random(1)
    generate(drawn(choose), str(tmp_path), name="same")
    with open(f"{tmp_path}/same.py", encoding="utf-8") as file:
        source = file.read()
    assert 'padding="same_' in source and "nn.Conv2d(" in source
