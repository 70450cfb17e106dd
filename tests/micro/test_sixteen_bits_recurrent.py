"""LSTM, GRU and plain recurrent layers on 16-bit words: a few of 65,536 steps from onnxruntime's results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.written import write
from onnx import TensorProto
from onnxruntime.quantization import QuantType
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.quantized import Network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred

from tools.microcontrollers.models import desktop_boards
from tools.micropython import Port

KINDS = [QuantType.QInt16, QuantType.QUInt16]


def recurrent(op: str, seed: int, direction: str = "forward", bits: int = 7, **more: Any) -> onnx.ModelProto:
    """A dense layer, a recurrent one and a dense one. bits: of the recurrent weights, beside their sign."""
    steps, k, hidden = 20, 8, 12
    n, sides = Network(seed), 2 if direction == "bidirectional" else 1
    n.dense(k, k)
    n.m.constant("axes", [1])
    n.then("Unsqueeze", "axes")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
    most = 2**bits - 1
    for name, size in (("W", k), ("R", hidden)):
        whole = n.rng.integers(-most, most + 1, (sides, gates, size))
        n.m.constant(name, (whole * (0.5 / most)).astype(np.float32))
    n.m.constant("B", n.rng.normal(0, 0.2, (sides, 2 * gates)).astype(np.float32))
    n.then(op, "W", "R", "B", hidden_size=hidden, direction=direction, **more)
    n.m.constant("flat", [1, steps * sides * hidden])
    n.then("Reshape", "flat")
    n.dense(steps * sides * hidden, 5)
    return n.done([steps, k])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "more"),
    [("LSTM", {}), ("GRU", {"linear_before_reset": 1}), ("GRU", {"linear_before_reset": 0}), ("RNN", {})],
    ids=["lstm", "gru", "gated gru", "rnn"],
)
def test_recurrent_layers_follow_onnxruntime(op: str, more: dict[str, Any], direction: str, kind: QuantType) -> None:
    network = recurrent(op, 5, direction, **more)
    samples = samples_of(network, 8)
    model = quantized(network, samples, activation_type=kind)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert not built.notes
    scale = built.graph.grids[built.graph.outputs[0]].scale
    off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) / scale for x in samples])
    assert off.max() < 3.1, off.max()


def test_a_plain_layer_with_relu_follows_onnxruntime() -> None:
    """Its output is on the next layer's grid: a QuantizeLinear and a DequantizeLinear follow."""
    network = recurrent("RNN", 3, activations=["Relu"])
    samples = samples_of(network, 8)
    model = quantized(network, samples, activation_type=QuantType.QInt16)
    reshaped = next(n for n in model.graph.node if n.op_type == "Reshape")
    source = next(n.output[0] for n in model.graph.node if n.op_type == "RNN")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(4e-4, np.float32), "h_scale"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(-32768, np.int16), "h_zero"))
    at = list(model.graph.node).index(reshaped)
    for op, made, given in (("DequantizeLinear", "h", "h_q"), ("QuantizeLinear", "h_q", source)):
        node = onnx.helper.make_node(op, [given, "h_scale", "h_zero"], [made], name=f"own {op}")
        model.graph.node.insert(at, node)
    reshaped.input[0] = "h"
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert "rnn16" in {layer.kind for layer in built.graph.layers}
    scale = built.graph.grids[built.graph.outputs[0]].scale
    off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) / scale for x in samples])
    assert off.max() < 20, off.max()


@pytest.mark.parametrize("bits", [5, 7, 9])
def test_recurrent_weights_that_8_bits_hold_are_kept(bits: int) -> None:
    network = recurrent("LSTM", 2, bits=bits)
    model = quantized(network, samples_of(network, 6), activation_type=QuantType.QInt16)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert len(built.notes) == (bits > 7)


def test_a_recurrent_layer_of_words_remembers_its_state(unix_port: Port, tmp_path: Path) -> None:
    m = Maker(1)
    m.constant("s", np.array(1e-4, np.float32))
    m.constant("z", np.array(0, np.int16))
    m("QuantizeLinear", "x s z", "q")
    m("DequantizeLinear", "q s z", "d")
    for name, size in (("W", 3), ("R", 4)):
        m.weight(name, 1, 16, size, scale=0.5)
    m("LSTM", "d W R _ _ h0 c0", "hs h1 c1", hidden_size=4)
    m.constant("flat", [1, 4])
    m("Reshape", "hs flat", "y")
    model = m.model([1, 1, 3], "y h1 c1", opset=21, ir=10)
    for name in ("h0", "c0"):
        model.graph.input.append(onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 4]))
    options = Options("model", "file", desktop_boards())
    built = build(read_graph(model.SerializeToString(), "model"), options)
    write(built, options, tmp_path)
    xs = samples_of(model, 6)
    script = (
        f"import json, sys\nsys.path[:] = [{str(tmp_path / 'x64')!r}]\nimport model\nfound = []\n"
        f"for turn in range(2):\n    model.reset()\n"
        f"    for x in {xs.reshape(6, -1).tolist()!r}:\n        found.append(model.predict(x))\n"
        "print(json.dumps(found))\n"
    )
    found = np.array(json.loads(unix_port.run(script, heap="1M", micropypath=[]).check().stdout))
    assert np.array_equal(found[:6], found[6:])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    h = c = np.zeros((1, 1, 4), np.float32)
    for x, y in zip(xs, found, strict=False):
        wanted, h, c = session.run(None, {"x": x, "h0": h, "c0": c})
        # The weights are rounded to 8 bits.
        np.testing.assert_allclose(y, wanted.reshape(-1), atol=0.01)
