"""Clip whose lower bound is above its upper one: ONNX's min(max(x, low), high), so the upper bound everywhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.reference import dequantize, quantize
from onnxruntime.quantization import QuantType
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred


def crossed(*, behind: bool) -> onnx.ModelProto:
    """behind: the Clip is behind a dense layer, else it is the first."""
    n = Network(0)
    n.m.constant("low", np.float32(2))
    n.m.constant("high", np.float32(-2))
    if behind:
        n.dense(6, 6)
    n.then("Clip", "low", "high")
    if not behind:
        n.dense(6, 6)
    return n.done([1, 6])


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("is_float", [True, False])
def test_the_upper_bound_wins_as_in_onnxruntime(is_float: bool, behind: bool) -> None:
    model = crossed(behind=behind)
    samples = 3 * samples_of(model, 12)
    given = None if is_float else {"x": samples}
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"), given)
    assert built.program.is_float == is_float
    source, target = built.program.inputs[0], built.program.outputs[0]
    for x in samples:
        if is_float:
            found = built.graph.run({source.name: x.reshape(source.shape)})[target.name]
            step = 1e-5
        else:
            stored = quantize(x.reshape(source.shape), source.scale, source.zero)
            found = dequantize(built.graph.run({source.name: stored})[target.name], target.scale, target.zero)
            step = 2 * target.scale
        np.testing.assert_allclose(found.reshape(-1), as_written(model, x), atol=step)


def test_at_16_bits_the_upper_bound_wins_too() -> None:
    model = crossed(behind=True)
    samples = 3 * samples_of(model, 12)
    model = quantized(model, samples, activation_type=QuantType.QInt16)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    for x in samples:
        step = 2 * built.graph.grids[built.graph.outputs[0]].scale
        np.testing.assert_allclose(inferred(built, x), as_written(model, x), atol=step)
