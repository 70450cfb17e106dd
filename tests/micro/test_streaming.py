"""Random networks over time: a stream's steps give exactly the results of the whole window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.errors import ModelError, UnsupportedError
from emberlet.micro.builder.build import Options, build, calibrated
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.slide import Slide
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.reference import dequantize, quantize
from emberlet.micro.builder.streaming import streamed
from onnx import TensorProto, helper
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.over_time import check, network_over_time
from support.microcontrollers.quantized import Network, samples_of
from support.onnx_models import expected
from support.rows import every

from tools.microcontrollers.models import deployed, desktop_boards
from tools.micropython import Port


def quantized_graph(graph: Graph, model: onnx.ModelProto) -> Graph:
    return calibrated(fuse(graph), {"x": samples_of(model, 12)}, Options("m", method="minmax"))[0]


@every("seed", range(14), share=3)
def test_each_step_gives_what_the_whole_window_would(seed: int) -> None:
    model, axis = network_over_time(seed)
    graph = read_graph(model.SerializeToString(), "m")
    # Outputs along time are moved into the model's order behind the last layer: as they lie, they stream.
    for whole in (quantized_graph(graph, model), fuse(graph)):
        for new in (None, 1, 3):
            stream = streamed(whole, axis, new)
            check(whole, stream, axis, seed, calls=30, gap=4)
            plan(stream)


def keyword_spotter() -> onnx.ModelProto:
    """A streaming keyword spotter: separable convolutions over 30 frames of 10 bands, without padding in time."""
    n = Network(2)
    m = n.m
    m.weight("w0", 16, 10, 3)
    n.then("Conv", "w0")
    n.activation("Relu")
    for k in (5, 7):
        m.weight(f"d{k}", 16, 1, k)
        n.then("Conv", f"d{k}", group=16)
        m.weight(f"p{k}", 16, 16, 1)
        n.then("Conv", f"p{k}")
        n.activation("Relu")
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(16, 3)
    n.then("Softmax")
    return n.done([1, 10, 30])


def test_convolutions_over_time_compute_new_steps_only() -> None:
    model = keyword_spotter()
    graph = read_graph(model.SerializeToString(), "m")
    whole = quantized_graph(graph, model)
    stream = streamed(whole, 2)
    assert stream.shapes["x"] == (1, 10)
    assert [x.macs for x in stream.layers if x.macs] == [480, 80, 256, 112, 256, 48]
    assert sum(x.macs for x in stream.layers) * 15 < sum(x.macs for x in whole.layers)
    # Each kept tensor has one copy, and no step moves more than it keeps.
    kept = [x for x in stream.layers if isinstance(x, Slide)]
    assert sorted(x.shape for x in kept) == [(3, 10), (5, 16), (7, 16), (18, 16)]


def test_a_causal_network_streams_where_its_last_step_is_taken() -> None:
    m = Maker()
    at = "x"
    for k, dilation in enumerate((1, 2, 4)):
        m.weight(f"w{k}", 4, 4, 3)
        m("Conv", f"{at} w{k}", f"a{k}", dilations=[dilation], pads=[2 * dilation, 0])
        m("Relu", f"a{k}", f"b{k}")
        at = f"b{k}"
    m.constant("last", -1, "int64")
    m("Gather", f"{at} last", "y", axis=2)
    for steps, whole_windows in ((15, 0), (14, 3)):  # the receptive field is 15 steps
        graph = fuse(read_graph(m.model([1, 4, steps]).SerializeToString(), "m"))
        stream = streamed(graph, 2)
        assert sum(x.window.is_padded for x in stream.layers if x.kind == "conv") == whole_windows
        check(graph, stream, 2, 0, calls=30, gap=4)


def test_a_stream_of_large_indices_is_built_with_float() -> None:
    m = Maker()
    m.weight("w", 300, 4, 3)
    m("Conv", "x w", "a")
    m.constant("last", -1, "int64")
    m("Gather", "a last", "b", axis=2)
    m("ArgMax", "b", "i", axis=1)
    m("Cast", "i", "y", to=1)
    model = m.model([1, 4, 6])
    graph = read_graph(model.SerializeToString(), "m")
    with pytest.raises(UnsupportedError, match=r"indices of two bytes.*--float"):
        build(graph, Options("m", stream=2), {"x": samples_of(model, 12)})
    assert build(graph, Options("m", stream=2, floats=True)).program.is_float


@pytest.mark.parametrize("floats", [False, True])
def test_a_stream_runs_on_micropython(floats: bool, unix_port: Port, tmp_path: Path) -> None:
    model = keyword_spotter()
    graph = read_graph(model.SerializeToString(), "spotter")
    boards = desktop_boards()
    options = Options("spotter", boards=boards, method="minmax", floats=floats, stream=2)  # type: ignore[arg-type]
    built = build(graph, options, None if floats else {"x": samples_of(model, 12)})
    folder = deployed(built, options, tmp_path, unix_port.name)
    frames = np.random.default_rng(4).standard_normal((40, 10)).astype(np.float32)
    script = f"""
