"""Which grid each tensor of a quantized graph gets: the model's, the one its layer needs, or one over its range."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.arg import Arg
from emberlet.micro.builder.kernels.constant import Constant
from emberlet.micro.builder.kernels.elementwise import BinaryFloat, MapFloat
from emberlet.micro.builder.kernels.lanes import TopK
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.move import Move, Part
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.kernels.pairs import CompareFloat, ExtremeFloat
from emberlet.micro.builder.kernels.pool import ReduceFloat
from emberlet.micro.builder.kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from emberlet.micro.builder.kernels.select import Select
from emberlet.micro.builder.kernels.softmax import SoftmaxFloat
from emberlet.micro.builder.quantization.calibrate import grid_over
from emberlet.micro.builder.quantization.grids import with_grids

Array = np.ndarray[Any, Any]
SHAPE = (2, 3)
GRID = Grid(0.125, 100)
OTHER = Grid(0.25, 128)
HALVES, BYTES = Grid(1 / 128, 128), Grid(1.0, 0)


def graph_of(layers: Sequence[Layer], shapes: dict[str, tuple[int, ...]] | None = None, **more: Any) -> Graph:
    named = {"x": SHAPE, "z": SHAPE, **{layer.output: SHAPE for layer in layers}, **(shapes or {})}
    inputs = more.pop("inputs", ("x", "z"))
    read = {n for layer in layers for n in layer.inputs} | {layer.output for layer in layers}
    inputs = tuple(n for n in inputs if n in read)
    kept = {n: s for n, s in named.items() if n in read}
    return Graph("m", tuple(layers), kept, inputs, more.pop("outputs", (layers[-1].output,)), **more)


def mapped(source: str, out: str, *chain: Any) -> MapFloat:
    return MapFloat(out, (source,), out, SHAPE, chain)


def both(operation: str, constant: Array | None = None, low: float = -inf, high: float = inf) -> BinaryFloat:
    inputs = ("x", "z") if constant is None else ("x",)
    other = SHAPE if constant is None else constant.shape
    return BinaryFloat("y", inputs, "y", operation, SHAPE, other, constant, low, high)


def softmax(log: bool = False, source: str = "x") -> SoftmaxFloat:
    return SoftmaxFloat("y", (source,), "y", 2, 3, log)


def recurrent(kind: type[Any], gates: int, **more: Any) -> Layer:
    w, r, b = np.ones((gates * 3, 3)), np.ones((gates * 3, 3)), np.zeros(gates * 3)
    return kind("y", ("x",), "y", 2, 3, w, r, b, b, False, True, False, **more)  # type: ignore[no-any-return]


def joined() -> Move:
    halves = (Part(0, 0, (Axis(3, (1, 1)),)), Part(0, 3, (Axis(3, (1, 1)),)))
    return Move("y", ("x", "z"), "y", SHAPE, halves)


def selected(*constants: Any) -> Select:
    axes = (Axis(6, (*(1 if c is None or c.size > 1 else 0 for c in constants), 1)),)
    names = tuple(n for n, c in zip(("x", "z", "z"), constants, strict=True) if c is None)
    return Select("y", names, "y", SHAPE, axes, constants)  # type: ignore[arg-type]


# -- grids that a layer needs -----------------------------------------------------------------------------------------

NEEDED: dict[str, tuple[Layer, Grid]] = {
    "lstm": (recurrent(LstmFloat, 4), HALVES), "gru": (recurrent(GruFloat, 3), HALVES),
    "gated gru": (recurrent(GatedGruFloat, 3), HALVES), "rnn": (recurrent(RnnFloat, 1), HALVES),
    "softmax": (softmax(), Grid(1 / 256, 0)), "place": (Arg("y", ("x",), "y", (2, 3, 1), "max"), BYTES),
    "places": (TopK("y", ("x",), "y", (2, 3, 1), 3, True, True), BYTES),
    "comparison": (CompareFloat("y", ("x", "z"), "y", "less", SHAPE, SHAPE, None), BYTES),
}  # fmt: skip


@pytest.mark.parametrize("what", NEEDED)
def test_a_layer_that_the_model_gives_another_grid_changes_it_behind(what: str) -> None:
    layer, grid = NEEDED[what]
    own = Grid(0.3, 7)  # no softmax has such steps
    shapes = {"y:bytes": SHAPE, "y:bytes.1": SHAPE} if what == "lstm" else {}
    layers = [*(mapped("x", name, ("abs", ())) for name in shapes), layer]
    found = with_grids(graph_of(layers, shapes, grids={"x": GRID, "z": OTHER, "y": own}, outputs=("y", *shapes)), None)
    name = "y:bytes.2" if shapes else "y:bytes"
    assert [x.output for x in found.layers][-2:] == [name, "y"]
    assert found.grids[name] == grid and found.grids["y"] == own and found.shapes[name] == SHAPE
    assert found.layers[-1].inputs == (name,) and found.layers[-1].kind == "mapfloat"


# -- whole numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "grid"),
    [
        (0, 255, BYTES), (-0.5, 255.5, BYTES), (0, 256, None), (-1, 5, Grid(1.0, 128)), (-128.5, 127.5, Grid(1.0, 128)),
        (-129, 3, None), (-1, 128, None), (-0.6, 127.6, None),
    ],
)  # fmt: skip
def test_whole_numbers_have_steps_of_one_where_they_fit_a_byte(low: float, high: float, grid: Grid | None) -> None:
    ranges = {"x": (-1.0, 1.0), "y": (float(low), float(high))}
    found = with_grids(graph_of([mapped("x", "y", ("round", ()))], whole=frozenset({"y", "gone"})), ranges)
    assert found.grids["y"] == (grid or grid_over(low, high))
    without = with_grids(graph_of([mapped("x", "y", ("round", ()))], whole=frozenset({"y"}), grids={"x": GRID}), None)
    assert without.grids["y"] == BYTES


# -- grids without samples --------------------------------------------------------------------------------------------

CONSTANT = np.array([[-3.0, 0.5, 2.0]], np.float32)
DERIVED: dict[str, Layer] = {
    "abs": mapped("x", "y", ("abs", ())),
    "a parabola": mapped("x", "y", ("pow", (2.0,)), ("affine", (-0.5, 1.0))),
    "sum of two": both("add"),
    "difference": both("sub"),
    "product": both("mul"),
    "sum, clamped": both("add", None, -2.0, 3.0),
    "sum with a constant": both("add", CONSTANT),
    "product with a constant": both("mul", CONSTANT),
    "a constant less": both("sub", CONSTANT, -9.0, 9.0),
    "total": ReduceFloat("y", ("x",), "y", (2, 3, 1), "sum", 0.5),
    "filled with more": Move("y", ("x", "z"), "y", SHAPE, joined().parts, 70.0),
    "filled with less": Move("y", ("x", "z"), "y", SHAPE, joined().parts, -70.0),
    "joined": joined(),
    "greatest of two": ExtremeFloat("y", ("x", "z"), "y", "max", SHAPE, SHAPE, None),
    "greatest of a constant": ExtremeFloat("y", ("x",), "y", "max", SHAPE, (1, 3), 50 * CONSTANT),
    "chosen": selected(None, None, np.array([-80.0, 3.0, 90.0, 0, 0, 0], np.float32)),
    "chosen from constants": selected(None, np.array([60.0], np.float32), np.array([-70.0], np.float32)),
    "constant": Constant("y", (), "y", CONSTANT.repeat(2, 0)),
}


@pytest.mark.parametrize("what", DERIVED)
def test_a_grid_that_is_derived_holds_what_the_layer_can_give(what: str) -> None:
    """The results for the ends of the inputs' grids, and for every byte."""
    layer = DERIVED[what]
    given = {n: g for n, g in {"x": GRID, "z": OTHER}.items() if n in layer.inputs}
    found = with_grids(graph_of([layer], grids=given), None).grids["y"]
    seen = []
    numbers = [GRID.scale * (np.arange(256) - GRID.zero), OTHER.scale * (np.arange(256) - OTHER.zero)]
    for a in (*(np.full(6, v) for v in numbers[0][::5]), np.resize(numbers[0][[0, 255]], 6)):
        for b in (np.full(6, numbers[1][0]), np.full(6, numbers[1][255]), np.zeros(6)):
            values = {"x": a.astype(np.float32).reshape(SHAPE), "z": b.astype(np.float32).reshape(SHAPE)}
            seen.append(layer.reference(*(values[n] for n in layer.inputs)))
    if what.startswith(("chosen", "greatest")):  # anything that is read may be given
        seen += [*numbers[0], *(numbers[1] if "z" in layer.inputs else ())]
    if what == "greatest of a constant":
        seen += [50 * CONSTANT.min(), 50 * CONSTANT.max()]
    if what.startswith("filled"):
        seen.append(layer.fill)  # type: ignore[attr-defined]
    low, high = (float(f([f(np.asarray(v, float)) for v in seen])) for f in (np.min, np.max))
    assert found.ends == pytest.approx((min(low, 0.0), max(high, 0.0)), abs=found.scale)


@pytest.mark.parametrize(
    "layer", [both("div"), both("div", CONSTANT), mapped("x", "y", ("log", ()), ("pow", (-900.0,)))]
)
def test_what_has_no_range_needs_samples(layer: Layer) -> None:
    grids = dict.fromkeys(layer.inputs, GRID)
    with pytest.raises(UnsupportedError, match=r"m: quantized only in part: no scale for y; calibrate those"):
        with_grids(graph_of([layer], grids=grids), None)
