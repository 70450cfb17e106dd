"""Pooling in ceil_mode computes as many positions as onnxruntime, whatever remainder the stride leaves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.calibrate import check_samples
from support.microcontrollers.onnx_models import Maker
from support.onnx_models import expected


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("stride", "dilation"), [*itertools.product((1, 2, 3), (1,)), (1, 2), (2, 2)])
def test_the_last_window_may_reach_over_the_edge(op: str, stride: int, dilation: int) -> None:
    for size, kernel in itertools.product((6, 7, 8), (2, 3)):
        m = Maker(size)
        more = {"dilations": [dilation, dilation]} if dilation > 1 else {}
        m(op, "x", "y", kernel_shape=[kernel, kernel], strides=[stride, stride], ceil_mode=1, **more)
        model = m.model([1, 2, size, size], opset=19, ir=9)
        x = np.random.default_rng(kernel).standard_normal((1, 2, size, size)).astype(np.float32)
        (wanted,) = expected(model, {"x": x})
        built = build(read_graph(model.SerializeToString(), "m"), Options("m", floats=True))
        (name,) = built.graph.outputs
        given = check_samples({"x": x[None]}, built.graph)["x"][0]
        found = built.graph.run({"x": given})[name].reshape(wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
