"""Kernels in assembly compute what NumPy computes, byte by byte.

`python3 dev.py bench micro --layers` does the same with 10,000 layers on every emulated processor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.assembly.registry import calls
from emberlet.micro.builder.assembly.variants import FAMILIES
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.recurrence import MIDDLE, Rows
from emberlet.micro.builder.kernels.recurrent import Gru
from emberlet.micro.builder.quantization.reference import ZERO, choose, dot_bounds
from support.draws import draw

from tools.microcontrollers.random_layers import Case, assembly_cases, program_of, rows_at_random
from tools.microcontrollers.running import run_program
from tools.micropython import Port

LAYERS = 400
# Instruction sets whose code the emulated 32-bit ARM port runs.
ARM = ("armv6m", "armv7emdp")


def wrong_layers(made: list[Case], port: Port, arch: str, folder: Path) -> list[str]:
    program, arena, due = program_of(made)
    out = run_program(port, program, "viper", arena, folder, assembly=arch)
    return [
        f"{case.layer.name} {[x.shape for x in case.inputs]} -> {case.shape}"
        for case, (at, expected) in zip(made, due, strict=True)
        if not np.array_equal(out[at : at + expected.size], expected.reshape(-1))
    ]


@pytest.mark.parametrize("arch", ARM)
def test_every_layer_is_exact_on_arm(arch: str, armhf_port: Port, tmp_path: Path) -> None:
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    assert wrong_layers(list(assembly_cases(seed, LAYERS)), armhf_port, arch, tmp_path) == []


@pytest.mark.parametrize("arch", ARM)
def test_dense_and_convolution_layers_run_in_assembly(arch: str) -> None:
    """Only a few layers run in viper: those with many groups, or with scales that do not fit a word."""
    steps = [step for step in program_of(list(assembly_cases(3, 600)))[0].steps if isinstance(step.layer, Dot)]
    found = [calls(s.layer, FAMILIES[arch], s.inputs, s.output, s.places) for s in steps]
    assert sum(f is not None for f in found) > 0.9 * len(found)


def test_short_gru_layers_with_rows_of_zeros_are_exact(armhf_port: Port, tmp_path: Path) -> None:
    """The multiplier of a row whose sum is only its bias is so large that its product with a byte exceeds a word."""
    rng, made = np.random.default_rng(5), []
    for _ in range(4):
        weights, bias = rng.integers(1, 256, (24, 1)).astype(np.uint8), rng.integers(-60, 60, 24)
        weights[::5] = ZERO
        bound = np.abs(np.stack(dot_bounds(weights, bias, 99))).max(0)
        rows = Rows(weights, bias, 99, choose(3000 / np.maximum(bound, 1), bound, MIDDLE, 0, 2 * MIDDLE - 1))
        assert max(rows.requant.multipliers) > 1 << 23
        layer = Gru("gru", ("x",), "y", 6, 8, rows, rows_at_random(rng, 24, 8, ZERO), False, True, False)
        made.append(Case(layer, (rng.integers(0, 256, (6, 1)).astype(np.uint8),), (6, 8)))
    assert wrong_layers(made, armhf_port, "armv6m", tmp_path) == []
