"""Xtensa's kernels, run by a simulator of its instructions, since no emulator of a chip with MicroPython is
available."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.assembly.registry import calls, units
from emberlet.micro.builder.kernels.recurrence import MIDDLE, UNIT, RecurrentLayer, Rows
from emberlet.micro.builder.kernels.recurrent import Gru, Lstm
from emberlet.micro.builder.quantization.reference import Requant
from support.draws import draw
from support.microcontrollers.xtensa_model import Xtensa

from tools.microcontrollers.random_layers import assembly_cases, program_of

ARENA, WEIGHTS, TABLES = 0x3FFB0000, 0x3F400001, 0x3F500000
MOST = 20_000
"""Larger layers take too long in a model of instructions."""


@pytest.mark.parametrize("family", ["xtensa", "xtensawin"])
def test_kernels_are_exact_by_the_manual(family: str) -> None:
    seed = draw(__name__).randrange(1 << 31)
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


@pytest.mark.parametrize("family", ["xtensa", "xtensawin"])
@pytest.mark.parametrize("make", [Gru, Lstm])
def test_units_of_recurrent_layers_are_those_of_the_bytecode_kernel(make: type[RecurrentLayer], family: str) -> None:
    """Of random states and sums, at any address."""
    seed = draw(__name__).randrange(1 << 31)
    print(f"seed {seed}")
    rng, gates = np.random.default_rng(seed), 3 if make is Gru else 4
    for hidden in (1, 5, 32):
        requant = Requant((1,) * gates * hidden, 20, 3, 0)
        rows = Rows(np.full((gates * hidden, 1), 128, np.uint8), np.zeros(gates * hidden, np.int64), 0, requant)
        layer = make("l", ("x",), "y", 1, hidden, rows, rows, False, False, False)
        places = {"st": int(rng.integers(0, 4)), "zo": 100 + int(rng.integers(0, 4)), "wo": int(rng.integers(0, 4))}
        arena = bytearray(rng.integers(0, 256, 1000).astype(np.uint8).tobytes())
        kept = arena[places["st"] + hidden : places["st"] + 3 * hidden]
        if make is Gru:  # its state lies within one
            state = rng.integers(-UNIT, UNIT + 1, hidden) + MIDDLE
            kept[:] = state.astype("<u2").tobytes()
            arena[places["st"] + hidden : places["st"] + 3 * hidden] = kept
        weights = bytes(places["wo"]) + layer.constants()[0].tobytes()
        due, names = bytearray(arena), dict[str, Any]()
        writer = layer.units("bytecode")
        exec(writer.source("units"), names)
        names["units"](due, weights, [], *(places[name] for name in writer.places))
        core = Xtensa({ARENA: arena, WEIGHTS: bytearray(weights), TABLES: bytearray(4)})
        call = units(layer, family, places)
        assert call is not None
        numbers = [int(call.numbers[name]) for name in call.kernel.frame.fields]
        first = [ARENA >> 2, WEIGHTS >> 2, TABLES >> 2, WEIGHTS & 3]
        assert core.call(call.kernel.assembled().code(), [*first, *numbers], family == "xtensawin") == 1
        assert core.memory[ARENA] == due
