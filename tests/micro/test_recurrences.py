"""Random RNN and GRU layers: equal to onnxruntime in float32, close in int8, exact on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.reference import dequantize, quantize
from support.draws import some
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.quantized import samples_of
from support.onnx_models import expected

from tools.microcontrollers.running import inputs_in_arena, outputs_of, run_program
from tools.micropython import Port

SEEDS = some(range(24), 4, __name__)


def drawn(seed: int) -> onnx.ModelProto:
    """One layer, or one per direction, which outputs all steps, the last one, or both."""
    m, rng = Maker(seed), np.random.default_rng([seed, 3])
    op, gates = [("RNN", 1), ("GRU", 3)][seed % 2]
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    n = 2 if direction == "bidirectional" else 1
    steps, k, hidden = (int(v) for v in rng.integers(2, 9, 3))
    m.weight("W", n, gates * hidden, k, scale=0.5)
    m.weight("R", n, gates * hidden, hidden, scale=0.8 / hidden**0.5)
    m.weight("B", n, 2 * gates * hidden, scale=0.2)
    more: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "RNN" and rng.random() < 0.5:
        more["activations"] = ["Relu"] * n
    outputs = str(rng.choice(["y", "_ y", "y h"]))
    m.nodes.append(onnx.helper.make_node(op, ["x", "W", "R", "B"], outputs.replace("_", "").split(" "), **more))
    return m.model([steps, 1, k], outputs.replace("_", "").strip())


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_follow_onnxruntime(seed: int, unix_port: Port, tmp_path: Path) -> None:
    model = drawn(seed)
    samples = samples_of(model, 40, seed)
    graph = read_graph(model.SerializeToString(), "m")
    floats = build(graph, Options("m"))
    built = build(graph, Options("m", method="minmax"), {"x": samples})
    for x in samples_of(model, 3, seed + 100):
        wanted = expected(model, {"x": x})
        mine = check_samples({"x": x[None]}, floats.graph)["x"][0]
        found = floats.graph.run({"x": mine})
        for name, y in zip(floats.graph.outputs, wanted, strict=True):
            np.testing.assert_allclose(found[name].reshape(-1), y.reshape(-1), atol=1e-4)
        grid = built.graph.grids["x"]
        bytes_in = quantize(mine, grid.scale, grid.zero)
        answers = built.graph.run({"x": bytes_in})
        for name, y in zip(built.graph.outputs, wanted, strict=True):
            own = built.graph.grids[name]
            off = np.abs(dequantize(answers[name], own.scale, own.zero).reshape(-1) - y.reshape(-1))
            assert off.mean() < 0.04 * max(1.0, np.abs(y).max()), seed
    for dialect in ("viper", "bytecode"):
        arena = run_program(unix_port, built.program, dialect, inputs_in_arena(built.program, [bytes_in]), tmp_path)
        for name, y in zip(built.graph.outputs, outputs_of(built.program, arena), strict=True):
            assert y.reshape(-1).tolist() == answers[name].reshape(-1).tolist()
    arena = run_program(unix_port, floats.program, "float32", inputs_in_arena(floats.program, [mine]), tmp_path)
    for y, right in zip(outputs_of(floats.program, arena), wanted, strict=True):
        np.testing.assert_allclose(y.reshape(-1), right.reshape(-1), atol=1e-4)


@pytest.mark.parametrize("op", ["RNN", "GRU", "relu"])
def test_a_state_that_comes_in_is_kept(op: str) -> None:
    """One step per call gives the same results as all steps at once. With ReLU this is float32 only."""
    m = Maker(4)
    gates = 3 if op == "GRU" else 1
    m.weight("W", 1, gates * 6, 4)
    m.weight("R", 1, gates * 6, 6, scale=0.3)
    more: dict[str, Any] = {"activations": ["Relu"]} if op == "relu" else {}
    m("GRU" if op == "GRU" else "RNN", "x W R", "y", hidden_size=6, **more)
    whole = m.model([5, 1, 4])
    m.nodes[0].input.extend(["", "", "h0"])
    m.nodes[0].output.append("h")
    model = m.model([1, 1, 4], "y h")
    model.graph.input.append(onnx.helper.make_tensor_value_info("h0", onnx.TensorProto.FLOAT, [1, 1, 6]))
    x = samples_of(whole, 1)[0]
    floats = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    states: dict[str, Any] = {}
    (name,) = floats.graph.outputs
    found = [floats.graph.run({"x": step}, states)[name].reshape(-1) for step in x[:, 0]]
    np.testing.assert_allclose(np.concatenate(found), expected(whole, {"x": x})[0].reshape(-1), atol=1e-5)
    samples = {"x": np.random.default_rng(1).standard_normal((40, 1, 4)).astype(np.float32)}
    if op == "relu":
        with pytest.raises(UnsupportedError, match="--float"):
            build(read_graph(model.SerializeToString(), "m"), Options("m"), samples)
        return
    built = build(read_graph(model.SerializeToString(), "m"), Options("m", method="minmax"), samples)
    grid, states = built.graph.grids["x"], {}
    last = built.graph.grids[built.graph.outputs[0]]
    for step, right in zip(x[:, 0], expected(whole, {"x": x})[0].reshape(5, -1), strict=True):
        y = built.graph.run({"x": quantize(step, grid.scale, grid.zero)}, states)[built.graph.outputs[0]]
        assert np.abs(dequantize(y, last.scale, last.zero).reshape(-1) - right).max() < 0.08