import gc, json, sys
sys.path[:] = ["{folder}"]
import spotter as model
frames = json.loads('''{json.dumps(frames.tolist())}''')
found = [model.predict(f) for f in frames]
before = taken = 0
gc.collect()
gc.disable()
before = gc.mem_alloc()
model.run()
taken = gc.mem_alloc() - before
gc.enable()
model.reset()
print(json.dumps([found, [model.predict(f) for f in frames[:5]], taken]))
"""
    found, again, taken = json.loads(unix_port.run(script, micropypath=[]).check().stdout)
    assert again == found[:5]
    assert floats or taken == 0
    padded = np.concatenate([np.zeros((30, 10), np.float32), frames])
    for k, y in enumerate(found):
        (wanted,) = expected(model, {"x": padded[k + 1 : k + 31].T[None]})
        np.testing.assert_allclose(y, wanted.reshape(-1), atol=1e-4 if floats else 0.05)


def test_the_command_line_says_what_a_call_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = keyword_spotter()
    onnx.save(model, tmp_path / "spotter.onnx")
    np.savez(tmp_path / "samples.npz", x=samples_of(model, 12))
    build_it = ["build", str(tmp_path / "spotter.onnx"), "--calibration", str(tmp_path / "samples.npz")]
    build_it += ["--out", str(tmp_path / "dist"), "--board", "rp2"]
    assert main([*build_it, "--stream", "2"]) == 0
    assert "input   x: 1 × 10 (steps × channels), the new ones of 30 steps" in capsys.readouterr().out
    assert main([*build_it, "--stream", "2", "--new-steps", "4"]) == 0
    assert "input   x: 4 × 10" in capsys.readouterr().out
    with pytest.raises(UnsupportedError, match=r"--stream 5: input 'x' has the axes 1 \(10\), 2 \(30\)"):
        main([*build_it, "--stream", "5"])
    with pytest.raises(UnsupportedError, match="--new-steps is 31, expected 1 to 30"):
        main([*build_it, "--stream", "2", "--new-steps", "31"])


# -- models that carry their state as inputs and outputs --------------------------------------------------------------


def carrying(seed: int) -> tuple[bytes, dict[str, str], list[int]]:
    """Convolutions over one new step and the steps kept in caches, one cache each."""
    m, rng = Maker(seed), np.random.default_rng(seed)
    bands, at, depth, states, inputs = int(rng.choice([0, 5])), "x", 4, {}, []
    m.constant("axis", [2])
    layers = int(rng.integers(1, 4))
    for k in range(layers):
        reach = int(rng.integers(2, 5))
        cache, wide = [1, depth, reach - 1, *([bands] if bands else [])], int(rng.choice([4, 6]))
        inputs.append(helper.make_tensor_value_info(f"cache{k}", TensorProto.FLOAT, cache))
        m("Concat", f"cache{k} {at}", f"a{k}", axis=2)
        m.constant(f"from{k}", [1])
        m.constant(f"to{k}", [reach])
        m("Slice", f"a{k} from{k} to{k} axis", f"new{k}")
        states[f"cache{k}"] = f"new{k}"
        m.weight(f"w{k}", wide, depth, reach, *([3] if bands else []), scale=0.3)
        m.weight(f"b{k}", wide)
        m("Conv", f"a{k} w{k} b{k}", f"c{k}", **({"pads": [0, 1, 0, 1]} if bands else {}))
        m("Tanh", f"c{k}", f"d{k}")
        at, depth = f"d{k}", wide
    m("Flatten", at, "y")
    shape = [1, 4, 1, *([bands] if bands else [])]
    model = m.model(list(shape), " ".join(["y", *states.values()]))
    model.graph.input.extend(inputs)
    return bytes(model.SerializeToString()), states, shape


@every("seed", range(8), share=2)
def test_states_that_go_out_and_come_in_stay_on_the_board(seed: int) -> None:
    model, states, shape = carrying(seed)
    graph = fuse(read_graph(model, "m", None, states))
    assert graph.inputs == ("x",) and len(graph.outputs) == 1 and len(graph.states) == len(states)
    session = onnxruntime.InferenceSession(model)
    before = {i.name: np.zeros(i.shape, np.float32) for i in session.get_inputs() if i.name != "x"}
    x = np.random.default_rng(seed).standard_normal((60, *shape)).astype(np.float32)
    quantized = calibrated(graph, {"x": x}, Options("m", method="minmax"))[0]
    plan(quantized)
    kept: dict[str, Any] = {}
    rounded: dict[str, Any] = {}
    for sample, mine in zip(x[:20], check_samples({"x": x}, graph)["x"], strict=False):
        y, *after = session.run(None, {"x": sample, **before})
        before = dict(zip(states, after, strict=True))
        found = graph.run({"x": mine}, kept)[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), y.reshape(-1), rtol=1e-4, atol=1e-5)
        grid, out = quantized.grids["x"], quantized.grids[quantized.outputs[0]]
        z = quantized.run({"x": quantize(mine, grid.scale, grid.zero)}, rounded)[quantized.outputs[0]]
        assert np.abs(dequantize(z, out.scale, out.zero).reshape(-1) - y.reshape(-1)).mean() < 0.06


@pytest.mark.parametrize("how", ["Identity", "Squeeze", "Neg"])
def test_an_output_that_is_a_state_is_what_it_was_before(how: str) -> None:
    m = Maker()
    m.constant("ax", [0])
    m(how, "cache ax" if how == "Squeeze" else "cache", "y")
    m("Add", "x cache", "new")
    model = m.model([1, 4], "y new")
    model.graph.input.append(helper.make_tensor_value_info("cache", TensorProto.FLOAT, [1, 4]))
    built = build(read_graph(model.SerializeToString(), "m", None, {"cache": "new"}), Options("m", floats=True))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    before, kept = np.zeros((1, 4), np.float32), dict[str, Any]()
    (state,), (out,) = built.program.kept, built.program.outputs
    for k in range(3):
        x = np.random.default_rng(k).standard_normal((1, 4)).astype(np.float32)
        wanted, before = session.run(["y", "new"], {"x": x, "cache": before})
        found = built.graph.run({"x": x}, kept)[built.graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-6)
    assert out.place != state[0]  # the state is written before the output is read


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ({"cache": "new0"}, "no input 'cache'; its inputs are x, cache0"),
        ({"cache0": "new"}, "no output 'new'; its outputs are y, new0"),
        ({"cache0": "y"}, "the state 'cache0' has"),
    ],
)
def test_states_that_do_not_fit_are_refused(states: dict[str, str], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        read_graph(carrying(0)[0], "m", None, states)
