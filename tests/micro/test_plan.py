"""The memory plan overwrites nothing that is still needed and uses little more than the step with the most live
memory."""

from __future__ import annotations

import numpy as np
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.plan import Buffer, lower_bound, place, plan
from emberlet.micro.builder.program import Program
from hypothesis import given, settings
from hypothesis import strategies as st

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
            arena[at : at + size][~inside] = int(step.layer.fill)  # type: ignore[attr-defined]
            continue
        y = step.layer.reference(*values).reshape(-1)
        view, at = step.output, step.places["o"] + step.output.origin
        for r in range(view.shape[0]):
            arena[at + r * view.pitch : at + r * view.pitch + view.row] = y[r * view.row : (r + 1) * view.row]
    out = program.outputs[0]
    return arena[out.place : out.place + out.size]


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
