"""What graphs drawn at random become: the layers they are fused to, their grids and streams, and the memory plan.

A graph that is fused less or planned worse computes the same, so no other test would notice. `UPDATE_SNAPSHOTS=1
pytest` on this file records what is built now. All numbers that enter are small multiples of 1/8, so that every machine
computes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError
from emberlet.micro.builder.assembly.registry import ALL
from emberlet.micro.builder.build import in_float32, pack
from emberlet.micro.builder.emit.layers import layers_source
from emberlet.micro.builder.emit.model import Partition, model_source, weights_source
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.elementwise import BinaryFloat
from emberlet.micro.builder.kernels.lanes import OneHot, Take
from emberlet.micro.builder.kernels.pool import AveragePoolFloat
from emberlet.micro.builder.kernels.power import PowerFloat
from emberlet.micro.builder.kernels.recurrent_float import RnnFloat
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.program import Program
from emberlet.micro.builder.quantization.calibrate import grid_over, observe, ranges_of
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.streaming import streamed
from emberlet.micro.builder.tflite import importing  # noqa: F401 (it adds the arithmetic that rounds twice)
from support.microcontrollers.described import described, digest, planned
from support.microcontrollers.drawn_graphs import IMAGE, drawn
from support.microcontrollers.float_layers import float_cases, function_cases
from support.microcontrollers.graphs_over_time import over_time
from support.recorded import assert_recorded

from tools.microcontrollers.random_layers import Case

RECORDED = Path(__file__).with_name("recorded_builds.txt")

Ranges = dict[str, tuple[float, float]]


def seen(graph: Graph) -> Ranges:
    """The ranges of a graph's tensors over eight inputs."""
    x = np.random.default_rng(7).integers(-32, 33, (8, *IMAGE)).astype(np.float32) / 8
    return ranges_of(observe(graph, {"x": x}), "minmax")


def on_grids(graph: Graph, bits: int, missing: Container[str] = ()) -> Graph:
    """The graph with a grid for every tensor that is not missing."""
    ranges = seen(graph)
    return replace(graph, grids={n: grid_over(*ranges[n], bits) for n in graph.shapes if n not in missing})


def floats(seed: int) -> Graph:
    return fuse(drawn(seed, states=seed % 3)[0])


def bytes_by_samples(seed: int) -> Graph:
    graph = fuse(drawn(seed, states=seed % 3)[0])
    return quantize_graph(graph, seen(graph))


def bytes_by_own_grids(seed: int) -> Graph:
    """Some tensors have no grid: it follows from those of others."""
    graph, rng = fuse(drawn(seed)[0]), np.random.default_rng(seed)
    easy = {layer.output for layer in graph.layers if not isinstance(layer, DotFloat | DepthwiseFloat)}
    return quantize_graph(on_grids(graph, 8, {n for n in sorted(easy) if rng.random() < 0.6}))


def rounding_twice(seed: int) -> Graph:
    return quantize_graph(replace(on_grids(fuse(drawn(seed)[0]), 8), doubled=True))


def in_words(seed: int) -> Graph:
    return quantize_graph(on_grids(fuse(drawn(seed, states=seed % 2)[0]), 16))


def partly_in_words(seed: int) -> Graph:
    graph = on_grids(fuse(drawn(seed, states=seed % 2)[0]), 16)
    bytes_ = {n: Grid(g.scale * 256, g.zero >> 8) for n, g in graph.grids.items()}
    some = np.random.default_rng(seed).random(len(bytes_)) < 0.3
    grids = {n: bytes_[n] if is_byte else graph.grids[n] for n, is_byte in zip(bytes_, some, strict=True)}
    return quantize_graph(replace(graph, grids=grids))


def with_own_quantizers(seed: int) -> Graph:
    return in_float32(fuse(drawn(seed, grids=True)[0]))


def over_steps(seed: int) -> Graph:
    graph, axis = over_time(seed)
    return streamed(graph, axis, (None, 1, 2, 5)[seed % 4])


@cache
def layers_drawn() -> list[Case]:
    return [*float_cases(41, 156), *function_cases()]


