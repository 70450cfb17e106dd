"""Normalization of rows in integers, compared with exact numbers and with onnxruntime's results in steps of the
output."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.normalize import MOST, Normalize, NormalizeRows
from emberlet.micro.builder.kernels.sixteen.normalize import LENGTH, Normalize16
from emberlet.micro.builder.quantization.sixteen import to_bytes, to_words
from onnxruntime.quantization import QuantType
from support.microcontrollers.onnx_models import Array, Maker
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred

KINDS = [QuantType.QInt16, QuantType.QUInt16]

SPREADS = (0.1, 0.3, 1, 2, 5, 20, 100, 3000, 30000)
"""Standard deviations of a row, in steps."""


def steps_off(layer: type[NormalizeRows], length: int, spread: float, rng: np.random.Generator) -> float:
    """How far a layer drawn at random is from exact numbers, in steps of its output, at most."""
    last = 256**layer.width - 1
    zero, centered = int(rng.choice([0, last // 2 + 1, int(rng.integers(last))])), bool(rng.random() < 0.6)
    middle = rng.uniform(0, last) if centered else zero
    x = np.clip(np.rint(rng.normal(middle, min(spread, last / 4), (2, length))), 0, last).astype(np.int64)
    g, b = rng.normal(0, 1, length), rng.normal(0, 1, length)
    scale = 10.0 ** rng.uniform(-4, -2)
    epsilon = float(10.0 ** rng.uniform(-8, 0) * (spread * scale) ** 2)
    numbers = (x - zero) * scale
    d = numbers - numbers.mean(1, keepdims=True) if centered else numbers
    exact = d / np.sqrt((d * d).mean(1, keepdims=True) + epsilon) * g + b
    out = max(float(np.abs(exact).max()) / (last // 2), 1e-6)
    at = ("norm", ("x",), "y", 2, length, g, b, 0, centered, epsilon, scale, zero, out, last // 2 + 1)
    made = layer(*at)
    y = made.reference(to_bytes(x) if layer.width == 2 else x.astype(np.uint8))
    found = (to_words(y) if layer.width == 2 else y.astype(np.int64)) - (last // 2 + 1)
    return float(np.abs(found - exact / out).max())


@pytest.mark.parametrize("layer", [Normalize, Normalize16])
@pytest.mark.parametrize("length", [1, 2, 3, 64, 1000, LENGTH])
def test_a_row_of_any_spread_is_at_most_two_steps_off(layer: type[NormalizeRows], length: int) -> None:
    """Including rows whose numbers lie within a step of each other, since the sum of the squares keeps a fraction."""
    rng = np.random.default_rng(length)
    for spread in SPREADS:
        for _ in range(4):
            assert steps_off(layer, length, spread, rng) < 2, spread


def test_shifts_far_beyond_the_output_are_kept() -> None:
    """Those that a factor cancels out: what is added fits its word too, however small the factor is."""
    x = np.array([[3, 5]], np.uint8)
    layer = Normalize("norm", ("x",), "y", 1, 2, np.array([1.8, -1.8]), np.full(2, 3.0), 0, True, 0, 1, 0, 0.01, 128)
    np.testing.assert_array_equal(layer.reference(x), [[120 + 128] * 2])


def test_a_row_that_is_too_long_is_refused() -> None:
    g = np.ones(LENGTH + 1)
    layer = Normalize16("norm", ("x",), "y", 1, LENGTH + 1, g, g, 0, True, 1e-6, 1e-4, 0, 1e-4, 0)
    with pytest.raises(UnsupportedError, match=f"at most {LENGTH} are supported; build the model with --float"):
        layer.check()
    assert LENGTH < MOST


def normalized(op: str, seed: int) -> onnx.ModelProto:
    n = Network(seed)
    n.dense(12, 24)
    if op == "LayerNormalization":
        n.m.weight("g", 24, scale=1)
        n.m.weight("b", 24, scale=1)
        n.then(op, "g", "b")
    else:
        n.m.constant("image", [1, 4, 2 * 7, 3])
        n.then("Reshape", "image")
        n.m.weight("g", 4, scale=1)
        n.m.weight("b", 4, scale=1)
        n.then(op, "g", "b")
        n.m.constant("flat", [7, 24])
        n.then("Reshape", "flat")
    n.dense(24, 5)
    return n.done([7, 12])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization"])
def test_networks_with_normalization_follow_onnxruntime(op: str, kind: QuantType) -> None:
    for seed in range(3):
        network = normalized(op, seed)
        samples = samples_of(network, 8)
        model = quantized(network, samples, activation_type=kind)
        if op not in {n.op_type for n in model.graph.node}:
            pytest.fail("nothing to test")
        built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
        assert any(isinstance(layer, Normalize16) for layer in built.graph.layers)
        scale = built.graph.grids[built.graph.outputs[0]].scale
        off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) / scale for x in samples])
        assert off.max() < 4.1, (seed, off.max())


def alone(op: str, kind: type, spread: float, rng: np.random.Generator) -> tuple[onnx.ModelProto, Array]:
    """A normalization between Q and DQ of 16 bits, and inputs of that spread, in steps."""
    channels, length = 2 * int(rng.integers(1, 5)), int(rng.integers(2, 30))
    groups = int(rng.choice([g for g in (1, 2, channels) if channels % g == 0]))
    shape = [1, channels, length]
    step, zero = float(10.0 ** rng.uniform(-5, -2)), 0 if kind is np.int16 else 32768
    epsilon = float(10.0 ** rng.uniform(-6, 0) * (spread * step) ** 2)
    m = Maker(int(rng.integers(1 << 30)))
    m.constant("s", np.array(step, np.float32))
    m.constant("out", np.array(4e-4 if op == "LpNormalization" else 3e-4, np.float32))
    m.constant("z", np.array(zero, kind))
    m("QuantizeLinear", "x s z", "q")
    m("DequantizeLinear", "q s z", "d")
    count = channels if op in ("InstanceNormalization", "GroupNormalization") else length
    m.weight("g", count, scale=1)
    m.weight("b", count, scale=1)
    more: dict[str, Any] = {} if op == "LpNormalization" else {"epsilon": epsilon}
    more |= {"num_groups": groups} if op == "GroupNormalization" else {}
    more |= {"axis": int(rng.choice([1, 2])), "p": 2} if op == "LpNormalization" else {}
    given = {"RMSNormalization": "d g", "LpNormalization": "d"}.get(op, "d g b")
    m(op, given, "n", **more)
    m("QuantizeLinear", "n out z", "p")
    m("DequantizeLinear", "p out z", "y")
    model = m.model(shape, opset=23, ir=11)
    middle = 0 if op in ("RMSNormalization", "LpNormalization") else rng.normal(0, 9 * spread)
    x = np.rint(rng.normal(middle, spread, (4, *shape))) * step
    return model, x.astype(np.float32)


@pytest.mark.parametrize("kind", [np.int16, np.uint16])
@pytest.mark.parametrize(
    "op",
    [
        *("LayerNormalization", "InstanceNormalization", "GroupNormalization"),
        *("RMSNormalization", "LpNormalization"),
    ],
)
def test_every_normalization_of_words_follows_onnxruntime(op: str, kind: type) -> None:
    """At any spread, including rows within a few steps."""
    rng = np.random.default_rng([len(op), kind is np.int16])
    for spread in (0.5, 1, 3, 20, 1000, 5000):
        for _ in range(3):
            model, xs = alone(op, kind, spread, rng)
            built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
            (layer,) = (layer for layer in built.graph.layers if isinstance(layer, NormalizeRows))
            assert isinstance(layer, Normalize16)
            off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) for x in xs]) / layer.scale_out
            assert off.max() < 2, (spread, off.max())
