"""Clip whose lower bound is above its upper one: ONNX's min(max(x, low), high), so the upper bound everywhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
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


@pytest.mark.parametrize("kind", [None, QuantType.QInt8, QuantType.QInt16], ids=["float", "int8", "int16"])
@pytest.mark.parametrize("behind", [False, True])
def test_the_upper_bound_wins_as_in_onnxruntime(kind: QuantType | None, behind: bool) -> None:
    model = crossed(behind=behind)
    samples = 3 * samples_of(model, 12)
    if kind is not None:
        model = quantized(model, samples, activation_type=kind)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert built.program.is_float == (kind is None)
    step = 1e-5 if kind is None else 1.01 * built.graph.grids[built.graph.outputs[0]].scale
    for x in samples:
        np.testing.assert_allclose(inferred(built, x), as_written(model, x), atol=step)