def of_one_layer(seed: int, bits: int, doubled: bool = False) -> Graph:
    """A float32 layer drawn at random on grids whose scales are powers of two; some with steps of constants and of
    weights that the model chose."""
    case = layers_drawn()[seed - FIRST]
    layer, at_hand = case.layer, max(float(np.abs(case.expected).max(initial=0)), 0.1)
    shapes = {**{n: x.shape for n, x in zip(layer.inputs, case.inputs, strict=True)}, layer.output: case.shape}
    grids = {n: Grid(2.0 ** (-k - bits + 4), (1 << bits) * (k + 3) // 7, bits) for k, n in enumerate(layer.inputs)}
    grids[layer.output] = Grid(2.0 ** (ceil(log2(at_hand)) + 1 - bits), 1 << bits - 1, bits)
    whole = frozenset(layer.inputs[-1:] if isinstance(layer, Take | OneHot) else ())
    if isinstance(layer, PowerFloat):
        grids["x"] = replace(grids["x"], zero=0)
    elif isinstance(layer, AveragePoolFloat):
        grids["y"] = grids["x"]
    elif isinstance(layer, RnnFloat) and layer.relu:
        grids["y"] = replace(grids["y"], zero=0)
    elif isinstance(layer, BinaryFloat) and layer.constant is not None and seed % 2:
        layer = replace(layer, grid=(2.0**-5, 77))
    more: dict[str, Any] = {"whole": whole, "doubled": doubled}
    if isinstance(layer, DotFloat | DepthwiseFloat) and seed % 4:
        scale, zero = ((2.0**-5, 100), (0.5, 128), (0.5, 7))[seed % 4 - 1]
        more |= {"weight_scales": {layer.name: np.array([scale])}, "weight_zeros": {layer.name: zero}}
        more |= {"packed": frozenset([layer.name])}
    grids = {n: grid for n, grid in grids.items() if n not in whole}
    graph = Graph("m", (layer,), shapes, layer.inputs, (layer.output,), grids=grids, **more)
    return quantize_graph(graph)


def a_layer_in_bytes(seed: int) -> Graph:
    return of_one_layer(seed, 8)


def a_layer_rounding_twice(seed: int) -> Graph:
    return of_one_layer(seed, 8, True)


def a_layer_in_words(seed: int) -> Graph:
    return of_one_layer(seed, 16)


FIRST = 500
BUILDS: dict[Callable[[int], Graph], int] = {
    floats: 40,
    bytes_by_samples: 40,
    bytes_by_own_grids: 40,
    rounding_twice: 40,
    in_words: 30,
    partly_in_words: 30,
    with_own_quantizers: 30,
    over_steps: 60,
    a_layer_in_bytes: 200,
    a_layer_rounding_twice: 200,
    a_layer_in_words: 200,
}


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_what_a_graph_becomes(build: Callable[[int], Graph]) -> None:
    lines: list[str] = []
    for seed in range(FIRST, FIRST + BUILDS[build]):
        lines.append(f"seed {seed}")
        try:
            graph = build(seed)
            lines += [*described(graph), *planned(plan(graph, ALL))]
        except EmberletError as error:
            lines.append(f"  refused: {error}")
    assert_recorded(RECORDED, build.__name__.replace("_", " "), "\n".join(lines))


MODULES: dict[str, Callable[[Program], str]] = {
    "file": lambda program: model_source(program, pack(program)),
    "module": lambda program: model_source(program) + weights_source(program),
    "partition of rp2": lambda program: model_source(program, pack(program), Partition("rp2", 1 << 20)),
    "partition of esp32": lambda program: model_source(program, pack(program), Partition("esp32", label="net")),
    "with layers": lambda program: model_source(program, pack(program), layers=True) + layers_source(program, "viper"),
    "another arena": lambda program: model_source(program, pack(program), arena="other"),
}


@pytest.mark.parametrize("how", MODULES)
def test_the_module_of_a_model(how: str) -> None:
    lines: list[str] = []
    for make in (floats, bytes_by_samples, rounding_twice, in_words, over_steps):
        for seed in range(FIRST, FIRST + 6):
            program = plan(make(seed), ALL)
            text = MODULES[how](program)
            lines.append(f"{make.__name__} {seed}: {text.count(chr(10))} lines {digest(text)}")
    assert_recorded(RECORDED, f"modules, {how}", "\n".join(lines))
