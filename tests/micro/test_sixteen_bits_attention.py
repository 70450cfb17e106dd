"""Products of two tensors, and attention, on 16-bit words: a few of 65,536 steps from onnxruntime's results."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.sixteen.product import Product16
from emberlet.micro.builder.quantization.sixteen import sum_requant, to_bytes, to_words
from onnxruntime.quantization import QuantType
from support.microcontrollers.quantized import attention, quantized, samples_of
from support.microcontrollers.words import as_written, inferred

KINDS = [QuantType.QInt16, QuantType.QUInt16]


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


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 500, 5000])
def test_sums_of_products_of_any_depth_are_exact(depth: int) -> None:
    """With all operands at their limits, no part of a sum exceeds the bits that remain after the drop."""
    x = to_bytes(np.full(depth, 65535))
    drop = Product16.dropped(depth)
    requant = sum_requant(65535 / (depth * 65535.0**2 / 2**drop) * 0.999, depth * 65535.0**2 / 2**drop, 0)
    layer = Product16("p", ("x", "z"), "y", 1, depth, 1, (depth, 1), (1, depth), (), (0, 0), drop, requant)
    assert abs(int(to_words(layer.reference(x, x)).item()) - 65535 * 0.999) < 2
