"""Operators on quantized tensors (onnxruntime's QOperator): within a step of onnxruntime, exact on the device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto
from onnxruntime.quantization import QuantFormat, QuantType
from support.microcontrollers.modules import importable
from support.microcontrollers.onnx_models import Array
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.quantized_nodes import KINDS, Node, bytes_for, node_of
from support.microcontrollers.words import inferred, step_of
from support.onnx_models import expected

from tools.microcontrollers.running import inputs_in_arena, outputs_of, run_program
from tools.micropython import Port


def stored(built: BuildResult, node: Node, inputs: dict[str, Array]) -> list[Array]:
    """The inputs as stored in the arena: in the module's order of axes, with 128 added to int8."""
    out = []
    for name in built.graph.inputs:
        x = inputs[name].astype(int) + built.graph.integers[name]
        _, order = built.graph.layouts[name]
        out.append(np.transpose(x, order).astype(np.uint8).reshape(built.graph.shapes[name]))
    return out


def found(built: BuildResult, y: Array) -> Array:
    return y.reshape(-1).astype(int) - built.graph.integers[built.graph.outputs[0]]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_a_node_is_within_a_step_of_onnxruntime(kind: int) -> None:
    for seed in range(kind, 25 * len(KINDS), len(KINDS)):
        node = node_of(seed)
        model, rng = node.model(), np.random.default_rng(seed)
        built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
        differ = 0
        for _ in range(4):
            inputs = bytes_for(node, rng)
            x = dict(zip(built.graph.inputs, stored(built, node, inputs), strict=True))
            y = found(built, built.graph.run(x)[built.graph.outputs[0]])
            wanted = expected(model, inputs)[0].reshape(-1).astype(int)
            off = np.abs(y - wanted)
            assert off.max() <= 1, (seed, node.op, node.attributes, off.max())
            differ += int((off > 0).sum())
        assert differ <= 0.02 * 4 * wanted.size + 2, (seed, node.op, differ, wanted.size)


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_micropython_computes_the_same_bytes(seed: int, unix_port: Port, tmp_path: Path) -> None:
    node = node_of(seed)
    built = build(read_graph(node.model().SerializeToString(), "m"), Options("m"))
    x = stored(built, node, bytes_for(node, np.random.default_rng(seed)))
    wanted = built.graph.run(dict(zip(built.graph.inputs, x, strict=True)))[built.graph.outputs[0]]
    for dialect in ("viper", "bytecode"):
        arena = run_program(unix_port, built.program, dialect, inputs_in_arena(built.program, x), tmp_path)
        assert outputs_of(built.program, arena)[0].reshape(-1).tolist() == wanted.reshape(-1).tolist()


def test_a_mean_is_that_of_the_real_numbers() -> None:
    """onnxruntime has no kernel for this operator, so NumPy gives the expected result."""
    rng = np.random.default_rng(4)
    node = Node(rng, "QLinearReduceMean")
    node.taken(1, 5, 4, 6)
    node.grid(0.03)
    node.grid(0.02)
    node.attributes = {"axes": [2, 3], "keepdims": 0}
    built = build(read_graph(node.model().SerializeToString(), "m"), Options("m"))
    inputs = bytes_for(node, rng)
    (x,) = stored(built, node, inputs)
    scale, zero, to, last = (onnx.numpy_helper.to_array(c) for c in node.constants)
    mean = ((inputs["x"].astype(float) - zero) * scale).mean((0, 2, 3)) / to + last
    low = np.iinfo(node.dtype).min
    y = found(built, built.graph.run({"x": x})[built.graph.outputs[0]])
    assert np.abs(y - np.clip(mean, low, low + 255)).max() < 0.6


