"""Layers and a whole network in assembly are exact and use no heap under MicroPython on emulated boards."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.cost import VIPER
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.calibrate import samples_from
from support.draws import draw, generator

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.models import build_digits
from tools.microcontrollers.networks import SMALL, ds_cnn, samples
from tools.microcontrollers.random_layers import assembly_cases, program_of, viper_cases
from tools.microcontrollers.random_networks import KINDS, batch_of, networks
from tools.microcontrollers.running import counted, counted_in_whole, stack_used, wrong_of_batch, wrong_on_board
from tools.micropython_builds import firmware
from tools.paths import ROOT

MACS = 2_656_768
"""Multiply-accumulates of the network below."""

pytestmark = pytest.mark.needs("emulated-boards")


@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_layers_are_exact(name: str) -> None:
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    made = list(assembly_cases(seed, 150))
    program, arena, due = program_of(made)
    wrong = wrong_on_board(EmulatedBoard(name), program, arena, due)
    assert [(made[k].layer.name, made[k].shape) for k in wrong] == []


@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_layers_that_no_assembly_computes_are_exact(name: str) -> None:
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    made = list(viper_cases(seed, 30))
    program, arena, due = program_of(made)
    wrong = wrong_on_board(EmulatedBoard(name), program, arena, due, assembly=False)
    assert [(made[k].layer.name, made[k].shape) for k in wrong] == []


@pytest.mark.parametrize("kind", KINDS)
def test_whole_networks_are_exact(kind: str) -> None:
    """Of several layers, on one of the boards; `bench micro --boards random` runs many on all."""
    seed = draw(__name__).randrange(1 << 31)
    name = random.Random(seed).choice(list(firmware.FAMILIES))
    print(f"seed {seed}, {name}")
    made = list(islice(networks(kind, seed), 12))
    wrong = wrong_of_batch(EmulatedBoard(name), batch_of(made))
    assert [made[k].graph for k in wrong] == []


@pytest.mark.parametrize("name", firmware.FAMILIES)
@pytest.mark.parametrize("kernels", ["assembly", "viper"])
def test_a_network_is_exact_and_takes_no_heap(name: str, kernels: str) -> None:
    board = EmulatedBoard(name)
    graph = ds_cnn()
    stand_in = replace(BOARDS["rp2"], name=name, arch=board.arch)
    options = Options("model", "romfs", [stand_in], method="minmax", kernels=kernels)
    found = counted(board, build(graph, options, samples(graph)), samples(graph)["x"][0])
    assert found.exact
    assert found.heap == 0
    # A count, not a time: viper takes 12 instructions a multiply-accumulate here.
    most = 13 if kernels == "viper" else 2 if "7em" in board.arch else 5
    assert found.instructions / MACS < most


@pytest.mark.parametrize("name", ["m7", "m0"])
@pytest.mark.parametrize("how", ["assembly", "viper", "float"])
def test_the_stack_is_as_predicted(name: str, how: str) -> None:
    board = EmulatedBoard(name)
    stand_in = replace(BOARDS["rp2"], name=name, arch=board.arch)
    kernels = "viper" if how == "viper" else "assembly"
    built = build_digits("romfs", how == "float", boards=[stand_in], kernels=kernels)
    predicted = next(iter(built.costs.values())).stack
    measured = stack_used(board, built)
    assert measured <= predicted <= 1.25 * measured


RUN = """
import gc, model

kernels = model._kernels
print(model.run is kernels.drive)
again = kernels.bind(model.A, model.W, model.T)
print(again is kernels.drive)
with open("/rom/inputs", "rb") as f:
    inputs = f.read()
for run in (model.run, again, model.run):
    gc.collect()  # nothing that `run` reads may be reused
    junk = [bytes(n) for n in range(300)]
    for k in range(0, len(inputs), 16):
        model.input[:] = inputs[k : k + 16]
        run()
        print(*model.output)
