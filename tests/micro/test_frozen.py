"""Models frozen into firmware run in flash, exactly and as fast as from files, wherever their machine code lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS, Board
from emberlet.micro.builder.build import MANIFEST, BuildResult, Options, build
from emberlet.micro.builder.cost import OBJECTS
from emberlet.micro.builder.emit.kernels import machine_code
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.reference import quantize

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.models import build_digits, digits_data
from tools.microcontrollers.networks import SMALL, ds_cnn, samples
from tools.microcontrollers.running import counted
from tools.micropython_builds import firmware
from tools.paths import ROOT

pytestmark = pytest.mark.needs("emulated-boards")


def stand_in(name: str) -> Board:
    return replace(BOARDS["rp2"], name=name, arch=firmware.EVERY[name].arch)


def small(name: str, release: str | None = None) -> BuildResult:
    """A layer that one call of machine code computes."""
    graph = replace(SMALL["dense 16 → 16"](), name="small")
    options = Options("small", "frozen", [stand_in(name)], method="minmax", release=release)
    return build(graph, options, samples(graph))


MOVED = """
from array import array
from uctypes import addressof, bytearray_at

import {name} as model

kernels = model._kernels
with open("/rom/inputs", "rb") as f:
    inputs = f.read()
rooms = []
for place in (0, 2):
    for function, size in {sizes}:
        function = getattr(kernels, function)
        words = bytearray_at(id(function), 16)
        code = array("I", words)[3] & -2
        rooms.append(bytearray(size + 8))
        at = (addressof(rooms[-1]) + 3 & -4) + place
        bytearray_at(at, size)[:] = bytearray_at(code, size)
        words[8:] = bytes(array("I", (0, at)))  # keeps no arguments yet
    W, T = kernels.prepare(model.W, None)
    run = kernels.bind(model.A, W, T)
    print(run is getattr(kernels, "drive"), addressof(T) & 3)
    for k in range(0, len(inputs), len(model.input)):
        model.input[:] = inputs[k : k + len(model.input)]
        run()
        print(*model.output)
"""


@pytest.mark.parametrize("name", firmware.FAMILIES)
@pytest.mark.parametrize("model", ["digits", "small"])
def test_machine_code_runs_at_any_multiple_of_two(model: str, name: str) -> None:
    built = build_digits("frozen", boards=[stand_in(name)]) if model == "digits" else small(name)
    graph, program, board = built.graph, built.program, EmulatedBoard(name)
    given = digits_data()[0] if model == "digits" else samples(graph)["x"]
    port = program.inputs[0]
    x = [quantize(sample, port.scale, port.zero) for sample in given[:5]]
    due = [graph.run({graph.inputs[0]: one})[graph.outputs[0]].reshape(-1).tolist() for one in x]
    code = machine_code(program, board.arch, frozen=True)
    sizes = [(function, len(code[function])) for function in ("constants", "drive")]
    files = {**built.deployed[board.arch], "inputs": b"".join(one.tobytes() for one in x)}
    lines = board.run(MOVED.format(name=model, sizes=sizes), files).splitlines()
    for found in (lines[: len(due) + 1], lines[len(due) + 1 :]):
        assert found[0] == f"{model == 'small'} 0"
        assert [[int(n) for n in line.split()] for line in found[1:]] == due


def frozen(builds: Sequence[BuildResult], arch: str) -> dict[str, bytes]:
    """The files of builds, and a manifest that includes theirs."""
    manifest = b"".join(built.extra[f"{arch}/{MANIFEST}"] for built in builds)
    files = {name: data for built in builds for name, data in built.deployed[arch].items()}
    return {MANIFEST: manifest, **files}


IMPORTED = """
import gc, {name}

def spent():
    gc.collect()
    return gc.mem_alloc()

before = spent()
import {name} as again
before = spent()
import {other}
print(spent() - before)
"""

PREDICTED = """
import sine

print(sine.predict is sine._kernels.predict, 1.25, *sine.predict([1.25]))
"""


@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_firmware_with_models_runs_them_in_flash(name: str) -> None:
    """The bytes are NumPy's, the instructions those of the same model in files, and importing a model takes no more
    memory than is reported: its arena and objects."""
    options = Options("sine", "frozen", [stand_in(name)], method="minmax")
    sine, spotter = read_graph(ROOT / "examples" / "sine" / "sine.onnx", "sine"), replace(ds_cnn(), name="spotter")
    angles = np.linspace(0, 6, 80, dtype=np.float32)[:, None]
    builds = {
        weights: (
            build_digits(weights, boards=[stand_in(name)]),
            build(sine, replace(options, weights=weights), {sine.inputs[0]: angles}),
            build(spotter, replace(options, name="spotter", weights=weights), samples(spotter)),
        )
        for weights in ("frozen", "romfs")
    }
    inputs = (digits_data()[0][0], angles[33], samples(spotter)["x"][0])
    plain = EmulatedBoard(name)
    board = EmulatedBoard(name, frozen(builds["frozen"], plain.arch))
    for own, other, x in zip(builds["frozen"], builds["romfs"], inputs, strict=True):
        found, due = counted(board, own, x), counted(plain, other, x)
        print(own.program.name, found, due)
        assert found.exact and found.heap == 0
        assert abs(found.instructions - due.instructions) < 0.01 * due.instructions + 4 * board.board.clock
    in_code, given, *numbers = board.run(PREDICTED).split()
    assert in_code == "True" and float(numbers[0]) == pytest.approx(math.sin(float(given)), abs=0.1)
    for own, before in zip(builds["frozen"], ("sine", "digits", "digits"), strict=True):
        cost = own.costs[board.arch]
        taken = int(board.run(IMPORTED.format(name=before, other=own.program.name)))
        print(own.program.name, taken, cost)
        assert cost.weights_in_ram == cost.code == 0
        assert taken <= cost.ram == cost.arena + OBJECTS


@pytest.mark.parametrize(("name", "other"), [("m0", "m7"), ("m7", "rv32"), ("rv32", "m0")])
def test_another_processor_is_named_before_its_code_runs(name: str, other: str) -> None:
    built = small(other)
    arch = firmware.EVERY[other].arch
    with pytest.raises(AssertionError, match=f"ValueError: small_kernels holds {arch} code .* does not run: build the"):
        EmulatedBoard(name).run("import small", built.deployed[arch])
    EmulatedBoard("m7").run("import small", small("m0").deployed["armv6m"])  # which includes these instructions


def test_another_release_is_named_before_its_code_runs() -> None:
    built = small("m0", "1.22")
    with pytest.raises(AssertionError, match=r"ValueError: small_kernels holds armv6m code of \.mpy version 6\.2"):
        EmulatedBoard("m0").run("import small", built.deployed["armv6m"])
