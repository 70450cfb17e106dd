"""16-bit activations, quantized by onnxruntime to int16 and uint16: a few of 65,536 steps from its results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.errors import UnsupportedError
from emberlet.host import cli
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.arg import Arg
from emberlet.micro.builder.kernels.sixteen.dot import Dot16
from emberlet.micro.builder.kernels.sixteen.maps import PiecewiseLinear16, knots_of
from emberlet.micro.builder.kernels.sixteen.softmax import LogSoftmax16
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.indices import stored
from emberlet.micro.builder.quantization.sixteen import difference_requant, to_bytes, to_words
from emberlet.micro.builder.written import write
from onnx import TensorProto
from onnxruntime.quantization import QuantType
from support.microcontrollers.onnx_models import Maker
from support.microcontrollers.quantized import Network, classifier, image_network, quantized, samples_of
from support.microcontrollers.words import as_written, inferred
from support.rows import every

from tools.microcontrollers.models import desktop_boards
from tools.microcontrollers.random_layers import of_sixteen_bits, program_of
from tools.microcontrollers.running import run_program
from tools.micropython import Port

KINDS = [QuantType.QInt16, QuantType.QUInt16]


@pytest.mark.parametrize("first", [0, 1])
def test_networks_drawn_at_random_follow_onnxruntime(first: int) -> None:
    kind = KINDS[first]
    built_count, worst = 0, 0.0
    for seed in range(first, 24, 2):
        network = image_network(seed)
        samples = samples_of(network, 12)
        model = quantized(network, samples, activation_type=kind, per_channel=bool(seed // 2 % 2))
        try:
            built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
        except UnsupportedError as problem:
            assert "quantized only in part" in str(problem), (seed, problem)  # an input that nothing quantizes
            continue
        assert any(isinstance(layer, Dot16) for layer in built.graph.layers)
        scale = built.graph.grids[built.graph.outputs[0]].scale
        off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) / scale for x in samples])
        built_count, worst = built_count + 1, max(worst, float(off.max()))
        assert off.mean() < 3, (seed, off.mean())
    print("seeds to 23:", built_count, "networks, steps of 65,536 off at most:", worst)
    assert built_count >= 5
    assert worst < 16


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_a_board_gives_the_same_words(
    kind: QuantType, port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    network = classifier(1)
    samples = samples_of(network, 6)
    model = quantized(network, samples, activation_type=kind)
    options = Options("model", "file", desktop_boards())
    built = build(read_graph(model.SerializeToString(), "model"), options)
    write(built, options, tmp_path)
    arch = "x64" if port_name == "unix_port" else "armv7emdp"
    port: Port = request.getfixturevalue(port_name)
    laid = check_samples({"x": samples}, built.graph)["x"].reshape(len(samples), -1).tolist()
    script = (
        f"import json, sys, gc\nsys.path[:] = [{str(tmp_path / arch)!r}]\nimport model\nfound = []\n"
        f"for x in json.loads({json.dumps(laid)!r}):\n    y = model.predict(x)\n    found.append([y, model.best()])\n"
        "gc.collect()\ngc.disable()\nbefore = gc.mem_alloc()\nmodel.run()\nmodel.run()\n"
        "assert gc.mem_alloc() == before\n"
        "print(len(model.A), json.dumps(found))\n"
    )
    result = port.run(script, heap="1M", micropypath=[], files=[tmp_path]).check()
    arena, text = result.stdout.strip().split(" ", 1)
    assert int(arena) == built.costs[arch].arena
    wanted = [inferred(built, x) for x in samples]
    for (found, best), y in zip(json.loads(text), wanted, strict=True):
        np.testing.assert_allclose(found, y, atol=1e-6)
        assert best == int(y.argmax())


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_layers_drawn_at_random_are_bit_exact(port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    rng = np.random.default_rng(16)
    made = [of_sixteen_bits(rng) for _ in range(150)]
    program, arena, due = program_of(made)
    for dialect in ("viper", "bytecode"):
        found = run_program(request.getfixturevalue(port_name), program, dialect, arena, tmp_path)
        for case, (at, y) in zip(made, due, strict=True):
            assert found[at : at + y.size].tobytes() == y.tobytes(), case.layer


def test_a_log_softmax_is_at_most_a_step_off() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        length, scale = int(rng.integers(1, 1025)), 10.0 ** rng.uniform(-6, -2)
        x = rng.integers(0, 1 << 16, (3, length)) if rng.random() < 0.5 else rng.integers(40000, 40100, (3, length))
        numbers_ = x * scale
        exact = numbers_ - numbers_.max(1, keepdims=True)
        exact -= np.log(np.exp(exact).sum(1, keepdims=True))
        out = max(-exact.min() / 65535, 1e-6)
        layer = LogSoftmax16("log", ("x",), "y", 3, length, scale, difference_requant((scale / out,), (0,), 65535), out)
        layer.check()
        assert np.abs(to_words(layer.reference(to_bytes(x))) - 65535 - exact / out).max() < 1.5, layer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("many", [5, 300])
def test_the_greatest_of_words_is_found(kind: QuantType, many: int) -> None:
    n = Network(4)
    n.dense(6, many)
    n.then("ArgMax", axis=1)
    network = n.done([1, 6])
    network.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    samples = samples_of(network, 20)
    model = quantized(network, samples, activation_type=kind)
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    (layer,) = (layer for layer in built.graph.layers if isinstance(layer, Arg))
    assert layer.width == 2
    for x in samples:
        laid = check_samples({"x": x[None]}, built.graph)["x"][0]
        y = built.graph.run({"x": stored(built.graph, "x", laid)})[built.graph.outputs[0]].astype(int).reshape(-1)
        assert y[0] + (256 * y[1] if many > 256 else 0) == as_written(model, x)[0]


def test_activations_of_8_and_16_bits_may_be_mixed() -> None:
    network = classifier(2)
    samples = samples_of(network, 12)
    narrow = [n.output[0] for n in network.graph.node if n.op_type in ("Conv", "HardSwish", "Tanh")]
    overrides = {name: [{"quant_type": QuantType.QUInt8}] for name in narrow}
    model = quantized(
        network, samples, activation_type=QuantType.QUInt16, extra_options={"TensorQuantOverrides": overrides}
    )
    built = build(read_graph(model.SerializeToString(), "m"), Options("m"))
    assert {grid.bits for grid in built.graph.grids.values()} == {8, 16}
    target = built.graph.outputs[0]
    off = np.stack([np.abs(inferred(built, x) - as_written(model, x)) for x in samples])
    # A byte that is rounded the other way causes a difference of some 16-bit steps after it.
    assert off.mean() < 0.01 and off.max() < 0.05, (built.graph.grids[target], off.max())


@pytest.mark.parametrize("op", ["Max", "Div", "ReduceL2"])
def test_what_has_no_words_says_so_and_both_ways_out_work(op: str) -> None:
    n = Network(0)
    n.dense(6, 5)
    before = n.at
    if op == "ReduceL2":
        n.then(op, axes=[1], keepdims=1)
        n.m("Add", f"{before} {n.at}", "of_two")
    else:
        n.dense(5, 5)
        if op == "Div":
            n.then("Exp")
        n.m(op, f"{before} {n.at}", "of_two")
    n.at = "of_two"
    n.dense(5, 4)
    network = n.done([1, 6])
    samples = samples_of(network, 12)
    model = quantized(network, samples, activation_type=QuantType.QInt16)
    graph = read_graph(model.SerializeToString(), "m")
    with pytest.raises(UnsupportedError, match=r"--calibration samples.npz\).*--float") as caught:
        build(graph, Options("m"))
    assert "float is not supported" not in str(caught.value)
    for options, given in ((Options("m", method="minmax"), {"x": samples}), (Options("m", floats=True), None)):
        built = build(graph, options, given)
        assert built.program.is_float == options.floats and not built.graph.wide
        for x in samples[:4]:
            wanted = as_written(model, x)
            near = (0.002 if options.floats else 0.06) * max(1, np.abs(wanted).max())
            assert np.abs(inferred(built, x) - wanted).max() < near


def words(kind: str) -> tuple[onnx.ModelProto, list[int]]:
    """A model on int16 that kernels of 16 bits cannot compute, and the shape of its input."""
    shape = {"long": [1, 17000], "row": [1, 1025]}.get(kind, [1, 8])
    m = Maker(0)
    m.constant("s", np.array(1e-4, np.float32))
    m.constant("fine", np.array({"fine": 1e-9, "sum": 4e-8, "log": 1e-6}.get(kind, 1e-4), np.float32))
    m.constant("z", np.array(0, np.int16))
    m("QuantizeLinear", "x s z", "q")
    m("DequantizeLinear", "q s z", "d")
    if kind == "row":
        m("Softmax", "d", "t")
    elif kind == "log":
        m("LogSoftmax", "d", "t")
    elif kind == "sum":
        m("Add", "d d", "t")
    else:
        m.weight("w", shape[1], 2)
        m("MatMul", "d w", "t")
    m("QuantizeLinear", "t fine z", "p")
    m("DequantizeLinear", "p fine z", "y")
    return m.model(shape, opset=21, ir=10), shape


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("long", "a sum of 16-bit activations may reach"),
        ("row", "softmax over 1025 values of 16 bits"),
        ("log", "a log-softmax in steps of 1e-06"),
        ("fine", "times finer than its sums need"),
        ("sum", "times the output's, which is too fine"),
    ],
)
def test_what_outgrows_words_of_32_bits_is_built_with_samples_or_float(kind: str, message: str) -> None:
    model, shape = words(kind)
    graph = read_graph(model.SerializeToString(), "m")
    with pytest.raises(UnsupportedError, match=message):
        build(graph, Options("m"))
    samples = np.random.default_rng(0).uniform(-1, 1, (3, *shape[1:])).astype(np.float32)
    assert build(graph, Options("m", floats=True)).program.is_float
    built = build(graph, Options("m", method="minmax"), {"x": samples})
    assert not built.program.is_float and not built.graph.wide


def scaled(op: str, source: float, target: float) -> onnx.ModelProto:
    """A layer on int16 with these scales of its input and its output."""
    m = Maker(0)
    m.constant("s", np.array(source, np.float32))
    m.constant("t", np.array(target, np.float32))
    m.constant("z", np.array(0, np.int16))
    m("QuantizeLinear", "x s z", "q")
    m("DequantizeLinear", "q s z", "d")
    if op == "MatMul":
        weights = np.random.default_rng(1).integers(-126, 127, (8, 2))
        weights[0] = 127
        m.constant("w", (weights / 128).astype(np.float32))  # what 8 bits can hold
        m("MatMul", "d w", "a")
    elif op in ("Add", "Mul"):
        m(op, "d d", "a")
    else:
        m(op, "d", "a")
    m("QuantizeLinear", "a t z", "p")
    m("DequantizeLinear", "p t z", "y")
    return m.model([1, 8], opset=21, ir=10)


@pytest.mark.parametrize("op", ["Add", "Mul", "MatMul", "Relu", "Softmax"])
def test_whatever_the_scales_are_the_ways_out_that_are_named_work(op: str) -> None:
    rng = np.random.default_rng(len(op))
    refused = 0
    for _ in range(40):
        source, ratio = 10.0 ** rng.uniform(-8, 1), 10.0 ** rng.uniform(-10, 6)
        graph = read_graph(scaled(op, source, source * ratio).SerializeToString(), "m")
        samples = {"x": (rng.uniform(-1, 1, (6, 8)) * source * 1e4).astype(np.float32)}
        assert build(graph, Options("m", floats=True)).program.is_float
        try:
            built = build(graph, Options("m"))
        except UnsupportedError as problem:
            refused += 1
            assert "--float" in str(problem)
            if "--calibration" in str(problem):
                assert not build(graph, Options("m", method="minmax"), samples).program.is_float, (source, ratio)
            continue
        for x in samples["x"]:
            wanted = as_written(scaled(op, source, source * ratio), x[None])
            # A softmax is computed to 2**-16.
            most = 2.1 * source * ratio + (1.1 * 2.0**-16 if op == "Softmax" else 0)
            assert np.abs(inferred(built, x[None]) - wanted).max() <= most, (source, ratio)
    assert 0 < refused < 40


@every("seed", range(6), share=2)
def test_lines_follow_a_function_to_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.arange(1 << 16)
    bend, middle = 10.0 ** rng.uniform(-5, -2), rng.uniform(0, 65535)
    smooth = 65535 / (1 + np.exp(-bend * (x - middle)))
    values = np.rint(np.where(rng.random() < 0.5, smooth, np.abs(smooth - 40000))).astype(np.int64)
    knots = knots_of(values)
    layer = PiecewiseLinear16("curve", ("x",), "y", (4,), knots)
    assert np.abs(layer.values - values).max() <= 1
    assert len(knots) < 3000


@pytest.mark.parametrize("kind", [QuantType.QInt16, QuantType.QInt8])
def test_weights_that_are_rounded_to_8_bits_are_named(
    kind: QuantType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = classifier(1)
    samples = samples_of(network, 6)
    model = quantized(network, samples, activation_type=QuantType.QInt16, weight_type=kind)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert cli.main(["micro", "build", str(tmp_path / "m.onnx"), "--out", str(tmp_path / "dist")]) == 0
    said = "are rounded to 8 bits; in the model they are finer" in capsys.readouterr().out
    assert said == (kind == QuantType.QInt16)
