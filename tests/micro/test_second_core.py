"""Half of a large layer on an RP2040's second core, for which a thread of 32-bit ARM's Unix port stands in. That port
has no global lock either."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.assembly.driver import second
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.emit.kernels import driver_table, machine_code
from emberlet.micro.builder.program import Program
from support.draws import generator

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.networks import NETWORKS, SMALL, samples
from tools.microcontrollers.random_layers import assembly_cases, program_of
from tools.microcontrollers.running import counted, inputs_in_arena, outputs_of, run_program
from tools.micropython import Port

SHARED = """
import time
from array import array
from uctypes import bytearray_at
shared = bytearray_at(array("I", bytearray_at(id(kernels.drive), 16))[3] + {at}, 8)
"""

THREAD = (
    SHARED
    + """
for _ in range(4000):
    if shared[4]:
        break
    time.sleep_ms(5)
for _ in range(3):
    gc.collect()
    A[:] = read("arena")
    run()
assert bytes(shared) == bytes((0, 0, 0, 0, 1, 0, 0, 0)), bytes(shared)
"""
)

NO_THREAD = (
    SHARED
    + """
assert bytes(shared) == bytes(8)
shared[4] = 1
A[:] = read("arena")
run()
assert bytes(shared) == bytes(8)
"""
)

TAKEN = """
import sys

class Taken:
    def start_new_thread(self, function, arguments):
        raise OSError("core1 in use")

sys.modules["_thread"] = Taken()
"""


def words_in(program: Program) -> int:
    """Where the words that the cores share are in the driver's code."""
    return machine_code(program, "armv6m")["drive"].index(second.second().code({"driver": 0})[:12]) + 4


def runs_shared(program: Program) -> int:
    """How many calls are shared."""
    table = driver_table(program, "armv6m")
    assert table
    what = [call.numbers["what"] for call in table.calls(0, 1 << 30) if call.kernel.name == "second"]
    return what.count(second.FORK)


@pytest.mark.parametrize("check", [THREAD, NO_THREAD], ids=["a thread", "a thread that does not answer"])
def test_layers_are_exact(check: str, armhf_port: Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows, columns and channels. The port's threads run when the system lets them, so that they get time, unlike a
    second core."""
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}")
    monkeypatch.setattr(second, "LEAST", 1)
    monkeypatch.setattr(second, "LEAST_TURNS", (1 << 30) if check == THREAD else 100)
    made = list(assembly_cases(seed, 200))
    program, arena, due = program_of(made)
    program = replace(program, second_core=True)
    assert runs_shared(program) > 40
    before = TAKEN if check == NO_THREAD else ""
    out = run_program(
        armhf_port,
        program,
        "viper",
        arena,
        tmp_path,
        check=check.format(at=words_in(program)),
        assembly="armv6m",
        before=before,
    )
    wrong = [
        f"{case.layer.name} {[x.shape for x in case.inputs]} -> {case.shape}"
        for case, (at, expected) in zip(made, due, strict=True)
        if not np.array_equal(out[at : at + expected.size], expected.reshape(-1))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["DS-CNN", "FC autoencoder", "streaming wake word"])
def test_networks_are_exact(name: str, armhf_port: Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned with scratch memory for both halves."""
    monkeypatch.setattr(second, "LEAST_TURNS", 1 << 30)
    graph = NETWORKS[name]()
    options = Options("m", boards=[BOARDS["rp2"]], method="minmax", second_core=True)
    built = build(graph, options, samples(graph))
    program = built.program
    assert runs_shared(program) > 3
    x = generator(__name__).integers(0, 256, program.inputs[0].shape).astype(np.uint8)
    check = THREAD.format(at=words_in(program))
    out = run_program(
        armhf_port, program, "viper", inputs_in_arena(program, [x]), tmp_path, check=check, assembly="armv6m"
    )
    due = built.graph.run({built.graph.inputs[0]: x.reshape(graph.shapes[graph.inputs[0]])})
    np.testing.assert_array_equal(outputs_of(program, out)[0].reshape(-1), due[built.graph.outputs[0]].reshape(-1))


@pytest.mark.needs("emulated-boards")
def test_a_board_without_a_second_core_runs_both_halves() -> None:
    """In few more instructions, and nothing of the heap; the build estimates those of the first core, half as many."""
    graph, board = NETWORKS["DS-CNN"](), EmulatedBoard("m0")
    given = samples(graph)
    options = Options("model", "romfs", [BOARDS["rp2"]], method="minmax")
    one, two = build(graph, options, given), build(graph, replace(options, second_core=True), given)
    alone, both = (counted(board, built, given["x"][0]) for built in (one, two))
    assert both.exact and both.heap == 0
    assert alone.instructions < both.instructions < 1.01 * alone.instructions
    assert two.costs[board.arch].work < 0.6 * one.costs[board.arch].work


@pytest.mark.parametrize(
    "wrong", [{"boards": ["rp2350"]}, {"kernels": "viper"}, {"weights": "frozen"}, {"floats": True}]
)
def test_builds_without_kernels_for_it_are_refused(wrong: dict[str, object]) -> None:
    graph = NETWORKS["DS-CNN"]()
    given = {"boards": ["rp2"], **wrong}
    options = replace(Options("m", method="minmax", second_core=True), **given)  # type: ignore[arg-type]
    options = replace(options, boards=[BOARDS[str(name)] for name in options.boards])
    with pytest.raises(UnsupportedError, match="--board rp2 in int8"):
        build(graph, options, samples(graph))


def test_a_build_says_if_no_layer_is_large_enough() -> None:
    graph = SMALL["dense 16 → 16"]()
    built = build(graph, Options("m", boards=[BOARDS["rp2"]], method="minmax", second_core=True), samples(graph))
    assert built.notes[-1] == "no layer is large enough to share it with the second core"
    assert built.costs["armv6m"].thread == 0
