"""Graphs with one thing changed are merged, quantized, streamed and planned as it is recorded.

Changed are what is given out, the grids, the states and the numbers of layers, so that each rule of a pass meets what
it is for and what is right but for one thing. `UPDATE_SNAPSHOTS=1 pytest` on this file records them again; other tests
compare results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.micro.builder.assembly.registry import ALL
from emberlet.micro.builder.build import in_float32, rounded_weights
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph, Grid, Reshape
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.lanes import OneHot, Take
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.select import Select
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.quantization.quantize16 import in_8_bits
from emberlet.micro.builder.streaming import streamed
from emberlet.micro.builder.tflite import importing  # noqa: F401 (it adds the arithmetic that rounds twice)
from support.microcontrollers.described import described, digest, planned
from support.microcontrollers.drawn_graphs import drawn
from support.microcontrollers.float_layers import float_cases, function_cases
from support.microcontrollers.graphs_over_time import over_time
from support.microcontrollers.onnx_models import MODELS
from support.microcontrollers.outcomes import lines_of
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_graph_changes.txt")
BYTES, OTHER_BYTES, WORDS = Grid(0.25, 128), Grid(0.0625, 7), Grid(2.0**-11, 1 << 15, 16)
OTHERS: dict[str, tuple[Any, ...]] = {
    "low": (-1.0, -inf, 0.0),
    "high": (1.0, inf, 6.0),
    "chain": ((), (("clip", (-0.5, 1.0)),), (("affine", (2.0, 0.5)),), (("abs", ()),), (("round", ()), ("abs", ()))),
    "grid": ((0.125, 100),),
    "fill": (None, 0.0, 1.5),
    "keep": (True, False),
    "log": (True, False),
    "factor": (0.5, 1.0),
}
"""Field of a layer -> other values."""
OPERATIONS = (("add", "sub", "mul", "div"), ("max", "min"))
MODELS_TAKEN = (
    "silu_and_squeeze_excitation", "temporal_convolution", "last_state_of_an_lstm", "gelu_by_hand", "arithmetic",
    "depth_to_space",
)  # fmt: skip


def all_changes(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """(what is changed, the graph)."""
    yield "as it is", graph
    for name in graph.shapes:
        for what, grid in (("bytes", BYTES), ("other bytes", OTHER_BYTES), ("words", WORDS)):
            yield f"{name} on {what}", replace(graph, grids={**graph.grids, name: grid})
        if name in graph.grids:
            yield f"{name} without its grid", replace(graph, grids={n: g for n, g in graph.grids.items() if n != name})
        yield f"{name} whole", replace(graph, whole=graph.whole | {name})
        if name not in (*graph.inputs, *graph.states):
            yield f"{name} given out", replace(graph, outputs=(*dict.fromkeys((*graph.outputs, name)),))
            yield f"{name} alone given out", replace(graph, outputs=(name,))
    for name in (*graph.inputs, *graph.outputs):
        for byte in (0, 128):
            grids = {**graph.grids, name: BYTES}
            yield f"{name} of integers {byte}", replace(graph, integers={**graph.integers, name: byte}, grids=grids)
    for what, grid in (("bytes", BYTES), ("words", WORDS)):
        yield f"all on {what}", replace(graph, grids=dict.fromkeys(graph.shapes, grid))
        ends = dict.fromkeys((*graph.inputs, *graph.states, *graph.outputs), grid)
        yield f"ends on {what}", replace(graph, grids={**graph.grids, **ends})
    yield "rounding twice", replace(graph, doubled=True, grids=dict.fromkeys(graph.shapes, BYTES))
    for k, layer in enumerate(graph.layers):
        for what, made in layers(layer, graph):
            changed = (*graph.layers[:k], made, *graph.layers[k + 1 :])
            yield f"{layer.name}: {what}", replace(graph, layers=changed)
        if isinstance(layer, DotFloat):
            scales = {layer.name: np.array([0.125])}
            yield f"{layer.name} in steps", replace(graph, weight_scales=scales)
            yield f"{layer.name} packed", replace(graph, weight_scales=scales, packed=frozenset([layer.name]))
            yield f"{layer.name} from 7 on", replace(graph, weight_scales=scales, weight_zeros={layer.name: 7})


def layers(layer: Layer, graph: Graph) -> Iterator[tuple[str, Layer]]:
    """The layer with other bounds, functions or numbers, and reading another tensor."""
    for field in fields(layer):
        value = getattr(layer, field.name)
        for other in OTHERS.get(field.name, ()):
            if other != value and (field.name != "fill" or type(value) is type(other)):
                yield f"{field.name}={other}", replace(layer, **{field.name: other})
    for operations in OPERATIONS:
        own = getattr(layer, "operation", "")
        for other in operations if own in operations else ():
            if other != own and (other != "div" or len(layer.inputs) == 1):
                yield other, replace(layer, operation=other)  # type: ignore[call-arg]
    if isinstance(constant := getattr(layer, "constant", None), np.ndarray):
        ones, other = np.ones_like(constant), constant.copy()
        other.reshape(-1)[0] = 0
        yield "of ones", replace(layer, constant=ones)  # type: ignore[call-arg]
        yield "of a zero", replace(layer, constant=other)  # type: ignore[call-arg]
        yield "of one number", replace(layer, constant=ones.reshape(-1)[:1] * 0.5, other=(1,))  # type: ignore[call-arg]
    before = [*graph.inputs, *(other.output for other in graph.layers[: graph.layers.index(layer)])]
    for k, name in enumerate(layer.inputs):
        same = [n for n in before if n != name and graph.shapes[n] == graph.shapes.get(name)]
        if same:
            given = (*layer.inputs[:k], same[-1], *layer.inputs[k + 1 :])
            yield f"reads {same[-1]}", replace(layer, inputs=given)


def told(make: Callable[[], Graph], exact: bool) -> str:
    """A digest of a graph and its plan, or the reason against it."""
    try:
        graph = make()
        return digest("\n".join([*described(graph, exact), *planned(plan(graph, ALL), exact)]))
    except EmberletError as error:
        return str(error)


def ranges_of(graph: Graph) -> dict[str, tuple[float, float]]:
    return {name: (-0.5 * (k % 5), 0.5 + k % 3) for k, name in enumerate(sorted(graph.shapes))}


def outcome_of(graph: Graph, exact: bool, axis: int | None) -> str:
    try:
        fused = fuse(graph)
    except EmberletError as error:
        return str(error)
    if axis is not None:
        texts = [told(lambda new=new: streamed(fused, axis, new), exact) for new in (None, 1, 2)]  # type: ignore[misc]
        if fused.grids:
            texts.append(told(lambda: quantize_graph(fused, stream=lambda g: streamed(g, axis, 1)), exact))
        return f"{' '.join(layer.kind for layer in fused.layers)}: {' '.join(texts)}"
    texts = [told(lambda: fused, exact)]
    if graph.grids:
        texts += [told(lambda: quantize_graph(fused), exact), told(lambda: fuse(in_float32(graph)), exact)]
        texts += rounded_weights(fused)
    narrow = fuse(in_8_bits(graph))
    texts.append(told(lambda: quantize_graph(narrow, ranges_of(narrow)), exact))
    return f"{' '.join(layer.kind for layer in fused.layers)}: {' '.join(texts)}"


def masked(seed: int) -> Graph:
    """A choice before a softmax, between numbers and constants of which some hide."""
    rng, shape = np.random.default_rng(seed), (2, 4)
    axes = tuple(Axis(n, (step, step, step, step)) for n, step in zip(shape, (4, 1), strict=True))
    mask = rng.integers(0, 2, shape).astype(np.float32)
    least = (-9999.0, -1e4, -10001.0, -3e38, -2.0, 1e4)[seed % 6]
    hiding = np.where(rng.random(shape) < 0.6, np.float32(least), np.float32(-3))
    shown = rng.integers(-9, 10, shape).astype(np.float32) / 2 if seed % 4 == 3 else None
    constants = (mask, hiding, shown)
    inputs = ("x",) if shown is None else ()
    chosen = "y" if seed % 5 else "r"
    layers: list[Layer] = [Select("choice", inputs, "s", shape, axes, constants)]
    if chosen == "r":
        layers.append(Reshape("turned", ("s",), "r", shape))
    layers.append(SoftmaxFloat("softmax", ("s" if chosen == "y" else "r",), "y", 2, 4, bool(seed % 2)))
    shapes = {**dict.fromkeys(("x", "s", "y"), shape), **({"r": shape} if chosen == "r" else {})}
    grids = {"x": BYTES} if seed % 3 else {}
    return Graph("m", tuple(layers), shapes, ("x",), ("y",), grids=grids)


def single() -> Iterator[tuple[str, Graph]]:
    """Two layers of each kind, of inputs on grids."""
    count: dict[str, int] = {}
    for case in [*float_cases(43, 156), *function_cases()]:
        layer = case.layer
        count[layer.kind] = count.get(layer.kind, 0) + 1
        if count[layer.kind] <= 2:
            shapes = {**{n: x.shape for n, x in zip(layer.inputs, case.inputs, strict=True)}, layer.output: case.shape}
            grids = dict.fromkeys(layer.inputs[: 1 if isinstance(layer, Take | OneHot) else None], BYTES)
            graph = Graph("m", (layer,), shapes, layer.inputs, (layer.output,), grids=grids)
            yield f"{layer.kind} {count[layer.kind]}", graph


def graphs() -> Iterator[tuple[str, Graph, bool, int | None]]:
    """(name, graph, whether its numbers are the same on every machine, the axis that streams)."""
    for seed in range(700, 724):
        yield f"layers {seed}", drawn(seed, states=seed % 3, grids=bool(seed % 2))[0], True, None
    for seed in range(700, 716):
        graph, axis = over_time(seed)
        yield f"over time {seed}", graph, True, axis
    for name, graph in single():
        yield name, graph, False, None
    for seed in range(18):
        yield f"masked {seed}", masked(seed), False, None
    for name in MODELS_TAKEN:
        yield name, read_graph(MODELS[name]().SerializeToString(), "m"), False, None


GRAPHS = {name: given for name, *given in graphs()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_with_one_thing_changed_becomes_what_is_recorded(name: str) -> None:
    graph, exact, axis = GRAPHS[name]
    lines = lines_of(RECORDED, name, dict(all_changes(graph)), lambda made: outcome_of(made, exact, axis))
    assert lines
    assert_recorded(RECORDED, name, lines)
