"""Streams of 16-bit words: a step gives exactly the results of the whole window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.slide import Slide
from emberlet.micro.builder.quantization.indices import stored
from emberlet.micro.builder.quantization.sixteen import to_bytes, to_words
from emberlet.micro.builder.written import write
from onnx import TensorProto
from onnxruntime.quantization import QuantType
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.over_time import check, network_over_time
from support.microcontrollers.quantized import Network, quantized, samples_of

from tools.microcontrollers.models import desktop_boards
from tools.micropython import Port

KINDS = [QuantType.QInt16, QuantType.QUInt16]


def words_in(built: BuildResult) -> tuple[int, ...]:
    """The shape of the input, in words."""
    *before, last = built.graph.shapes[built.graph.inputs[0]]
    return (*before, last // 2)


@pytest.mark.parametrize("first", [0, 1])
def test_each_step_gives_what_the_whole_window_would(first: int) -> None:
    """24 networks, of which some compute new steps only and others the whole window from kept steps."""
    kind = KINDS[first]
    local = 0
    for seed in range(first, 24, 2):
        network, axis = network_over_time(seed)
        model = quantized(network, samples_of(network, 6), activation_type=kind)
        graph = read_graph(model.SerializeToString(), "m")
        try:
            whole = build(graph, Options("m"))
        except UnsupportedError as problem:
            assert "quantized only in part" in str(problem), (seed, problem)
            continue
        for new in (None, 3):
            stream = build(graph, Options("m", stream=axis, new_steps=new))
            check(whole.graph, stream.graph, axis, seed, gap=3)
            local += stream.program.macs < whole.program.macs
    assert local >= 4


def spotter() -> onnx.ModelProto:
    n = Network(2)
    n.m.weight("w0", 16, 10, 3)
    n.then("Conv", "w0")
    n.activation("Relu")
    n.m.weight("w1", 16, 1, 5)
    n.then("Conv", "w1", group=16)
    n.m.weight("w2", 12, 16, 1)
    n.then("Conv", "w2")
    n.activation("Tanh")
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(12, 4)
    return n.done([1, 10, 30])


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_a_stream_of_words_runs_on_micropython(port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    network = spotter()
    model = quantized(network, samples_of(network, 6), activation_type=QuantType.QInt16)
    graph = read_graph(model.SerializeToString(), "model")
    options = Options("model", "file", desktop_boards(), stream=2)
    whole, stream = build(graph, Options("model")), build(graph, options)
    assert stream.program.macs * 5 < whole.program.macs
    assert any(isinstance(layer, Slide) for layer in stream.graph.layers)
    write(stream, options, tmp_path)
    arch = "x64" if port_name == "unix_port" else "armv7emdp"
    steps = np.random.default_rng(3).integers(0, 65536, (12, *words_in(stream)))
    script = (
        f"import json, sys\nsys.path[:] = [{str(tmp_path / arch)!r}]\nimport model\nfound = []\n"
        "for turn in range(2):\n    model.reset()\n"
        f"    for x in {[list(to_bytes(s).reshape(-1).tolist()) for s in steps]!r}:\n"
        "        model.input[:] = bytes(x)\n        model.run()\n        found.append(list(model.output))\n"
        "print(json.dumps(found))\n"
    )
    port: Port = request.getfixturevalue(port_name)
    found = json.loads(port.run(script, heap="1M", micropypath=[], files=[tmp_path]).check().stdout)
    states: dict[str, Any] = {}
    name, output = stream.graph.inputs[0], stream.graph.outputs[0]
    wanted = [stream.graph.run({name: to_bytes(s)}, states)[output].reshape(-1).tolist() for s in steps]
    assert found == wanted + wanted


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_states_that_are_quantized_where_they_come_in_stay_on_the_board(kind: type) -> None:
    """A convolution over the last four steps, three of which are outputs that return as inputs."""
    scales = {np.int8: (0.02, 0.05), np.int16: (1e-4, 3e-4)}[kind]
    m = Maker(1)
    m.constant("s", np.array(scales[0], np.float32))
    m.constant("coarse", np.array(scales[1], np.float32))
    m.constant("z", np.array(0, kind))
    for name in ("x", "old"):
        m("QuantizeLinear", f"{name} s z", f"{name}_q")
        m("DequantizeLinear", f"{name}_q s z", f"{name}_d")
    m("Concat", "old_d x_d", "both", axis=2)
    m("QuantizeLinear", "both s z", "both_q")
    m("DequantizeLinear", "both_q s z", "both_d")
    weights = m.rng.integers(-127, 128, (3, 3, 4))
    weights[:, 0, 0] = 127  # 8 bits hold them
    m.constant("w", (weights / 127).astype(np.float32))
    m("Conv", "both_d w", "t")
    m("QuantizeLinear", "t coarse z", "t_q")
    m("DequantizeLinear", "t_q coarse z", "t_d")
    for name, value in (("start", [1]), ("end", [4]), ("axes", [2]), ("flat", [1, 3])):
        m.constant(name, value)
    m("Slice", "both_d start end axes", "new")
    m("Reshape", "t_d flat", "y")
    model = m.model([1, 3, 1], "y new", opset=21, ir=10)
    model.graph.input.append(onnx.helper.make_tensor_value_info("old", TensorProto.FLOAT, [1, 3, 3]))
    data = model.SerializeToString()
    built = build(read_graph(data, "m", None, {"old": "new"}), Options("m"))
    assert any(layer.kind == "keep" for layer in built.graph.layers)
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, plain, providers=["CPUExecutionProvider"])
    target = built.graph.outputs[0]
    old, states = np.zeros((1, 3, 3), np.float32), dict[str, Any]()
    for x in np.random.default_rng(0).uniform(-1.5, 1.5, (10, 1, 3, 1)).astype(np.float32):
        wanted, old = session.run(["y", "new"], {"x": x, "old": old})
        y = built.graph.run({"x": stored(built.graph, "x", x.reshape(-1))}, states)[target]
        grid = built.graph.grids[target]
        found = (((to_words(y) if grid.wide else y).reshape(-1)).astype(np.int64) - grid.zero) * grid.scale
        np.testing.assert_allclose(found, wanted.reshape(-1), atol=1.01 * scales[1])
