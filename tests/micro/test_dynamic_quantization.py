"""Dynamically quantized models (quantize_dynamic), in float32 and, with samples, in int8 with their own weights."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.dot import Dot, DotFloat
from emberlet.micro.builder.kernels.move import Move
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.reference import dequantize, quantize
from onnx import helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.quantized import Network, image_network, samples_of, sequence_network
from support.microcontrollers.words import inferred, step_of
from support.onnx_models import expected
from support.rows import every

FORMS: list[dict[str, Any]] = [
    {"weight_type": QuantType.QInt8},
    {"weight_type": QuantType.QUInt8},
    {"weight_type": QuantType.QInt8, "per_channel": True},
]


def dynamic(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        plain, out = Path(folder, "plain.onnx"), Path(folder, "dynamic.onnx")
        onnx.save(model, plain)
        quantize_dynamic(str(plain), str(out), **options)
        return onnx.load(out)


def bidirectional(seed: int) -> onnx.ModelProto:
    n = Network(seed)
    for name, shape in (("W", (2, 16, 5)), ("R", (2, 16, 4)), ("B", (2, 32))):
        n.m.weight(name, *shape)
    n.then("LSTM", "W", "R", "B", hidden_size=4, direction="bidirectional")
    return n.done([6, 1, 5])


NETWORKS = [image_network, sequence_network, bidirectional]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_follow_onnxruntime(network: Callable[[int], onnx.ModelProto], form: dict[str, Any]) -> None:
    """onnxruntime rounds each call's tensors to 256 steps of their own range, so both builds differ from it by as
    much."""
    off: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(6 if network is not bidirectional else 2):
        plain = network(seed)
        model = dynamic(plain, **form)
        ops = {node.op_type for node in model.graph.node}
        assert ops & {"ConvInteger", "MatMulInteger", "DynamicQuantizeLSTM"}
        samples = samples_of(plain)
        for floats in (False, True):
            graph = read_graph(model.SerializeToString(), "m")
            built = build(graph, Options("m", method="minmax", floats=floats), {"x": samples})
            for x in samples_of(plain, 3, 99):
                wanted = expected(model, {"x": x})[0].reshape(-1)
                off[floats].append(float(np.abs(inferred(built, x) - wanted).max() / np.abs(wanted).max()))
    print("seeds from 0: off in parts of the greatest output, int8:", max(off[False]), "float32:", max(off[True]))
    assert max(off[True]) < 0.06 and np.median(off[False]) < 0.06


@pytest.mark.parametrize("form", FORMS)
def test_flattened_channels_are_not_moved(form: dict[str, Any]) -> None:
    """The weights follow the order of the elements, as in the model before it was quantized."""
    n = Network(5)
    n.conv(2, 3, 3)
    n.then("Relu")
    n.then("Flatten")
    n.dense(3 * 4 * 4, 5)
    plain = n.done([1, 2, 4, 4])
    built = []
    for model in (plain, dynamic(plain, **form)):
        graph = read_graph(model.SerializeToString(), "m")
        assert not any(isinstance(layer, Move) for layer in graph.layers)
        built.append(build(graph, Options("m", method="minmax"), {"x": samples_of(plain)}))
    kinds = [[type(layer).__name__ for layer in b.graph.layers] for b in built]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_those_of_the_file(form: dict[str, Any]) -> None:
    n = Network(3)
    n.dense(12, 5)
    plain = n.done([1, 12])
    model = dynamic(plain, **form)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"), {"x": samples_of(plain)})
    (layer,) = (layer for layer in built.graph.layers if isinstance(layer, Dot))
    (stored,) = (onnx.numpy_helper.to_array(i) for i in model.graph.initializer if i.name.endswith("_quantized"))
    byte = 128 if stored.dtype == np.int8 else 0
    assert layer.weights.reshape(5, 12).tolist() == (stored.T.astype(int) + byte).tolist()


@pytest.mark.parametrize("op", ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_fused_products(op: str, with_bias: bool) -> None:
    """The pattern as onnxruntime rewrites it in a saved optimized model."""
    m = Maker(2)
    m.constant("w", m.rng.integers(0, 256, (6, 4)), "uint8")
    m.constant("s", np.float32(0.01))
    m.constant("z", 120, "uint8")
    m.weight("b", 4)
    bias = " b" if with_bias else ""
    if op == "DynamicQuantizeMatMul":
        m.nodes.append(helper.make_node(op, f"x w s z{bias}".split(), ["y"], domain="com.microsoft"))
    else:
        m("DynamicQuantizeLinear", "x", "q sx zx")
        m.nodes.append(helper.make_node(op, f"q w sx s zx z{bias}".split(), ["y"], domain="com.microsoft"))
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, n]) for name, n in (("x", 6), ("y", 4)))
    made = helper.make_graph(m.nodes, "g", [x], [y], m.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    sample = np.random.default_rng(0).standard_normal((1, 6)).astype(np.float32)
    wanted = expected(model, {"x": sample})[0].reshape(-1)
    assert np.abs(inferred(built, sample[0]) - wanted).max() < 0.03
    assert any(isinstance(layer, DotFloat) for layer in built.graph.layers)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_each_column_of_weights_may_have_a_zero_point_of_its_own(kind: str) -> None:
    """In 8 bits too, where one zero point for all columns would keep the bytes of the file."""
    m = Maker(4)
    low = 0 if kind == "uint8" else -128
    m.constant("w", m.rng.integers(low, low + 256, (6, 4)), kind)
    m.constant("s", np.array([0.01, 0.02, 0.015, 0.005], np.float32))
    m.constant("z", low + np.array([120, 10, 250, 128]), kind)
    m("DynamicQuantizeLinear", "x", "q sx zx")
    m("MatMulInteger", "q w zx z", "p")
    m("Cast", "p", "real", to=onnx.TensorProto.FLOAT)
    m("Mul", "sx s", "scale")
    m("Mul", "real scale", "y")
    model = m.model([1, 6], "y", opset=17, ir=8)
    samples = np.random.default_rng(0).standard_normal((40, 1, 6)).astype(np.float32)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m", method="minmax"), {"x": samples})
    for x in samples[:10]:
        assert np.abs(inferred(built, x) - expected(model, {"x": x})[0].reshape(-1)).max() < 4 * step_of(built)


def recurrent(seed: int) -> onnx.ModelProto:
    """An LSTM of drawn sizes, direction and inputs, with one output or two."""
    rng, m = np.random.default_rng(seed), Maker(seed)
    steps, width, hidden = int(rng.integers(1, 7)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    m.weight("w", count, 4 * hidden, width)
    m.weight("r", count, 4 * hidden, hidden)
    given = ["x", "w", "r"]
    if rng.random() < 0.7:
        m.weight("b", count, 8 * hidden, scale=0.3)
        given.append("b")
    outputs = ["y"] if rng.random() < 0.5 else ["y", "h"]
    m("LSTM", " ".join(given), " ".join(outputs), hidden_size=hidden, direction=direction)
    return m.model([steps, 1, width], " ".join(outputs), opset=17, ir=8)


@pytest.mark.parametrize("form", FORMS)
@every("seed", range(8), share=2)
def test_lstms_that_quantize_as_they_run_follow_onnxruntime(seed: int, form: dict[str, Any]) -> None:
    plain = recurrent(seed)
    model = dynamic(plain, **form)
    assert [node.op_type for node in model.graph.node if node.op_type.endswith("LSTM")] == ["DynamicQuantizeLSTM"]
    samples = samples_of(plain)
    graph = read_graph(model.SerializeToString(), "m")
    floats = build(graph, Options("m", floats=True))
    built = build(graph, Options("m", method="minmax"), {"x": samples})
    for x in samples_of(plain, 3, 99):
        mine = check_samples({"x": x[None]}, graph)["x"][0]
        grid = built.graph.grids["x"]
        real, found = floats.graph.run({"x": mine}), built.graph.run({"x": quantize(mine, grid.scale, grid.zero)})
        for name, wanted in zip(graph.outputs, expected(model, {"x": x}), strict=True):
            last = built.graph.grids[name]
            y = dequantize(found[name], last.scale, last.zero).reshape(-1)
            # onnxruntime rounds the input of each step, and the state, to 256 steps of their own.
            assert np.abs(real[name].reshape(-1) - wanted.reshape(-1)).max() < 0.03
            assert np.abs(y - wanted.reshape(-1)).max() < 0.06
