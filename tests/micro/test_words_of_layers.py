"""Single layers on words of 16 bits: what they become, and what becomes of them without words."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.lanes import Take
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.quantization.calibrate import grid_over
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.quantization.quantize16 import in_8_bits
from emberlet.micro.builder.quantization.sixteen import to_words

WORDS, OTHER, BYTES = Grid(0.5, 100, 16), Grid(2.0, 1 << 15, 16), Grid(128.0, 7)


def graph_of(*layers: Layer, shape: tuple[int, ...] = (3,), **grids: Grid) -> Graph:
    inputs = tuple(dict.fromkeys(n for layer in layers for n in layer.inputs if n in ("x", "z", "i")))
    shapes = {**dict.fromkeys(inputs, shape), **{layer.output: shape for layer in layers}}
    return Graph("m", layers, shapes, inputs, (layers[-1].output,), grids=grids)


def with_constant(operation: str, grid: tuple[float, int] | None = None, low: float = -inf, high: float = inf) -> Layer:
    c = np.array([-3.0, 0.5, 7.0], np.float32)
    return BinaryFloat("y", ("x",), "y", operation, (3,), (3,), c, low, high, grid)


@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_a_constant_keeps_the_steps_that_the_model_gave_it(operation: str) -> None:
    own = grid_over(-3, 7, 16)
    for given, scale, zero in (((0.25, 40000), 0.25, 40000), (None, own.scale, own.zero)):
        (made,) = quantize_graph(graph_of(with_constant(operation, given), x=WORDS, y=OTHER)).layers
        found: Any = made
        assert found.zeros == (WORDS.zero, zero)
        np.testing.assert_array_equal(found.constant, np.rint(np.array([-3, 0.5, 7]) / scale) + zero)


def test_a_clamp_is_in_steps_of_the_output() -> None:
    for low, high, wanted in ((-4.0, 6.0, (32766, 32771)), (-inf, inf, (0, 65535)), (0.0, inf, (32768, 65535))):
        made: Any = quantize_graph(graph_of(with_constant("mul", None, low, high), x=WORDS, y=OTHER)).layers[0]
        assert (made.how.low, made.how.high) == wanted


@pytest.mark.parametrize("rows", [255, 256, 257])
def test_an_index_picks_a_row_of_words(rows: int) -> None:
    table = np.arange(rows * 2, dtype=np.float32).reshape(1, rows, 2)
    layer = Take("take", ("i",), "y", (1, rows, 2), 3, table)
    graph = Graph("m", (layer,), {"i": (3,), "y": (3, 2)}, ("i",), ("y",), grids={"y": WORDS}, whole=frozenset("i"))
    found = quantize_graph(graph)
    made: Any = found.layers[0]
    assert made.words == (rows > 256) == ("i" in found.words)
    np.testing.assert_array_equal(to_words(made.table).reshape(-1), table.reshape(-1) / 0.5 + 100)


def test_an_index_that_is_no_whole_number_is_refused() -> None:
    layer = Take("take", ("i",), "y", (1, 4, 2), 3, np.ones((1, 4, 2), np.float32))
    grids = {"i": Grid(0.5, 0), "y": WORDS}
    with pytest.raises(UnsupportedError, match="take: an index of one of 4 that is computed"):
        quantize_graph(Graph("m", (layer,), {"i": (3,), "y": (3, 2)}, ("i",), ("y",), grids=grids))


def test_without_words_only_their_quantizers_saturate() -> None:
    names = "abcde"
    chains: list[Any] = [(), (), (("abs", ()),), (("abs", ()),), ()]
    layers = [MapFloat(n, ("x",), n, (3,), chain) for n, chain in zip(names, chains, strict=True)]
    graph = graph_of(*layers, a=WORDS, b=BYTES, c=WORDS)
    found = in_8_bits(graph)
    assert [layer.chain for layer in found.layers] == [(("clip", WORDS.ends),), *chains[1:]]  # type: ignore[attr-defined]
    assert found.grids == {"b": BYTES} and found.layers[1:] == graph.layers[1:]
