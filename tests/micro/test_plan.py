"""The memory plan overwrites nothing that is still needed and uses little more than the step with the most live
memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph, renamed
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Array, Layer
from emberlet.micro.builder.kernels.pool import MaxPool
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.plan import Buffer, lower_bound, place, plan
from emberlet.micro.builder.program import Program
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.microcontrollers.drawn_graphs import IMAGE, drawn
from tools.microcontrollers.graphs_over_time import over_time
from tools.microcontrollers.models import digits_graph, residual_graph, residual_samples

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
    assert lower_bound(placed) <= arena <= 2 * lower_bound(placed)


def simulate(program: Program, x: Array) -> Array:
    """Run the references on the arena itself, so that each output overwrites what was there."""
    arena = np.full(program.arena, 0xA5, np.uint8)
    port = program.inputs[0]
    arena[port.place : port.place + port.size] = x.reshape(-1)
    run(program, arena)
    out = program.outputs[0]
    return arena[out.place : out.place + out.size]


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


def test_a_tensor_that_is_read_with_two_paddings_has_the_wider_border() -> None:
    graph = convolutions([(1, 0, 0, 2), (0, 2, 1, 0)])
    program = plan(graph)
    borders = [step.layer for step in program.steps if step.layer.kind == "border"]
    assert len(borders) == 1 and not any(step.layer.kind == "copy" for step in program.steps)
    assert borders[0].size == (1 + 4 + 1) * (2 + 3 + 2) * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("what", ["input", "output", "another fill"])
def test_a_tensor_that_cannot_have_a_border_is_copied(what: str) -> None:
    graph = convolutions([(1, 1, 1, 1)], outputs=("a",) if what == "output" else ())
    if what == "input":
        graph = replace(graph, layers=tuple(renamed(x, {"a": "x"}) for x in graph.layers[1:]))
    if what == "another fill":
        pool = MaxPool("p", ("a",), "p", (4, 3, 2), Window((2, 2), pads=(1, 0, 0, 1)), -9.0)
        graph = replace(
            graph, layers=(*graph.layers, pool), shapes={**graph.shapes, "p": (4, 3, 2)}, outputs=("y0", "p")
        )
    copies = [step.layer for step in plan(graph).steps if step.layer.kind == "copy"]
    assert [layer.inputs for layer in copies] == [("x",) if what == "input" else ("a",)]


def convolutions(pads: list[tuple[int, int, int, int]], outputs: tuple[str, ...] = ()) -> Graph:
    """Convolutions of the same tensor, an image of 4 x 3 pixels."""
    layers: list[Layer] = [MapFloat("a", ("x",), "a", (4, 3, 2), (("tanh", ()),))]
    shapes = {"x": (4, 3, 2), "a": (4, 3, 2)}
    for k, pad in enumerate(pads):
        window = Window((2, 2), pads=pad)
        weights = np.ones((1, 2, 2, 2), np.float32)
        layers.append(DotFloat(f"y{k}", ("a",), f"y{k}", (4, 3, 2), window, 1, weights, np.zeros(1, np.float32)))
        shapes[f"y{k}"] = (*window.output(4, 3), 1)
    return Graph("m", tuple(layers), shapes, ("x",), (*outputs, *(f"y{k}" for k in range(len(pads)))))


def test_a_residual_network_survives_its_own_arena() -> None:
    built = build(residual_graph(8), Options("m"), {"image": residual_samples()})
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 256, (16, 16, 3)).astype(np.uint8)
        expected = built.graph.run({"image": x})["classes"]
        assert simulate(built.program, x).tolist() == expected.tolist()


def test_digits_need_what_two_layers_hold() -> None:
    program = plan(fuse(digits_graph()))
    # The padded output of the first convolution beside the output of the second.
    assert program.arena == 10 * 10 * 8 + 8 * 8 * 16
    assert program.arena_bytes == 4 * program.arena


def test_elementwise_layers_write_where_they_read() -> None:
    w = np.eye(8).reshape(8, 1, 1, 8)
    gelu = (("gelu", ()),)
    layers = (
        DotFloat("first", ("x",), "a", (8,), Window((1, 1)), 1, w, np.zeros(8)),
        MapFloat("gelu", ("a",), "b", (8,), gelu),
        BinaryFloat("add", ("b", "x"), "c", "add", (8,), (8,), None),
        MapFloat("again", ("c",), "d", (8,), gelu),
        BinaryFloat("kept", ("d", "c"), "y", "add", (8,), (8,), None),
    )
    program = plan(Graph("m", layers, dict.fromkeys("xabcdy", (8,)), ("x",), ("y",)))
    shares = {step.layer.name: step.places["o"] == step.places["i0"] for step in program.steps}
    assert shares == {"first": False, "gelu": True, "add": True, "again": False, "kept": True}
    assert program.arena == 16
