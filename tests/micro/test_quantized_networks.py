"""Random networks quantized by onnxruntime: int8, with or without samples, and float32 follow its results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Grid
from emberlet.micro.builder.quantization.calibrate import check_samples
from onnx import numpy_helper
from onnxruntime.quantization import QuantType
from support.microcontrollers.onnx_models import Array, Maker
from support.microcontrollers.quantized import (
    Network,
    image_network,
    quantized,
    samples_of,
    saturating,
    sequence_network,
)
from support.microcontrollers.words import inferred, step_of
from support.onnx_models import expected
from support.rows import every

KINDS = [(QuantType.QInt8, True), (QuantType.QUInt8, False)]


def steps_off(model: onnx.ModelProto, built: BuildResult, x: Array) -> float:
    """The largest difference between an int8 build and onnxruntime, in steps of the output."""
    off = [np.abs(inferred(built, sample) - expected(model, {"x": sample})[0].reshape(-1)) for sample in x]
    return float(np.max(off)) / step_of(built)


@pytest.mark.parametrize(("kind", "per_channel"), KINDS)
@every("seed", range(6), share=2)
@pytest.mark.parametrize("network", [image_network, sequence_network])
def test_random_networks_follow_onnxruntime(
    network: Callable[[int], onnx.ModelProto], seed: int, kind: QuantType, per_channel: bool
) -> None:
    plain = network(seed)
    samples, fresh = samples_of(plain), samples_of(plain, 4, 99)
    model = quantized(plain, samples, activation_type=kind, per_channel=per_channel)
    graph = read_graph(model.SerializeToString(), "m")

    # The float32 graph follows the file, within a step where a number lies between two steps.
    fused = fuse(graph)
    for x, mine in zip(fresh, check_samples({"x": fresh}, fused)["x"], strict=True):
        wanted = expected(model, {"x": x})[0].reshape(-1)
        found = fused.run({"x": mine})[fused.outputs[0]].reshape(-1)
        assert np.mean(np.abs(found - wanted) > 1e-3 * np.abs(wanted).max()) < 0.3

    # With samples for tensors without a scale; without samples if every tensor has a scale or gets it from earlier
    # layers.
    for given in ({"x": samples}, None):
        try:
            built = build(graph, Options("m", method="minmax"), given)
        except UnsupportedError as error:
            assert given is None and "--calibration" in str(error)
        else:
            assert steps_off(model, built, fresh) < 8

    floats = build(graph, Options("m", floats=True), {"x": samples})
    assert floats.program.is_float
    unrounded = saturating(model)
    for x in fresh:
        wanted = expected(unrounded, {"x": x})[0].reshape(-1)
        np.testing.assert_allclose(inferred(floats, x), wanted, rtol=1e-3, atol=1e-4)


def relu_in_the_quantizer() -> onnx.ModelProto:
    """A convolution whose output is positive only because QuantizeLinear saturates."""
    m = Maker()
    m.weight("w", 4, 3, 3, 3)
    m("Conv", "x w", "a")
    m.constant("s", np.float32(0.03))
    m.constant("z", -128, "int8")
    m("QuantizeLinear", "a s z", "q")
    m("DequantizeLinear", "q s z", "b")
    m("Neg", "b", "c")
    m("GlobalAveragePool", "c", "y")
    return m.model([1, 3, 6, 6])


@pytest.mark.parametrize("how", ["samples", "floats"])
def test_values_that_a_quantizer_cuts_off_stay_cut_off(how: str) -> None:
    model = relu_in_the_quantizer()
    samples = samples_of(model, 20)
    graph = read_graph(model.SerializeToString(), "m")
    built = build(graph, Options("m", method="minmax", floats=how == "floats"), {"x": samples})
    assert built.graph.is_float == (how == "floats")
    for x in samples:
        (wanted,) = expected(model, {"x": x})
        near = 0.09 if how == "floats" else 3 * max(step_of(built), 0.01)
        assert wanted.max() <= 0 and np.abs(inferred(built, x) - wanted.reshape(-1)).max() < near


def lstm(before: str, after: str) -> onnx.ModelProto:
    """An LSTM. before, after: operators around it, each with its own scale."""
    n = Network(3)
    m = n.m
    m.constant("sx", np.float32(0.02))
    m.constant("zx", 3, "int8")
    n.then("QuantizeLinear", "sx", "zx")
    n.then("DequantizeLinear", "sx", "zx")
    m.weight("W", 1, 32, 5)
    m.weight("R", 1, 32, 8)
    m.weight("B", 1, 64)
    n.then("LSTM", "W", "R", "B", hidden_size=8)
    m.constant("ax", [1])
    if before:
        n.then("Squeeze", "ax")
    m.constant("sy", np.float32(0.0031))
    m.constant("zy", -20, "int8")
    n.then("QuantizeLinear", "sy", "zy")
    n.then("DequantizeLinear", "sy", "zy")
    if after:
        n.then(after)
    return n.done([12, 1, 5])


@pytest.mark.parametrize("before", ["", "Squeeze"])
@pytest.mark.parametrize("after", ["", "Tanh", "Relu"])
@pytest.mark.parametrize("with_samples", [False, True])
def test_an_lstm_keeps_the_grid_of_its_kernel_whatever_comes_behind(
    before: str, after: str, with_samples: bool
) -> None:
    model = lstm(before, after)
    samples = samples_of(model, 20)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"), {"x": samples} if with_samples else None)
    (layer,) = (layer for layer in built.graph.layers if layer.kind == "lstm")
    assert built.graph.grids[layer.output] == Grid(1 / 128, 128)
    # One step of the LSTM is 2.5 steps of the quantizer after it.
    assert steps_off(model, built, samples_of(model, 6, 7)) < 8


def test_two_quantizers_of_one_tensor_are_both_kept() -> None:
    n = Network(5)
    n.conv(3, 4, 3)
    a = n.at
    for k, (scale, zero) in enumerate(((0.02, -128), (0.04, 0))):
        n.at = a
        n.m.constant(f"s{k}", np.float32(scale))
        n.m.constant(f"z{k}", zero, "int8")
        n.then("QuantizeLinear", f"s{k}", f"z{k}")
        n.then("DequantizeLinear", f"s{k}", f"z{k}")
        n.then("GlobalAveragePool")
    first, second = "t6", n.at
    n.at = first
    n.then("Sub", second)
    model = n.done([1, 3, 6, 6])
    samples = samples_of(model, 20)
    graph = read_graph(model.SerializeToString(), "m")
    with pytest.raises(UnsupportedError, match="no scale for"):
        build(graph, Options("m"))
    built = build(graph, Options("m"), {"x": samples})
    assert steps_off(model, built, samples_of(model, 6, 3)) < 5


# -- channels with hardly any weights ---------------------------------------------------------------------------------


def mobile_network(seed: int, nearly: float) -> onnx.ModelProto:
    """Depthwise and pointwise convolutions, each with some channels that are almost only a bias."""
    n, rng = Network(seed), np.random.default_rng(seed)
    c = 3
    for wide in (8, 12):
        n.conv(c, wide, 3, strides=2)
        n.activation("Clip")
        n.conv(wide, wide, 3, wide)
        n.activation("Clip")
        c = wide
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(c, 4)
    model = n.done([1, 3, 12, 12])
    for tensor in model.graph.initializer:
        x = numpy_helper.to_array(tensor).copy()
        if x.ndim >= 2:
            dead = rng.random(len(x)) < 0.4
            x[dead] *= nearly
            tensor.CopyFrom(numpy_helper.from_array(x, tensor.name))
    return model


def with_biases_at_the_end(model: onnx.ModelProto) -> onnx.ModelProto:
    """Nearly dead channels with such small scales that their biases reach 2**31, as TensorFlow's converter writes
    them."""
    constants = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in constants:
            continue
        q = numpy_helper.to_array(constants[node.input[0]])
        if q.dtype != np.int32:
            continue
        scale = numpy_helper.to_array(constants[node.input[1]]).astype(np.float64)
        value = q * scale
        weights = next(
            w for layer in model.graph.node if node.output[0] in layer.input for w in model.graph.node
            if w.op_type == "DequantizeLinear" and w.output[0] == layer.input[1]
        )  # fmt: skip
        own = numpy_helper.to_array(constants[weights.input[1]]).astype(np.float64)
        dead = own < 1e-4 * own.max()
        shrunk = np.where(dead, np.abs(value) / (2**31 - 200) / np.maximum(scale, 1e-300), 1.0)
        shrunk = np.where(shrunk > 0, shrunk, 1.0)
        for name, array in (
            (node.input[0], np.rint(value / (scale * shrunk)).astype(np.int32)),
            (node.input[1], (scale * shrunk).astype(np.float32)),
            (weights.input[1], (own * shrunk).astype(np.float32)),
        ):
            constants[name].CopyFrom(numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize(
    ("nearly", "at_the_end"),
    [(0.0, False), (1e-12, False), (1e-9, False), (1e-4, False), (1e-12, True), (1e-9, True), (1e-6, True)],
)
@pytest.mark.parametrize("seed", range(3))
def test_channels_with_hardly_any_weights_are_built(seed: int, nearly: float, at_the_end: bool) -> None:
    plain = mobile_network(seed, nearly)
    samples = samples_of(plain)
    model = quantized(plain, samples, per_channel=True)
    if at_the_end:
        model = with_biases_at_the_end(model)
        biases = [x for x in map(numpy_helper.to_array, model.graph.initializer) if x.dtype == np.int32]
        assert max(int(np.abs(x.astype(np.int64)).max(initial=0)) for x in biases) > 1 << 30
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert steps_off(model, built, samples_of(plain, 4, 8)) < 5
