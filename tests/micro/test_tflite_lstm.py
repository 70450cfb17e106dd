"""LSTM layers of .tflite files equal LiteRT's byte for byte, call after call."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.errors import ModelError, UnsupportedError
from emberlet.micro.builder.assembly import scalar_doubled_lstm
from emberlet.micro.builder.assembly.driver import Call, Kernel
from emberlet.micro.builder.assembly.registry import table
from emberlet.micro.builder.assembly.scalar_doubled_lstm import SQUASH
from emberlet.micro.builder.assembly.variants import FAMILIES, scalar
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.doubled_lstm import CONSTANTS, squash
from support.draws import generator
from support.microcontrollers.in_python import run_in_python

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers import litert
from tools.microcontrollers.running import complaints, inputs_in_arena, outputs_of, run_program
from tools.microcontrollers.tflite_files import File
from tools.microcontrollers.tflite_lstm import drawn_lstm
from tools.micropython import Port

Array = npt.NDArray[Any]

needs_litert = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")


def drawn(seed: int) -> File:
    rng = np.random.default_rng([seed, 38])
    steps, features, hidden = (int(v) for v in rng.integers(1, 20, 3))
    cell = 2.0 ** int(rng.integers(-15, -8))
    return drawn_lstm(rng, steps, features, hidden, cell, CellClip=float(rng.choice([0, 10, 0.7])))


def built(file: File) -> BuildResult:
    return build(read_graph(file.written(), "m"), Options("m"))


def calls(result: BuildResult, inputs: Array) -> Array:
    """The outputs of consecutive calls."""
    graph, states = result.graph, dict[str, Any]()
    return np.array([graph.run({graph.inputs[0]: x}, states)[graph.outputs[0]].reshape(-1) for x in inputs])


def arena_of(result: BuildResult, x: Array) -> bytes:
    """An arena with an input and the state before the first call."""
    arena = bytearray(inputs_in_arena(result.program, [x]))
    for place, size, repeated in result.program.states:
        arena[place : place + size] = bytes(map(int, repeated)) * (size // len(repeated))
    return bytes(arena)


def rows(seed: int, file: File, count: int) -> Array:
    shape = file.tensors[file.inputs[0]].shape[1:]
    return np.random.default_rng(seed).integers(0, 256, (count, *shape)).astype(np.uint8)


@needs_litert
def test_four_calls_of_layers_at_random_are_exact(tmp_path: Path) -> None:
    files = {str(seed): drawn(seed) for seed in range(40)}
    inputs = {key: rows(int(key), file, 4) for key, file in files.items()}
    written = {key: file.written() for key, file in files.items()}
    expected = litert.answers(written, {key: x.astype(np.int16) - 128 for key, x in inputs.items()}, tmp_path)
    for key, file in files.items():
        assert calls(built(file), inputs[key]).tolist() == (expected[key].astype(int) + 128).tolist(), key
        assert len(np.unique(expected[key])) > 1


@needs_litert
@pytest.mark.parametrize("clip", [10.0, 0.0, 0.3])
def test_a_float_layer_agrees(clip: float, tmp_path: Path) -> None:
    file = drawn_lstm(np.random.default_rng(1), 7, 5, 6, dtype="float32", CellClip=clip)
    x = 3 * np.random.default_rng(2).standard_normal((3, 7, 5)).astype(np.float32)
    expected = litert.answers({"m": file.written()}, {"m": x}, tmp_path)["m"]
    result = built(file)
    np.testing.assert_allclose(calls(result, x), expected, atol=4e-6)
    arena = np.frombuffer(inputs_in_arena(result.program, [x[0]]), np.float32).copy()
    for place, size, _ in result.program.states:
        arena[place : place + size] = 0
    arena = run_in_python(result.program, arena.tobytes())
    np.testing.assert_allclose(outputs_of(result.program, arena)[0].reshape(-1), expected[0].reshape(-1), atol=4e-6)


def test_cells_clipped_below_the_quantized_range_stay_float() -> None:
    file = drawn_lstm(np.random.default_rng(1), 7, 5, 6, dtype="float32", CellClip=0.3)
    graph = read_graph(file.written(), "m")
    x = np.random.default_rng(2).standard_normal((3, 7, 5)).astype(np.float32)
    with pytest.raises(UnsupportedError, match=r"clips its cells to ±0\.3.*--float"):
        build(graph, Options("m"), {graph.inputs[0]: x})
    build(graph, Options("m", floats=True))


def test_the_functions_are_those_that_their_names_say() -> None:
    v = np.arange(-(1 << 15), 1 << 15)
    for bits in range(7):
        real = v * 2.0 ** (bits - 15)
        assert np.abs(squash(v, bits, True) - np.tanh(real) * 2**15).max() < 40
    assert np.abs(squash(v, 3, False) - 2**15 / (1 + np.exp(-v / 2**12))).max() < 40


def test_no_result_of_a_kernel_exceeds_a_word() -> None:
    for seed in range(8):
        file = drawn(seed)
        result, x = built(file), rows(seed, file, 1)
        arena = run_in_python(result.program, arena_of(result, x[0]), within_words=True)
        assert outputs_of(result.program, arena)[0].reshape(-1).tolist() == calls(result, x)[0].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_micropython_computes_the_same(seed: int, unix_port: Port, armhf_port: Port, tmp_path: Path) -> None:
    file = drawn(seed)
    result, x = built(file), rows(seed, file, 1)
    expected = calls(result, x)[0].tolist()
    for port, dialect in ((unix_port, "viper"), (unix_port, "bytecode"), (armhf_port, "viper")):
        arena = run_program(port, result.program, dialect, arena_of(result, x[0]), tmp_path)
        assert outputs_of(result.program, arena)[0].reshape(-1).tolist() == expected


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0", "rv32"])
def test_emulated_boards_compute_the_same_and_take_no_heap(name: str) -> None:
    board, files = EmulatedBoard(name), {f"net{seed}": drawn(seed) for seed in range(3)}
    stand_in = replace(BOARDS["rp2"], name=name, arch=board.arch)
    networks = {
        net: build(read_graph(file.written(), net), Options(net, "romfs", [stand_in])) for net, file in files.items()
    }
    assert complaints(board, networks, {net: list(rows(1, file, 3)) for net, file in files.items()}) == ""


FUNCTIONS = """
import kernels, uctypes
with open("/rom/arena", "rb") as f:
    A = bytearray(f.read())
