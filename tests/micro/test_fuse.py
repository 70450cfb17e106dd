"""Fusing keeps a graph's results, for random graphs; and which layers each fusion merges or leaves alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod
from typing import Any

import numpy as np
import pytest
from emberlet.errors import ModelError, ShapeError
from emberlet.micro.builder.fuse import fuse, in_float32
from emberlet.micro.builder.graph import Graph, Grid, Reshape
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.kernels.window import Window
from support.rows import every

from tools.microcontrollers.drawn_graphs import IMAGE, drawn

Array = np.ndarray[Any, Any]


def steps(seed: int) -> list[Array]:
    return [np.random.default_rng([seed, k]).integers(-3, 4, IMAGE).astype(np.float32) for k in range(3)]


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_a_fused_graph_computes_the_same(start: int) -> None:
    """Every third rounds to grids: its input lies on that of the first QuantizeLinear that reads it; here all inputs do
    anyway."""
    for seed in range(start, start + 100):
        graph, _ = drawn(seed, grids=seed % 3 == 2)
        x = steps(seed)[0]
        wanted, found = graph.run({"x": x}), fuse(graph).run({"x": x})
        for name in graph.outputs:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, err_msg=f"seed {seed}, {name}")


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_a_fused_graph_with_states_computes_the_same_over_time(start: int) -> None:
    for seed in range(start, start + 100):
        graph, kept = drawn(seed, states=1 + seed % 3)
        fused = fuse(graph)
        without = replace(graph, layers=tuple(x for x in graph.layers if not isinstance(x, Keep)))
        states: dict[str, Any] = {}
        before: dict[str, Any] = {n: np.full(IMAGE, v, np.float32) for n, v in graph.states.items()}
        for x in steps(seed):
            wanted, found = without.run({"x": x}, dict(before)), fused.run({"x": x}, states)
            before = {layer.output: wanted[layer.inputs[0]] for layer in kept}
            for name in graph.outputs:
                if name not in graph.states:
                    np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, err_msg=f"seed {seed}, {name}")
            for name, value in before.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=f"seed {seed}, state {name}")


# -- layers that are merged -------------------------------------------------------------------------------------------


def graph_of(layers: Sequence[Layer], outputs: Sequence[str] = ("y",), **more: Any) -> Graph:
    """A graph of layers on IMAGE; Reshape and Move say their own shapes."""
    shapes = {"x": IMAGE, **dict.fromkeys(more.get("states", ()), IMAGE)}
    for layer in layers:
        shapes.setdefault(layer.output, layer.shape if isinstance(layer, Reshape | Move) else IMAGE)
    return Graph("m", tuple(layers), shapes, ("x",), tuple(outputs), **more)


def mapped(source: str, out: str, *chain: tuple[str, tuple[float, ...]]) -> MapFloat:
    return MapFloat(out, (source,), out, IMAGE, chain)


def with_constant(source: str, out: str, operation: str, c: Any, *bounds: float) -> BinaryFloat:
    c = np.asarray(c, np.float32)
    return BinaryFloat(out, (source,), out, operation, IMAGE, c.shape, c, *bounds)


def both(first: str, second: str, out: str, operation: str = "mul", *bounds: float) -> BinaryFloat:
    return BinaryFloat(out, (first, second), out, operation, IMAGE, IMAGE, None, *bounds)


def conv(source: str, out: str, *bounds: float) -> DotFloat:
    weights = np.arange(16, dtype=np.float32).reshape(4, 1, 1, 4) / 8
    return DotFloat(out, (source,), out, IMAGE, Window((1, 1)), 1, weights, np.ones(4, np.float32), *bounds)


def moved(source: str, out: str, shape: tuple[int, ...] = IMAGE, start: int = 0, fill: float | None = None) -> Move:
    axes = tuple(Axis(n, (a, a)) for n, a in zip(shape, strides(shape), strict=True))
    return Move(out, (source,), out, shape, (Part(start, 0, axes),), fill)


RELU = ("clip", (0.0, inf))
HALF = ("affine", (0.5, 0.0))
ABS = ("abs", ())
SIGMOID = ("sigmoid", ())
CHANNELS = [1.0, 2.0, 4.0, 0.5]
QUARTERS = Grid(0.25, 128)

# Layers, and the kinds that are left; "y" is the output.
MERGED: dict[str, tuple[list[Layer], str]] = {
    "functions": ([mapped("x", "a", ABS), mapped("a", "y", HALF)], "mapfloat"),
    "a number": ([with_constant("x", "y", "add", [2])], "mapfloat"),
    "a quotient by a number": ([with_constant("x", "y", "div", [2])], "mapfloat"),
    "a quotient by zero": ([with_constant("x", "y", "div", [0])], "binaryfloat"),
    "a number, clamped": ([with_constant("x", "y", "mul", [2], 0.0, 1.0)], "mapfloat"),
    "a number, clamped above": ([with_constant("x", "y", "mul", [2], -inf, 1.0)], "mapfloat"),
    "a number, clamped below": ([with_constant("x", "y", "sub", [2], 0.0, inf)], "mapfloat"),
    "numbers": ([with_constant("x", "y", "add", CHANNELS)], "binaryfloat"),
    "a gate": ([mapped("x", "g", SIGMOID), both("x", "g", "y")], "mapfloat"),
    "a gate in front": ([mapped("x", "g", SIGMOID), both("g", "x", "y")], "mapfloat"),
    "a gate that is added": ([mapped("x", "g", SIGMOID), both("x", "g", "y", "add")], "mapfloat binaryfloat"),
    "a clamped gate": ([mapped("x", "g", SIGMOID), both("x", "g", "y", "mul", 0.0, inf)], "mapfloat binaryfloat"),
    "a gate clamped above": (
        [mapped("x", "g", SIGMOID), both("x", "g", "y", "mul", -inf, 0.0)], "mapfloat binaryfloat",
    ),
    "a gate of another": (
        [mapped("x", "a", ABS), mapped("x", "g", SIGMOID), both("a", "g", "y")], "mapfloat mapfloat binaryfloat",
    ),
    "a gate of a gate": (
        [mapped("x", "g", SIGMOID), both("x", "g", "a"), both("x", "a", "y")], "mapfloat binaryfloat",
    ),
    "a gate that is read again": (
        [mapped("x", "g", SIGMOID), both("x", "g", "a"), both("a", "g", "y", "add")],
        "mapfloat binaryfloat binaryfloat",
    ),
    "relu behind a convolution": ([conv("x", "a"), mapped("a", "y", RELU)], "conv"),
    "relu and more behind a convolution": ([conv("x", "a"), mapped("a", "y", RELU, ABS)], "conv mapfloat"),
    "another function behind a convolution": ([conv("x", "a"), mapped("a", "y", ABS)], "conv mapfloat"),
    "relu behind a sum": ([both("x", "x", "a", "add"), mapped("a", "y", RELU)], "binaryfloat"),
    "a clamp behind a clamp": ([conv("x", "a", -1.0, 0.75), mapped("a", "y", ("clip", (-0.5, 6.0)))], "conv"),
    "a clamp beyond a clamp": ([conv("x", "a", -1.0, 0.75), mapped("a", "y", ("clip", (2.0, 6.0)))], "conv"),
    "a clamp below a clamp": ([conv("x", "a", -1.0, 0.75), mapped("a", "y", ("clip", (-9.0, -3.0)))], "conv"),
    "a factor behind a convolution": ([conv("x", "a"), with_constant("a", "y", "mul", CHANNELS)], "conv"),
    "a divisor behind a convolution": ([conv("x", "a"), with_constant("a", "y", "div", CHANNELS)], "conv"),
    "an offset behind a convolution": ([conv("x", "a"), with_constant("a", "y", "sub", CHANNELS)], "conv"),
    "a shift behind a convolution": ([conv("x", "a"), with_constant("a", "y", "add", [CHANNELS])], "conv"),
    "a function behind a convolution": ([conv("x", "a"), mapped("a", "y", ("affine", (2.0, -1.0)))], "conv"),
    "functions behind a convolution": ([conv("x", "a"), mapped("a", "y", HALF, ABS)], "conv mapfloat"),
    "a factor behind a clamp": (
        [conv("x", "a", 0.0, inf), with_constant("a", "y", "mul", CHANNELS)], "conv binaryfloat",
    ),
    "a factor behind a clamp above": (
        [conv("x", "a", -inf, 1.0), with_constant("a", "y", "mul", CHANNELS)], "conv binaryfloat",
    ),
    "a clamped factor": ([conv("x", "a"), with_constant("a", "y", "mul", CHANNELS, 0.0, inf)], "conv binaryfloat"),
    "a factor clamped above": (
        [conv("x", "a"), with_constant("a", "y", "mul", CHANNELS, -inf, 1.0)], "conv binaryfloat",
    ),
    "a divisor of zero": ([conv("x", "a"), with_constant("a", "y", "div", [1, 0, 2, 4])], "conv binaryfloat"),
    "a factor for each column": (
        [conv("x", "a"), with_constant("a", "y", "mul", np.ones((3, 1)))], "conv binaryfloat",
    ),
    "a factor for each element of a row": (
        [conv("x", "a"), with_constant("a", "y", "mul", np.ones((3, 4)))], "conv binaryfloat",
    ),
    "a convolution that is read twice": (
        [conv("x", "a"), mapped("a", "b", RELU), both("a", "b", "y", "add")], "conv mapfloat binaryfloat",
    ),
    "no move": ([moved("x", "y")], "reshape"),
    "a move in front of another layer": ([moved("x", "a"), mapped("a", "y", ABS)], "mapfloat"),
    "a move of a part": ([moved("x", "y", (1, 3, 4))], "move"),
    "a move of the end": ([moved("x", "y", (1, 3, 4), 12)], "move"),
    "a move onto a filled tensor": ([moved("x", "y", fill=1.0)], "move"),
    "a reshape that changes nothing": ([Reshape("a", ("x",), "a", IMAGE), mapped("a", "y", ABS)], "mapfloat"),
    "reshapes": (
        [Reshape("a", ("x",), "a", (24,)), Reshape("b", ("a",), "b", (6, 4)), Reshape("y", ("b",), "y", (4, 6))],
        "reshape",
    ),
    "nothing behind a convolution": ([conv("x", "a"), mapped("a", "y")], "conv mapfloat"),
    "a factor behind a clamp without ends": (
        [conv("x", "a"), mapped("a", "y", ("clip", (-inf, inf)), HALF)], "conv",
    ),
    "what nothing reads": ([mapped("x", "a", ABS), conv("a", "b"), mapped("x", "y", HALF)], "mapfloat"),
}  # fmt: skip


def kinds(graph: Graph) -> str:
    return " ".join(layer.kind for layer in graph.layers)


@every("what", MERGED)
def test_what_is_merged(what: str) -> None:
    layers, left = MERGED[what]
    graph = graph_of(layers)
    fused = fuse(graph)
    assert kinds(fused) == left
    x = np.random.default_rng(1).uniform(-2, 2, IMAGE).astype(np.float32)
    found, wanted = fused.run({"x": x})["y"], graph.run({"x": x})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["mul", "div", "add", "sub"])
def test_weights_that_came_quantized_take_no_factor(op: str) -> None:
    """Their steps would change. A shift goes into the bias."""
    layers = [conv("x", "a"), with_constant("a", "y", op, CHANNELS)]
    fused = fuse(graph_of(layers, weight_scales={"a": np.ones(4)}))
    assert kinds(fused) == ("conv" if op in ("add", "sub") else "conv binaryfloat")


# -- states -----------------------------------------------------------------------------------------------------------


def test_states_that_change_places_are_copied_first() -> None:
    keeps = [Keep("first", ("b",), "a", IMAGE), Keep("second", ("a",), "b", IMAGE)]
    for reshaped in (False, True):
        layers: list[Layer] = [both("a", "b", "t", "sub"), both("x", "t", "y", "add")]
        if reshaped:
            layers += [Reshape("flat", ("a",), "flat", (24,)), Reshape("wide", ("flat",), "wide", (4, 6))]
            keeps[1] = Keep("second", ("wide",), "b", IMAGE)
        grids = dict.fromkeys(("a", "b", "flat", "wide"), QUARTERS)
        fused = fuse(graph_of([*layers, *keeps], states={"a": 1.0, "b": 5.0}, grids=grids))
        states: dict[str, Any] = {}
        found = [fused.run({"x": np.zeros(IMAGE, np.float32)}, states)["y"].reshape(-1)[0] for _ in range(4)]
        assert found == [-4, 4, -4, 4]
        copies = [layer.output for layer in fused.layers if layer.kind == "copy"]
        assert len(copies) == 2 and all(fused.grids[name] == QUARTERS for name in copies)


# -- quantized models in float32 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("byte", [0, 128])
def test_bytes_that_come_in_and_go_out_are_the_models_integers(byte: int) -> None:
    layers = [mapped("x", "y", ("affine", (3.0, 1.0)))]
    grids = {"x": Grid(0.5, 100), "y": Grid(0.25, 60)}
    graph = in_float32(graph_of(layers, grids=grids, integers={"x": byte, "y": byte}))
    assert not graph.grids
    stored = np.arange(0, 240, 10, dtype=np.float32).reshape(IMAGE)
    found = graph.run({"x": stored - byte})["y"]
    wanted = np.clip(np.rint(((stored - 100) * 0.5 * 3 + 1) / 0.25) + 60, 0, 255) - byte
    np.testing.assert_array_equal(found, wanted)


def test_a_quantizer_saturates_in_float32() -> None:
    graph = in_float32(graph_of([mapped("x", "y")], grids={"y": QUARTERS}))
    x = np.linspace(-100, 100, 24, dtype=np.float32).reshape(IMAGE)
    np.testing.assert_allclose(graph.run({"x": x})["y"], np.clip(x, -32, 31.75), rtol=1e-6)


def test_a_graph_says_what_it_lacks() -> None:
    graph = graph_of([mapped("x", "y", ABS)])
    with pytest.raises(ModelError, match="layer 'y' reads 'a', which no earlier layer writes"):
        graph_of([mapped("a", "y", ABS), mapped("x", "a", ABS)]).check()
    with pytest.raises(ModelError, match=r"no shape for \['y'\]"):
        replace(graph, shapes={"x": IMAGE}).check()
    with pytest.raises(ModelError, match=r"outputs \('z',\) of \['x', 'y'\]"):
        replace(graph, outputs=("z",)).check()
    with pytest.raises(ShapeError, match=r"no value for input 'x'; found \['y'\]"):
        graph.run({"y": np.zeros(IMAGE)})
    with pytest.raises(ShapeError, match=r"input 'x' has shape \(23,\), expected \(2, 3, 4\)"):
        graph.run({"x": np.zeros(23)})
    assert graph.check() is graph and prod(graph.run({"x": np.zeros(24)})["y"].shape) == 24
