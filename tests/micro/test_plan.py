"""The memory plan overwrites nothing that is still needed and uses little more than the step with the most live
memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.plan import Buffer, place, plan
from emberlet.micro.builder.program import Program
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.microcontrollers.drawn_graphs import IMAGE, drawn
from tools.microcontrollers.graphs_over_time import over_time
from tools.microcontrollers.models import digits_graph

buffers = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 12), st.integers(0, 6)), min_size=1, max_size=14)


@given(buffers)
@settings(max_examples=200)
def test_buffers_that_live_together_lie_apart(made: list[tuple[int, int, int]]) -> None:
    placed = [Buffer(size, first, first + length) for size, first, length in made]
    arena = place(placed)
    for i, a in enumerate(placed):
        assert 0 <= a.place and a.place + a.size <= arena
        for b in placed[:i]:
            if a.overlaps(b):
                assert a.place + a.size <= b.place or b.place + b.size <= a.place
    least = max(sum(b.size for b in placed if b.first <= step <= b.last) for step in range(19))
    assert least <= arena <= 2 * least


def run(program: Program, arena: Array) -> None:
    for step in program.steps:
        values = []
        for k, view in enumerate(step.inputs):
            h, w, c = view.shape
            at = step.places[f"i{k}"] + view.origin
            rows = [arena[at + r * view.pitch : at + r * view.pitch + w * c].copy() for r in range(h)]
            values.append(np.concatenate(rows).reshape(view.shape))
        if step.layer.kind == "border":
            # The border belongs to the tensor's own buffer: filling it overwrites nothing else.
            at, view, size = step.places["o"], step.output, step.layer.size  # type: ignore[attr-defined]
            inside = np.zeros(size, bool)
            for r in range(view.shape[0]):
                begin = view.origin + r * view.pitch
                inside[begin : begin + view.row] = True
            arena[at : at + size][~inside] = step.layer.fill  # type: ignore[attr-defined]
            continue
        y = step.layer.reference(*values).reshape(-1)
        view, at = step.output, step.places["o"] + step.output.origin
        for r in range(view.shape[0]):
            arena[at + r * view.pitch : at + r * view.pitch + view.row] = y[r * view.row : (r + 1) * view.row]


@pytest.mark.parametrize("seed", range(0, 150, 50))
def test_graphs_at_random_survive_their_own_arenas(seed: int) -> None:
    """Convolutions with padding, joined and cut tensors, several outputs; nothing is known of what an arena held."""
    shared = 0
    for k in range(seed, seed + 50):
        graph = fuse(over_time(k)[0])
        program = plan(graph)
        x = np.random.default_rng(k).normal(0, 1, graph.shapes["x"]).astype(np.float32)
        arena = np.full(program.arena, np.nan, np.float32)
        port = program.inputs[0]
        arena[port.place : port.place + port.size] = x.reshape(-1)
        run(program, arena)
        wanted = graph.run({"x": x})
        for out in program.outputs:
            found = arena[out.place : out.place + out.size].reshape(out.shape)
            np.testing.assert_allclose(found, wanted[out.name], rtol=1e-4, atol=1e-5, err_msg=f"seed {k}, {out.name}")
        shared += sum(step.places["o"] == step.places.get("i0") for step in program.steps)
    assert shared > 20


def test_states_of_graphs_at_random_survive() -> None:
    for k in range(60):
        graph = fuse(drawn(k, states=1 + k % 3)[0])
        program = plan(graph)
        arena, kept = np.full(program.arena, np.nan, np.float32), dict[str, Any]()
        for at, size, repeated in program.kept:
            arena[at : at + size] = np.resize(np.array(repeated), size)
        for turn in range(3):
            x = np.random.default_rng([k, turn]).integers(-3, 4, IMAGE).astype(np.float32)
            port = program.inputs[0]
            arena[port.place : port.place + port.size] = x.reshape(-1)
            run(program, arena)
            wanted = graph.run({"x": x}, kept)
            for out in program.outputs:
                found = arena[out.place : out.place + out.size].reshape(out.shape)
                np.testing.assert_allclose(found, wanted[out.name], rtol=1e-6, err_msg=f"seed {k}, {out.name}")


def test_digits_need_what_two_layers_hold() -> None:
    program = plan(fuse(digits_graph()))
    # The padded output of the first convolution beside the output of the second.
    assert program.arena == 10 * 10 * 8 + 8 * 8 * 16
    assert program.arena_bytes == 4 * program.arena