with open("/rom/words", "rb") as f:
    T = bytearray(f.read())
a, t = uctypes.addressof(A) >> 2, uctypes.addressof(T) >> 2
kernels.drive(a, a, t, 0, {start}, {end}, 0)
right = memoryview(open("/rom/right", "rb"))
print([k for k in range(len(A)) if A[k] != right[k]][:9])
"""
DRIVER = "import micropython\n\n@micropython.viper\ndef drive():\n    pass\n"


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m0", "rv32"])
def test_the_functions_in_assembly_are_exact(name: str) -> None:
    """The logistic function, and tanh of every form that a cell may have."""
    board, variants = EmulatedBoard(name), [(3, False), *((bits, True) for bits in range(7))]
    draw, count = generator(__name__), 1000
    v = np.concatenate([draw.integers(-(1 << 15), 1 << 15, count - 5), [-32768, -1, 0, 1, 32767]])
    driver = table(FAMILIES[board.arch])
    assert driver is not None
    made = []
    for k, (bits, tanh) in enumerate(variants):
        kernel = Kernel(f"{bits} {tanh}", scalar(scalar_doubled_lstm.squash, FAMILIES[board.arch], bits, tanh), SQUASH)
        place = {"x": 2 * count * k, "y": 2 * count * k, "q": 0}
        made.append(Call(kernel, {**place, "xstep": 2, "ystep": 2, "count": count}))
    start, end = driver.add(made)
    files = {
        "kernels.mpy": compile_mpy(DRIVER, "kernels", board.arch, code={"drive": driver.code()}),
        "arena": (v + (1 << 15)).astype("<u2").tobytes() * len(variants),
        "words": np.array(CONSTANTS, "<u4").tobytes(),
        "right": b"".join((squash(v, *each) + (1 << 15)).astype("<u2").tobytes() for each in variants),
    }
    assert board.run(FUNCTIONS.format(start=start, end=end), files) == "[]\n"


def changed(number: int, place: int) -> File:
    """A file whose operator has tensor 0 at a place where it should have none."""
    file = drawn(0)
    file.operators[0][1][place] = number
    return file


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (changed(0, 9), "peepholes"),
        (changed(0, 16), "a projection"),
        (changed(0, 21), "layer normalization"),
        (changed(-1, 1), "coupled gates"),
        (changed(-1, 13), "required input is missing"),
        (drawn_lstm(np.random.default_rng(0), 3, 2, 2, 0.0004), r"expected a power of two from 2\*\*-15 to 2\*\*-9"),
        (drawn_lstm(np.random.default_rng(0), 3, 2, 2, FusedActivationFunction=1), "without tanh"),
    ],
    ids=["peephole", "projection", "normalization", "coupled", "bias", "cell", "activation"],
)
def test_what_is_not_supported_is_said(file: File, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        built(file)
