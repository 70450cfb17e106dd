"""Normalization, and products of two tensors, on words of 16 bits: steps of 65,536 from what onnxruntime answers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.sixteen.normalize import LENGTH, Normalize16
from emberlet.micro.builder.kernels.sixteen.product import Product16
from emberlet.micro.builder.quantization.sixteen import deep, joined, parted
from onnxruntime.quantization import QuantType
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred

KINDS = [QuantType.QInt16, QuantType.QUInt16]


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
def test_normalization_follows_onnxruntime(op: str, kind: QuantType) -> None:
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


def attention(seed: int, heads: int = 2, length: int = 9, size: int = 8) -> onnx.ModelProto:
    """Self-attention as exporters write it, a residual, a normalization and a dense layer."""
    n, wide = Network(seed), heads * size
    source = n.at
    n.m.constant("apart", [length, heads, size])
    sides = {}
    for name, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        n.at = source
        n.dense(wide, wide)
        n.then("Reshape", "apart")
        sides[name] = n.then("Transpose", perm=order)
    n.at = sides["q"]
    n.then("MatMul", sides["k"])
    n.m.constant("scale", np.float32(size**-0.5))
    n.then("Mul", "scale")
    n.then("Softmax", axis=-1)
    n.then("MatMul", sides["v"])
    n.then("Transpose", perm=[1, 0, 2])
    n.m.constant("together", [length, wide])
    n.then("Reshape", "together")
    n.dense(wide, wide)
    n.then("Add", source)
    n.m.weight("g", wide, scale=1)
    n.m.weight("b", wide, scale=1)
    n.then("LayerNormalization", "g", "b")
    n.dense(wide, 4)
    return n.done([length, wide])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_attention_follows_onnxruntime(seed: int, kind: QuantType) -> None:
    network = attention(seed)
    samples = samples_of(network, 8)
    model = quantized(network, samples, activation_type=kind)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert sum(isinstance(layer, Product16) for layer in built.graph.layers) == 2
    scale = built.graph.grids[built.graph.outputs[0]].scale
    off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) / scale for x in samples])
    assert off.mean() < 3 and off.max() < 16, (off.mean(), off.max())


@pytest.mark.parametrize("length", [1, 3, 64, 1000, LENGTH])
def test_a_normalization_is_at_most_two_steps_off(length: int) -> None:
    rng = np.random.default_rng(length)
    for spread in (20, 100, 3000, 30000):
        x = np.clip(np.rint(rng.normal(33000, spread, (2, length))), 0, 65535).astype(np.int64)
        g, b = rng.normal(0, 1, length), rng.normal(0, 1, length)
        for centered in (True, False):
            numbers = (x - 30000) * 1e-4
            d = numbers - numbers.mean(1, keepdims=True) if centered else numbers
            exact = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-6) * g + b
            scale = max(float(np.abs(exact).max()) / 32767, 1e-6)
            at = ("norm", ("x",), "y", 2, length, g, b, 0, centered, 1e-6, 1e-4, 30000, scale, 32768)
            layer = Normalize16(*at)
            layer.check()
            found = (joined(layer.reference(parted(x))) - 32768) * scale
            assert np.abs(found - exact).max() / scale < 2, (spread, centered)


def test_a_row_that_is_too_long_is_refused() -> None:
    g = np.ones(LENGTH + 1)
    layer = Normalize16("norm", ("x",), "y", 1, LENGTH + 1, g, g, 0, True, 1e-6, 1e-4, 0, 1e-4, 0)
    with pytest.raises(UnsupportedError, match=f"at most {LENGTH} are supported; build the model with --float"):
        layer.check()


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 500, 5000])
def test_sums_of_products_of_any_depth_are_exact(depth: int) -> None:
    """All operands at their ends: no part of a sum outgrows what the drop leaves it."""
    x = parted(np.full(depth, 65535))
    drop = Product16.dropped(depth)
    requant = deep(65535 / (depth * 65535.0**2 / 2**drop) * 0.999, depth * 65535.0**2 / 2**drop, 0)
    layer = Product16("p", ("x", "z"), "y", 1, depth, 1, (depth, 1), (1, depth), (), (0, 0), drop, requant)
    assert abs(int(joined(layer.reference(x, x)).item()) - 65535 * 0.999) < 2