def network(seed: int) -> onnx.ModelProto:
    """Layers that onnxruntime quantizes completely."""
    n, rng = Network(seed), np.random.default_rng(seed)
    c = int(rng.choice([2, 3, 8]))
    shape = [1, c, 8, 8]
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.choice(["conv", "depthwise", "residual", "pool"])
        if kind == "conv":
            wide = int(rng.choice([4, 8]))
            n.conv(c, wide, int(rng.choice([1, 3])))
            c = wide
        elif kind == "pool":
            n.then(str(rng.choice(["MaxPool", "AveragePool"])), kernel_shape=[2, 2])
        else:
            before = n.at
            n.conv(c, c, 3, c if kind == "depthwise" else 1)
            if kind == "residual":
                n.then("Add", before)
        n.activation(str(rng.choice(["Relu", "Sigmoid", "LeakyRelu", "SiLU", ""])))
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(c, 6)
    return n.done(shape)


FORMS = [
    (QuantType.QUInt8, QuantType.QUInt8, False),
    (QuantType.QUInt8, QuantType.QInt8, False),
    (QuantType.QInt8, QuantType.QInt8, True),
]


@pytest.mark.parametrize("form", [QuantFormat.QOperator, QuantFormat.QDQ])
@pytest.mark.parametrize(("activations", "weights", "per_channel"), FORMS)
def test_networks_follow_onnxruntime(
    form: QuantFormat, activations: QuantType, weights: QuantType, per_channel: bool
) -> None:
    """A difference of one step may grow through the layers; onnxruntime's own two forms differ by as much."""
    off = []
    for seed in range(8):
        plain = network(seed)
        kinds = {"activation_type": activations, "weight_type": weights, "per_channel": per_channel}
        model = quantized(plain, samples_of(plain), quant_format=form, **kinds)
        # If a pool comes first, onnxruntime leaves its input without a scale, which then follows from samples.
        given = {"x": samples_of(plain)} if plain.graph.node[0].op_type.endswith("Pool") else None
        built = build(read_graph(model.SerializeToString(), "m"), Options("m", method="minmax"), given)
        for x in samples_of(plain, 3, 99):
            off.append(np.abs(inferred(built, x) - expected(model, {"x": x})[0].reshape(-1)) / step_of(built))
    steps = np.rint(np.concatenate(off))
    print("seeds 0 to 7: steps from onnxruntime, at most", steps.max(), "and on average", steps.mean())
    assert steps.max() <= 2 and np.mean(steps) < 0.1


def test_floats_of_a_quantized_model_take_and_give_its_integers(unix_port: Port, tmp_path: Path) -> None:
    for seed in (0, 2, 10, 13):
        node = node_of(seed)
        built = build(read_graph(node.model().SerializeToString(), "m"), Options("m", floats=True))
        assert built.program.is_float and "whole numbers" in built.sources["m.py"]
        inputs = bytes_for(node, np.random.default_rng(seed))
        x = [
            np.transpose(inputs[n], built.graph.layouts[n][1]).astype(np.float32).reshape(built.graph.shapes[n])
            for n in built.graph.inputs
        ]
        arena = run_program(unix_port, built.program, "float32", inputs_in_arena(built.program, x), tmp_path)
        wanted = expected(node.model(), inputs)[0].reshape(-1).astype(int)
        assert np.abs(outputs_of(built.program, arena)[0].reshape(-1) - wanted).max() <= 1


# -- models whose inputs are bytes ------------------------------------------------------------------------------------


