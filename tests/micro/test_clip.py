"""Clip whose lower bound is above its upper one: ONNX's min(max(x, low), high), so the upper bound everywhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnxruntime.quantization import QuantType
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred, step_of


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
    for x in samples:
        near = 1e-5 if is_float else 2 * step_of(built)
        np.testing.assert_allclose(inferred(built, x), as_written(model, x), atol=near)


def test_at_16_bits_the_upper_bound_wins_too() -> None:
    model = crossed(behind=True)
    samples = 3 * samples_of(model, 12)
    model = quantized(model, samples, activation_type=QuantType.QInt16)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    for x in samples:
        np.testing.assert_allclose(inferred(built, x), as_written(model, x), atol=2 * step_of(built))