"""


@pytest.mark.parametrize("name", firmware.KINDS)
def test_run_is_the_driver_itself_in_the_first_binding(name: str) -> None:
    board, graph = EmulatedBoard(name), replace(SMALL["dense 16 → 16"](), name="model")
    options = Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)], method="minmax")
    built = build(graph, options, samples(graph))
    (source,), (target,) = built.graph.inputs, built.graph.outputs
    given = generator(__name__).integers(0, 256, (3, 16), np.uint8)
    files = {**built.deployed[board.arch], "inputs": given.tobytes()}
    first, second, *lines = board.run(RUN, files).splitlines()
    assert (first, second) == ("True", "False")
    due = [" ".join(map(str, built.graph.run({source: x})[target].reshape(-1))) for x in given]
    assert lines == 3 * due


ARGUMENTS = """
import model
with open("/rom/inputs", "rb") as f:
    model.input[:] = f.read()
model.run()
due = bytes(model.output)
model.output[:] = bytes(16)
for arguments in [[k] * n for n in range(2, 8) for k in (2, 7, model.input)] + [range(1, 8), [[k] for k in range(7)]]:
    if model.run(*arguments) != 2 or any(model.output):
        print("ran with", arguments)
for argument in (None, 2, model, [1.0] * 16):  # a timer gives itself, a scheduler what it was given
    model.output[:] = bytes(16)
    model.run(argument)
    if bytes(model.output) != due:
        print("did not run with", argument)
"""


@pytest.mark.parametrize("name", firmware.KINDS)
def test_run_ignores_the_argument_of_a_callback_and_does_nothing_with_more(name: str) -> None:
    board, graph = EmulatedBoard(name), replace(SMALL["dense 16 → 16"](), name="model")
    options = Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)], method="minmax")
    built = build(graph, options, samples(graph))
    files = {**built.deployed[board.arch], "inputs": generator(__name__).integers(0, 256, 16, np.uint8).tobytes()}
    assert board.run(ARGUMENTS, files) == ""


def test_a_failing_program_says_why() -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        EmulatedBoard("m7").run("1 // 0")


@pytest.mark.parametrize(("name", "other"), [("m7", "rv32"), ("m0", "m4"), ("rv32", "m0")])
def test_another_processor_is_named_where_its_code_is_loaded(name: str, other: str) -> None:
    arch = EmulatedBoard(other).arch
    built = build_digits("romfs", boards=[replace(BOARDS["rp2"], name=other, arch=arch)])
    with pytest.raises(AssertionError, match=f"ValueError: digits_kernels.mpy holds {arch} code.*for this board"):
        EmulatedBoard(name).run("import digits", built.deployed[arch])


@pytest.mark.parametrize("name", ["m7", "m0", "rv32"])
@pytest.mark.parametrize(
    ("model", "calibration"),
    [
        ("sine/sine.onnx", "sine/heldout.npz"),
        ("micro_accelerometer/accelerometer.onnx", "micro_accelerometer/calibration.npz"),
        ("digits/digits.onnx", "micro_digits/calibration.npz"),
        ("micro_wake_word/wake_word.onnx", "micro_wake_word/calibration.npz"),
    ],
)
def test_the_estimated_instructions_are_near_the_counted_ones(model: str, calibration: str, name: str) -> None:
    """Of `predict`, conversion of numbers and calls included."""
    board = EmulatedBoard(name)
    graph = read_graph(ROOT / "examples" / model, "net")
    given = samples_from(ROOT / "examples" / calibration, graph)
    stand_in = replace(BOARDS["rp2"], name=name, arch=board.arch)
    built = build(graph, Options("net", "romfs", [stand_in]), given)
    found = counted_in_whole(board, built)[1]
    estimated = built.costs[board.arch].work * VIPER
    print(model, name, found, f"{estimated / found:.2f}")
    assert found / 1.3 < estimated < 1.3 * found
