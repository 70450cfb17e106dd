"""Xtensa's kernels, run by a simulator of its instructions, since no emulator of a chip with MicroPython is
available."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emberlet.micro.builder.assembly.registry import calls
from support.microcontrollers.xtensa_model import Xtensa

from tools.microcontrollers.random_layers import assembly_cases, program_of

ARENA, WEIGHTS, TABLES = 0x3FFB0000, 0x3F400001, 0x3F500000
MOST = 20_000
"""Larger layers take too long in a model of instructions."""


@pytest.mark.parametrize("family", ["xtensa", "xtensawin"])
def test_kernels_are_exact_by_the_manual(family: str) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}")
    made = [case for case in assembly_cases(seed, 260) if case.layer.macs < MOST]
    program, arena, due = program_of(made)
    core = Xtensa(
        {
            ARENA: bytearray(arena),
            WEIGHTS: bytearray(program.weight_bytes),
            TABLES: bytearray(program.word_bytes),
        }
    )
    at = {place: (case, expected) for case, (place, expected) in zip(made, due, strict=True)}
    found = 0
    for step in program.steps:
        run = calls(step.layer, family, step.inputs, step.output, step.places)
        if run is None:
            if step.layer.name == "border":
                _fill_border(core.memory[ARENA], step)
            continue
        for call in run:
            numbers = [call.numbers[name] for name in call.kernel.frame.fields]
            first = [ARENA >> 2, WEIGHTS >> 2, TABLES >> 2, WEIGHTS & 3]
            assert core.call(call.kernel.assembled().code(), [*first, *numbers], family == "xtensawin") == 1
        case, expected = at[step.places["o"]]
        place = step.places["o"]
        out = np.frombuffer(core.memory[ARENA], np.uint8)[place : place + expected.size]
        assert np.array_equal(out, expected.reshape(-1)), (case.layer.name, case.shape)
        found += 1
    assert found > 50


def _fill_border(arena: bytearray, step: object) -> None:
    """The border's viper kernel in NumPy."""
    layer, place = step.layer, step.places["o"]  # type: ignore[attr-defined]
    whole = np.frombuffer(arena, np.uint8)[place : place + layer.size]
    inner = np.zeros(layer.size, bool)
    for row in range(layer.view.shape[0]):
        at = layer.view.origin + row * layer.view.pitch
        inner[at : at + layer.view.row] = True
    whole[~inner] = int(layer.fill)
