"""Normalizations and activations that a file writes in parts are one layer each on a microcontroller."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
parts (float[1, 6] x) => (float[1, 6] y)
<float root = {1.4142135}, float one = {1.0}, float half = {0.5}, float two = {2.0}, float eps = {0.00001},
 float[6] w = {0.5, 0.75, 1.0, 1.25, 1.5, 1.75}, float[6] b = {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}> {
    m = ReduceMean<axes = [-1]>(x)  c = Sub(x, m)  q = Pow(c, two)  v = ReduceMean<axes = [-1]>(q)
    e = Add(v, eps)  s = Sqrt(e)  n = Div(c, s)  p = Mul(n, w)  h = Add(p, b)
    d = Div(h, root)  f = Erf(d)  a = Add(f, one)  g = Mul(h, a)  y = Mul(g, half)
}"""


def test_a_layer_normalization_and_a_gelu_in_parts_are_two_layers() -> None:
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    xs = np.random.default_rng(3).normal(1, 3, (20, 1, 6)).astype(np.float32)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = np.stack([session.run(None, {"x": x})[0] for x in xs])

    floats = build(read_graph(data, "m"), Options("m"))
    assert len(floats.program.steps) == 2
    found = [np.reshape(floats.graph.run({"x": x})["y"], (1, 6)) for x in xs]
    np.testing.assert_allclose(np.stack(found), expected, rtol=1e-5, atol=1e-6)