def picture(dtype: str, how: str) -> onnx.ModelProto:
    """An image of bytes, cast to floats and scaled, or dequantized; then a convolution and a dense layer."""
    n = Network(7)
    if how == "cast":
        n.then("Cast", to=TensorProto.FLOAT)
        n.m.constant("whole", np.float32(255))
        n.then("Div", "whole")
    else:
        n.m.constant("s", np.float32(1 / 64))
        n.m.constant("z", 5, dtype)
        if how == "moved":
            n.then("Transpose", perm=[0, 3, 1, 2])
        n.then("DequantizeLinear", "s", "z")
    n.conv(3, 4, 3)
    n.activation("Relu")
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(4, 5)
    model = n.done([1, 6, 6, 3] if how == "moved" else [1, 3, 6, 6])
    kind = TensorProto.UINT8 if dtype == "uint8" else TensorProto.INT8
    model.graph.input[0].type.tensor_type.elem_type = kind
    del model.graph.value_info[:]
    return model


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("how", ["cast", "dequantized", "moved"])
@pytest.mark.parametrize("floats", [False, True])
def test_a_model_of_bytes_takes_bytes(dtype: str, how: str, floats: bool, unix_port: Port, tmp_path: Path) -> None:
    model = picture(dtype, how)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    low = np.iinfo(dtype).min
    samples = np.random.default_rng(5).integers(low, low + 256, (30, *shape)).astype(dtype)
    graph = read_graph(model.SerializeToString(), "m")
    built = build(graph, Options("m", method="minmax", floats=floats), {"x": samples})
    assert built.program.is_float == floats and dtype in built.sources["m.py"]
    wanted = expected(model, {"x": samples[3]})[0].reshape(-1)
    numbers = (samples[3] if how == "moved" else np.transpose(samples[3], (0, 2, 3, 1))).reshape(-1).tolist()
    script = importable(tmp_path, built) + f"import m\nprint(m.predict({numbers}))"
    answer = unix_port.run(script, heap="16M", micropypath=[]).check().stdout
    scale = 1e-5 if floats else built.graph.grids[built.graph.outputs[0]].scale
    assert np.abs(np.array(eval(answer)) - wanted).max() < 8 * scale


def test_the_bytes_of_a_model_are_its_own(unix_port: Port, tmp_path: Path) -> None:
    """With uint8 inputs and outputs, `input` and `output` hold the same bytes as onnxruntime's."""
    node = node_of(next(s for s in range(200) if node_of(s).op == "QGemm" and node_of(s).dtype == np.uint8))
    built = build(read_graph(node.model().SerializeToString(), "m"), Options("m"))
    inputs = bytes_for(node, np.random.default_rng(1))
    script = importable(tmp_path, built) + (
        f"import m\nx = {inputs['x'].reshape(-1).tolist()}\n"
        "m.input[:] = bytes(x)\nm.run()\nprint(list(m.output))\nprint(m.predict(x))"
    )
    first, second = unix_port.run(script, heap="16M", micropypath=[]).check().stdout.splitlines()
    assert first == second
    assert np.abs(np.array(eval(first)) - expected(node.model(), inputs)[0].reshape(-1).astype(int)).max() <= 1


def test_an_output_of_bytes_and_of_real_numbers() -> None:
    n = Network(1)
    n.dense(5, 3)
    n.m.constant("s", np.float32(0.02))
    n.m.constant("z", 100, "uint8")
    n.then("QuantizeLinear", "s", "z")
    n.m("Identity", n.at, "q")
    n.then("DequantizeLinear", "s", "z")
    n.m("Identity", n.at, "y")
    model = n.m.model([1, 5], "q y")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    samples = samples_of(model, 20)
    graph = read_graph(model.SerializeToString(), "m")
    for floats in (False, True):
        built = build(graph, Options("m", floats=floats), {"x": samples})
        kinds = [built.graph.integers.get(name) for name in built.graph.outputs]
        assert kinds == [0, None]
        lines = [line for line in built.sources["m.py"].splitlines() if line.startswith("output ")]
        assert "uint8" in lines[0] and "uint8" not in lines[1]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_bytes_that_are_resized_keep_their_scale(mode: str) -> None:
    n = Network(2)
    n.conv(3, 4, 3)
    n.m.constant("scales", np.array([1, 1, 2, 1.5], np.float32))
    n.m.constant("roi", np.zeros(0, np.float32))
    n.then("Resize", "roi", "scales", mode=mode)
    n.conv(4, 2, 3)
    plain = n.done([1, 3, 6, 8])
    samples = samples_of(plain)
    model = quantized(plain, samples, quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8)
    assert any(node.op_type == "Resize" and node.input[0].endswith("_quantized") for node in model.graph.node)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    for x in samples[:4]:
        off = inferred(built, x) - expected(model, {"x": x})[0].reshape(-1)
        # onnxruntime cuts off the fraction of an interpolated byte, which is rounded here: a step for each.
        assert np.abs(off).mean() < step_of(built) and np.abs(off).max() < 5 * step_of(built)
