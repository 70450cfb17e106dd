"""Viper on 64-bit and on 32-bit words, bytecode on both, and NumPy compute the same bytes in random layers.

`python3 dev.py bench micro --layers` does the same with 10,140 layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.emit.kernels import kernels_source
from emberlet.micro.builder.kernels.depthwise import MOST_TAPS, Depthwise
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.program import Program
from support.draws import draw

from tools.microcontrollers.random_layers import Case, cases, large_cases, program_of
from tools.microcontrollers.running import run_program
from tools.micropython import Port
from tools.micropython_builds import mpy_cross

BATCHES, LAYERS = 1, 507  # of every kind, other ones in each run


@cache
def batch(number: int) -> tuple[int, list[Case], Program, bytes, list[tuple[int, Array]]]:
    seed = draw(__name__).randrange(1 << 31)
    made = list(cases(seed, LAYERS))
    return (seed, made, *program_of(made))


def differing(number: int, arena: Array) -> list[str]:
    _, made, _, _, due = batch(number)
    wrong = []
    for case, (at, expected) in zip(made, due, strict=True):
        if not np.array_equal(arena[at : at + expected.size], expected.reshape(-1)):
            wrong.append(f"{case.layer.name} {[x.shape for x in case.inputs]} -> {case.shape}")
    return wrong


@pytest.mark.parametrize("number", range(BATCHES))
@pytest.mark.parametrize("port", ["unix_port", "armhf_port"])
def test_every_layer_is_bit_exact(number: int, port: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    found: Port = request.getfixturevalue(port)
    seed, _, program, arena, _ = batch(number)
    print(f"seed {seed}")
    for dialect in ("viper", "bytecode"):
        assert differing(number, run_program(found, program, dialect, arena, tmp_path)) == []


def wrong_layers(made: list[Case], arena: Array, due: list[tuple[int, Array]]) -> list[str]:
    return [c.layer.name for c, (at, y) in zip(made, due, strict=True) if bytes(arena[at : at + y.size]) != y.tobytes()]


@pytest.mark.parametrize("port", ["unix_port", "armhf_port"])
def test_kernels_compiled_on_the_device_are_bit_exact(
    port: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    made = [*cases(1000, 130), *large_cases()]
    program, arena, due = program_of(made)
    for dialect in ("viper", "bytecode"):
        out = run_program(request.getfixturevalue(port), program, dialect, arena, tmp_path, precompiled=False)
        assert wrong_layers(made, out, due) == []


@pytest.mark.parametrize("seed", [1001, 1002, 1003])
def test_bytecode_runs_where_there_is_no_machine_code(wasm_port: Port, tmp_path: Path, seed: int) -> None:
    made = list(cases(seed, 45))  # this build has 2 GB and frees nothing while Python runs
    program, arena, due = program_of(made)
    assert wrong_layers(made, run_program(wasm_port, program, "bytecode", arena, tmp_path), due) == []


ARCHITECTURES = ("armv6m", "armv7m", "armv7emsp", "armv7emdp", "xtensa", "xtensawin", "rv32imc", "x64")


def as_built(made: Iterable[Case]) -> list[Case]:
    """Without depthwise windows for which the builder takes another layer: assembly serves larger ones."""
    return [c for c in made if not isinstance(c.layer, Depthwise) or prod(c.layer.window.kernel) <= MOST_TAPS]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with kernels of all layers."""
    program, _, _ = program_of(as_built([*cases(1002, 54), *large_cases()]))
    source = tmp_path_factory.mktemp("kernels") / "kernels.py"
    source.write_text(kernels_source(program, "viper"), encoding="utf-8")
    return source


@pytest.mark.parametrize("release", mpy_cross.RELEASES)
def test_kernels_compile_with_every_release_of_mpy_cross(release: str, kernels: Path) -> None:
    if not mpy_cross.binary(release).exists():
        pytest.skip(f"mpy-cross {release} is not installed")
    for architecture in ARCHITECTURES:
        if architecture != "rv32imc" or release >= "1.24":
            assert mpy_cross.compile_file(release, kernels, architecture) == ""


def test_loops_of_machine_code_stay_below_the_reach_of_a_jump(tmp_path: Path) -> None:
    """A single kernel takes less than 300 bytes beyond its loops; of layers of one seed, another one in other runs."""
    seed, count = draw().choice([(1003, 60), (2000, 66), (2001, 66)])
    for case in as_built([*cases(seed, count), *large_cases()]):
        program, _, _ = program_of([case])
        for kernel in re.findall(
            r"@micropython.viper\ndef .*?(?=\n\n|\Z)", kernels_source(program, "viper"), re.DOTALL
        ):
            source = "import micropython\n" + kernel + "\n"
            for architecture in ("armv6m", "xtensawin"):
                assert len(compile_mpy(source, "kernel", architecture)) < 2048 + 300, kernel


def test_bytecode_allocates_nothing(armhf_port: Port, tmp_path: Path) -> None:
    """On 32-bit words an integer of 2**30 or more would be an object of the heap."""
    made = list(cases(1004, 130))
    program, arena, _ = program_of(made)
    for dialect in ("bytecode", "viper"):
        run_program(armhf_port, program, dialect, arena, tmp_path, check="assert allocated == 0, allocated")
