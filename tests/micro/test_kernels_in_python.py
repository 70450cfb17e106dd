"""Layers drawn at random, and layers at the limits of their kernels, run here: bytecode computes what NumPy does."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from emberlet.micro.builder.kernels.recurrence import RecurrentLayer
from emberlet.micro.builder.kernels.recurrent_float import _RecurrentFloat
from support.microcontrollers import edge_float_layers, edge_layers
from support.microcontrollers.float_layers import float_cases, float_program, function_cases
from support.microcontrollers.in_python import kernels_of, run_in_python

from tools.microcontrollers.random_layers import Case, assembly_cases, cases, large_cases, program_of, word_cases

BYTES: dict[str, Callable[[], Iterator[Case]]] = {
    "every kind": lambda: cases(41, 256),
    "large": lambda: iter(large_cases()),
    "words": lambda: word_cases(42, 60),
    "assembly": lambda: assembly_cases(43, 96),
    **edge_layers.BYTES,
}
FLOATS: dict[str, Callable[[], Iterator[Case]]] = {
    "layers": lambda: float_cases(44, 156),
    "functions": function_cases,
    "edges": edge_float_layers.float_layers,
}


@pytest.mark.parametrize("what", BYTES)
def test_bytes_are_those_of_numpy_and_no_result_exceeds_a_word(what: str) -> None:
    for k, case in enumerate(BYTES[what]()):
        program, arena, ((at, due),) = program_of([case])
        out = run_in_python(program, arena, within_words=True)
        assert out[at : at + due.size].tobytes() == due.tobytes(), (k, case.layer.name)


@pytest.mark.parametrize("what", FLOATS)
def test_floats_are_those_of_numpy(what: str) -> None:
    for k, case in enumerate(FLOATS[what]()):
        program, arena, ((at, due),) = float_program([case])
        y = run_in_python(program, arena)[at : at + due.size].reshape(due.shape)
        np.testing.assert_allclose(y, due, rtol=2e-5, atol=2e-6, err_msg=f"{k} {case.layer.name}")


def remembering() -> Iterator[Case]:
    drawn = [*cases(45, 96), *word_cases(48, 60), *float_cases(47, 78), *edge_layers.recurrences()]
    for case in drawn:
        if isinstance(case.layer, RecurrentLayer | _RecurrentFloat):
            yield replace(case, layer=replace(case.layer, keep=True))


def test_a_kept_state_is_that_of_numpy_after_each_of_three_calls() -> None:
    for k, case in enumerate(remembering()):
        layer, is_float = case.layer, case.inputs[0].dtype == np.float32
        assert layer.remembers
        program, blob, ((at, first),) = (float_program if is_float else program_of)([case])
        place = program.steps[-1].places["st"]
        counts = [count * len(repeated) for count, repeated in layer.initial]
        starts = accumulate([place, *counts[:-1]])
        states = tuple((s, n, r) for s, n, (_, r) in zip(starts, counts, layer.initial, strict=True))
        names = kernels_of(replace(program, states=states))
        arena = np.frombuffer(bytearray(blob), np.float32 if is_float else np.uint8)
        weights = np.frombuffer(program.weight_bytes, arena.dtype)
        given = array("f", blob) if is_float else bytearray(blob)
        state, run = None, names["bind"](given, weights.tolist(), program.words)
        names["reset"](given)
        for _ in range(3):
            run()
            due, state = layer.advance(state, *case.inputs)
            y = np.array(given[at : at + first.size], arena.dtype).reshape(due.shape)
            np.testing.assert_allclose(y, due, rtol=2e-5 * is_float, atol=2e-6 * is_float, err_msg=f"{k} {layer.name}")
