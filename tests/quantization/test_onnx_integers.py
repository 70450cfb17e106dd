"""Integers of an ONNX file in layers of the same form, and layers of integers: the results are onnxruntime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet import codegen, nn, store
from emberlet.errors import ArgumentError
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)
GIVEN, RESULT = (0.03, 100), (0.2, 90)


def saved(path: Path, kind: str, weight: Any, bias: bool, name: str, **attributes: int) -> Any:
    """Writes a product of integers whose initializers are called `name`.weight and so on; returns an input and
    onnxruntime's result."""
    channels = weight.shape[0 if weight.ndim == 4 or attributes.get("transB") else 1]
    held = {
        "a_scale": np.array(GIVEN[0], np.float32), "a_zero": np.array(GIVEN[1], np.uint8), f"{name}.weight": weight,
        "scale": RNG.uniform(0.001, 0.01, channels).astype(np.float32), "zero": np.zeros(channels, np.int8),
        "y_scale": np.array(RESULT[0], np.float32), "y_zero": np.array(RESULT[1], np.uint8),
        f"{name}.bias": RNG.integers(-5000, 5000, channels, np.int32),
    }  # fmt: skip
    results = ["y_scale", "y_zero"]
    last = [f"{name}.bias"] if bias else [""]
    order = last + results if kind == "QGemm" else results + (last if bias else [])
    inputs = ["x", "a_scale", "a_zero", f"{name}.weight", "scale", "zero", *order]
    domain = "com.microsoft" if kind == "QGemm" else ""
    node = helper.make_node(kind, inputs, ["y"], domain=domain, **attributes)
    shape = [2, weight.shape[1], 6, 6] if weight.ndim == 4 else [5, 64]
    io = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in (("x", shape), ("y", None))]
    constants = [numpy_helper.from_array(x, n) for n, x in held.items() if n in inputs]
    graph = helper.make_graph([node], "g", io[:1], io[1:], constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    x = RNG.integers(0, 256, shape, np.uint8)
    return x, onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("kind", "shape", "bias", "attributes"),
    [
        ("QLinearConv", (16, 8, 3, 3), False, {}),
        ("QLinearConv", (16, 8, 3, 3), True, {}),
        ("QLinearMatMul", (64, 16), False, {}),
        ("QGemm", (64, 16), False, {}),
        ("QGemm", (64, 16), True, {}),
        ("QGemm", (16, 64), True, {"transB": 1}),
    ],
)
def test_layers_take_the_integers_of_products(
    kind: str, shape: tuple[int, ...], bias: bool, attributes: dict[str, int], tmp_path: Path
) -> None:
    path, weight = tmp_path / "m.onnx", RNG.integers(-128, 128, shape, np.int8)
    x, wanted = saved(path, kind, weight, bias, "fc", **attributes)
    net = codegen.load(path)
    net.load_from(path)
    np.testing.assert_array_equal(np.asarray(net(emberlet.asarray(x))), wanted)


@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (0, 0)])
def test_integers_may_be_none(shape: tuple[int, int], tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"])
    held = {"w": np.zeros(shape, np.int8), "s": np.array(0.5, np.float32)}
    constants = [numpy_helper.from_array(x, n) for n, x in held.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    onnx.save(helper.make_model(helper.make_graph([node], "g", [], [y], constants)), tmp_path / "m.onnx")
    real = store.open(tmp_path / "m.onnx")["w"].real
    assert real is not None
    assert np.asarray(real).shape == shape


@pytest.mark.parametrize("more", [{"output": RESULT}, {"input": "dynamic", "output": RESULT},
                                  {"input": GIVEN, "output": RESULT, "block_size": 16}])  # fmt: skip
@pytest.mark.parametrize("layer", [lambda **k: nn.QuantizedLinear(32, 4, **k),
                                   lambda **k: nn.QuantizedConv2d(8, 4, 3, **k)])  # fmt: skip
def test_grids_that_a_layer_cannot_have_are_refused(layer: Any, more: Any) -> None:
    with pytest.raises(ArgumentError, match="a layer of integers"):
        layer(**more)


@pytest.mark.parametrize("given", ["static", (0.1,), (0.1, 3, "uint8")])
def test_an_input_that_is_no_grid_is_refused(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r'input is \(scale, zero point\) or "dynamic"'):
        nn.QuantizedLinear(32, 4, input=given)


def test_casting_keeps_integers() -> None:
    layer = nn.QuantizedLinear(64, 128, input=GIVEN, output=RESULT)
    layer.weight.set(emberlet.asarray(RNG.normal(size=(64, 128)).astype(np.float32)))
    layer.bias.set(emberlet.asarray(RNG.normal(size=128).astype(np.float32)))
    x = emberlet.asarray(RNG.integers(0, 256, (50, 64), np.uint8))
    before = np.asarray(layer(x))
    np.testing.assert_array_equal(np.asarray(layer.cast("float16")(x)), before)


@pytest.mark.parametrize("bits", [8, 4])
def test_layers_may_be_empty(bits: int) -> None:
    layer = nn.QuantizedLinear(0, 8, bits=bits)
    given = emberlet.asarray(np.zeros((2, 0), np.float32))
    np.testing.assert_array_equal(np.asarray(layer(given)), np.broadcast_to(np.asarray(layer.bias.val()), (2, 8)))
    assert nn.QuantizedEmbedding(4, 0, bits=bits)(emberlet.asarray([[1, 2, 3]])).shape == (1, 3, 0)


@pytest.mark.parametrize("length", [500, 530, 70000])
def test_long_sums_are_exact(length: int) -> None:
    """Some are above the integers that float32 holds."""
    layer = nn.QuantizedLinear(length, 4, bias=False, input=(1.0, 0))
    levels = RNG.integers(100, 128, (length, 4))
    levels[0] = 127
    layer.weight.set(emberlet.asarray(levels.astype(np.float32)))
    x = RNG.integers(200, 256, (3, length))
    x[:, 1] += np.array([0, -1, -2])
    given = emberlet.asarray(x.astype(np.uint8))
    wanted = (x.astype(np.uint8).astype(np.int64) @ levels).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(layer(given)), wanted)
    np.testing.assert_array_equal(np.asarray(layer.compile(backend="numpy")(given)), wanted)
