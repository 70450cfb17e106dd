"""Layers and whole networks on 16-bit words are exact on emulated boards and use no heap."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnxruntime.quantization import QuantType
from support.draws import draw
from support.microcontrollers.quantized import Network, attention, classifier, quantized, samples_of

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.random_layers import Case, program_of, word_cases
from tools.microcontrollers.random_layers_16 import large
from tools.microcontrollers.running import complaints, wrong_on_board
from tools.micropython_builds import firmware

pytestmark = pytest.mark.needs("emulated-boards")


@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_layers_of_words_are_exact(name: str) -> None:
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    made = [*word_cases(seed, 150), *(Case(*each, 2) for each in large(np.random.default_rng(seed)))]
    program, arena, due = program_of(made)
    wrong = wrong_on_board(EmulatedBoard(name), program, arena, due, assembly=False)
    assert [(made[k].layer.name, made[k].shape) for k in wrong] == []


def spotter() -> onnx.ModelProto:
    """Convolutions over time, a GRU and a dense layer."""
    n = Network(5)
    n.m.weight("w0", 8, 6, 3)
    n.then("Conv", "w0")
    n.activation("Relu")
    n.m.weight("w1", 8, 1, 5)
    n.then("Conv", "w1", group=8)
    n.then("Transpose", perm=[2, 0, 1])
    n.m.weight("W", 1, 15, 8, scale=0.3)
    n.m.weight("R", 1, 15, 5, scale=0.3)
    n.then("GRU", "W", "R", hidden_size=5, linear_before_reset=1)
    n.m.constant("flat", [1, 14 * 5])
    n.then("Reshape", "flat")
    n.dense(14 * 5, 3)
    return n.done([1, 6, 20])


NETWORKS = {
    "image": lambda: classifier(3, normalized=True),
    "transformer": lambda: attention(4, length=5, size=4),
    "spotter": spotter,
}


@cache
def made(name: str) -> bytes:
    network = NETWORKS[name]()
    return quantized(network, samples_of(network, 6), activation_type=QuantType.QInt16).SerializeToString()


@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_networks_of_words_are_exact_and_take_no_heap(name: str) -> None:
    """One of them as a stream, whose past stays on the board."""
    board = EmulatedBoard(name)
    stand_in = replace(BOARDS["rp2"], name=name, arch=board.arch)
    rng = np.random.default_rng(0)
    built, samples = {}, {}
    for network in NETWORKS:
        stream = 2 if network == "spotter" else None
        options = Options(network, "romfs", [stand_in], stream=stream)
        built[network] = build(read_graph(made(network), network), options)
        graph = built[network].graph
        assert graph.wide
        shape = graph.shapes[graph.inputs[0]]
        samples[network] = [rng.integers(0, 256, shape).astype(np.uint8) for _ in range(4)]
    assert complaints(board, built, samples) == ""
