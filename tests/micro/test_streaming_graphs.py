"""Graphs over time drawn at random, their outputs along time too: a stream's steps are those of the whole window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat
from emberlet.micro.builder.kernels.move import Move, Part
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.pool import ReduceFloat
from emberlet.micro.builder.kernels.slide import Slide
from emberlet.micro.builder.streaming import streamed
from support.microcontrollers.over_time import check

from tools.microcontrollers.graphs_over_time import BANDS, CHANNELS, Over, over_time


@pytest.mark.parametrize("start", range(0, 240, 60))
def test_a_stream_gives_what_the_whole_window_would(start: int) -> None:
    kept = 0
    for seed in range(start, start + 60):
        graph, axis = over_time(seed)
        for new in (None, 1, 2, 5):
            stream = streamed(graph, axis, new)
            kept += any(isinstance(layer, Slide) for layer in stream.layers)
            check(graph, stream, axis, seed, 3 if new is None else 5, near=1e-5)
    assert kept > 60


def local(graph: Graph, stream: Graph) -> list[str]:
    """The kinds of the layers that compute fewer elements."""
    return [layer.kind for layer in graph.layers if stream.shapes[layer.output] != graph.shapes[layer.output]]


def network(form: int, *kinds: str) -> Graph:
    """One layer of each kind behind the other, the last one's output along time."""
    over = Over(np.random.default_rng(2), form=form)
    for kind in kinds:
        if kind == "valid":
            weights = np.ones((CHANNELS, *over.window(3, 1, 1, 0, 0).kernel, CHANNELS), np.float32)
            source = over.live[-1]
            out = over.new(over.shape(over.steps(source) - 2))
            at = (out, (source,), out, over.shapes[source], over.window(3, 1, 1, 0, 0))
            over.layers.append(DotFloat(*at, 1, weights, np.zeros(CHANNELS, np.float32)))
        else:
            getattr(over, kind)()
    last = over.live[-1]
    return Graph("m", tuple(over.layers), dict(over.shapes), ("x",), (last,))


@pytest.mark.parametrize("form", range(3))
def test_layers_of_each_step_compute_new_steps_only(form: int) -> None:
    graph = network(form, "valid", "mapped", "softmax", "valid")
    stream = streamed(graph, 1 if form == 2 else 0, 1)
    assert local(graph, stream) == ["conv", "mapfloat", "softmaxfloat", "conv"]
    kept = [layer.shape for layer in stream.layers if isinstance(layer, Slide)]
    assert len(kept) == 2 and all(max(shape[:2]) == 3 or 3 in shape for shape in kept)
    assert stream.calls_to_fill == 16 and streamed(graph, 1 if form == 2 else 0, 5).calls_to_fill == 4


def test_a_move_that_is_no_cut_along_time_needs_the_whole_window() -> None:
    shape = (16, 4)
    ways = {
        "backward": Part(60, 0, (Axis(16, (-4, 4)), Axis(4, (1, 1)))),
        "of other channels": Part(0, 0, (Axis(16, (4, 2)), Axis(2, (2, 1)))),
        "every second": Part(0, 0, (Axis(8, (8, 4)), Axis(4, (1, 1)))),
        "turned": Part(0, 0, (Axis(16, (4, 1)), Axis(4, (1, 16)))),
    }
    for part in ways.values():
        out = (8, 4) if part.axes[0].turns == 8 else (16, 2) if part.axes[1].turns == 2 else shape
        layer = Move("y", ("x",), "y", out, (part,))
        graph = Graph("m", (layer,), {"x": shape, "y": out}, ("x",), ("y",))
        stream = streamed(graph, 0, 2)
        assert local(graph, stream) == []
        check(graph, stream, 0, 0)


@pytest.mark.parametrize(("form", "inside"), [(0, True), (1, True), (1, False), (2, True), (2, False)])
def test_a_sum_over_each_steps_channels_or_bands_computes_new_steps_only(form: int, inside: bool) -> None:
    """Bands before time lie in one step's lanes; so do channels."""
    over = Over(np.random.default_rng(0), form=form)
    shape = over.shapes["x"]
    if inside:
        layer, out = (int(np.prod(shape[:-1])), CHANNELS, 1), shape[:-1]
    elif form == 1:
        layer, out = (16, BANDS, CHANNELS), (16, CHANNELS)
    else:
        layer, out = (1, BANDS, 16 * CHANNELS), (16, CHANNELS)
    for operation in ("max", "sum"):
        made = ReduceFloat("y", ("x",), "y", layer, operation)
        graph = Graph("m", (made,), {"x": shape, "y": out}, ("x",), ("y",))
        stream = streamed(graph, over.at, 2)
        assert local(graph, stream) == (["reducefloat"] if inside or form == 1 else [])
        check(graph, stream, over.at, 0)


def test_a_factor_for_each_step_needs_the_whole_window() -> None:
    over = Over(np.random.default_rng(0), form=0)
    factors = np.arange(16, dtype=np.float32).reshape(16, 1)
    layers = [BinaryFloat("y", ("x",), "y", "mul", (16, 4), (16, 1), factors)]
    graph = Graph("m", tuple(layers), {**over.shapes, "y": (16, 4)}, ("x",), ("y",))
    stream = streamed(graph, 0, 2)
    assert local(graph, stream) == []
    check(graph, stream, 0, 0)
    each = replace(layers[0], other=(4,), constant=np.arange(4, dtype=np.float32))
    assert local(graph, streamed(replace(graph, layers=(each,)), 0, 2)) == ["binaryfloat"]


@pytest.mark.parametrize("new", [0, -1, 17])
def test_more_new_steps_than_there_are_is_refused(new: int) -> None:
    graph = network(0, "mapped")
    with pytest.raises(UnsupportedError, match=f"--new-steps is {new}, expected 1 to 16"):
        streamed(graph, 0, new)
    assert streamed(graph, 0, 16).shapes["x"] == (16, 4) and streamed(graph, 0, 1).shapes["x"] == (1, 4)


def test_a_model_of_two_inputs_is_not_streamed() -> None:
    graph = network(0, "mapped")
    with pytest.raises(UnsupportedError, match="--stream"):
        streamed(replace(graph, inputs=("x", "z"), shapes={**graph.shapes, "z": (1,)}), 0)


@pytest.mark.parametrize(("axis", "fits"), [(0, False), (1, True), (2, True), (3, False), (-1, False)])
def test_an_axis_that_the_input_does_not_have_is_refused(axis: int, fits: bool) -> None:
    """The batch is no axis of the input as it is stored; its channels lie last."""
    graph = replace(network(0, "mapped"), layouts={"x": ((1, 4, 16), (0, 2, 1))})
    if fits:
        assert streamed(graph, axis, 2).shapes["x"] == ((16, 2) if axis == 1 else (2, 4))
        return
    with pytest.raises(UnsupportedError, match=rf"--stream {axis}: input 'x' has the axes 1 \(4\), 2 \(16\), by"):
        streamed(graph, axis, 2)
