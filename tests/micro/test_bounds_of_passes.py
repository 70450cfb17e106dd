"""Rules of streams and of indices at their ends: what is a cut along time, and how many a byte counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.lanes import Take
from emberlet.micro.builder.kernels.move import Move, Part, strides
from emberlet.micro.builder.kernels.nest import Axis
from emberlet.micro.builder.quantization.quantize import quantize_graph
from emberlet.micro.builder.streaming import shift_of

Shape = tuple[int, ...]


def moved(source: Shape, out: Shape, start: Shape, to: Shape, count: Shape, step: int = 1) -> Move:
    """`count` elements along each axis, from a place in the source to a place in the output."""
    ins, outs = strides(source), strides(out)
    axes = tuple(Axis(n, (a * (step if k == 0 else 1), b)) for k, (n, a, b) in enumerate(zip(count, ins, outs)))  # noqa: B905
    first = sum(s * a for s, a in zip(start, ins, strict=True))
    place = sum(s * b for s, b in zip(to, outs, strict=True))
    return Move("move", ("x",), "y", out, (Part(first, place, axes),), 0.0)


def shifted_by(layer: Move, source: Shape, axis: int) -> set[int]:
    """All distances along an axis by which the output is the input, with zeros beyond its ends."""
    x = np.arange(1, np.prod(source) + 1).reshape(source)
    y, found = layer.reference(x), set[int]()
    if any(a != b for k, (a, b) in enumerate(zip(source, layer.shape, strict=True)) if k != axis):
        return found
    for shift in range(-6, 7):
        at = np.arange(layer.shape[axis]) + shift
        inside = (at >= 0) & (at < source[axis])
        rows = np.take(x, np.clip(at, 0, source[axis] - 1), axis)
        wanted = np.where(inside.reshape([-1 if k == axis else 1 for k in range(len(source))]), rows, 0)
        if (y == wanted).all() and inside.any():
            found.add(shift)
    return found


@pytest.mark.parametrize("axis", [0, 1])
def test_a_move_is_a_shift_if_it_is_one_along_an_axis_alone(axis: int) -> None:
    known = missed = 0
    for n, m, start, to, off, step in product((2, 4, 5), (2, 3, 5), (0, 1, 2), (0, 1, 2), (0, 1), (1, 2)):
        source, out = ((n, 3), (m, 3 - off)) if axis == 0 else ((3, n), (3 - off, m))
        count = min((n - start + step - 1) // step if axis == 0 else n - start, m - to)
        if count < 1:
            continue
        first, place, turns = ((v, 0) if axis == 0 else (0, v) for v in (start, to, count))
        along = tuple(c if k == axis else out[k] for k, c in enumerate(turns))
        if (along[0] - 1) * step >= source[0]:
            continue
        layer = moved(source, out, first, place, along, step)
        wanted, found = shifted_by(layer, source, axis), shift_of(layer, source, out, axis)
        assert found is None or found in wanted, (layer, found, wanted)
        known += found is not None
        missed += found is None and bool(wanted)
        if step == 1 and not off and not (start and to) and count == min(n - start, m - to):
            assert found == start - to
    assert known > 20 and missed < known


def test_a_move_of_other_ranks_of_several_parts_or_through_a_table_is_no_shift() -> None:
    layer = moved((4, 3), (2, 3), (1, 0), (0, 0), (2, 3))
    (part,) = layer.parts
    assert shift_of(layer, (4, 3), (2, 3), 0) == 1
    assert shift_of(layer, (12,), (2, 3), 0) is None
    through = Move("move", ("x",), "y", (2, 3), (Part(part.start, part.to, part.axes, np.zeros(256, np.uint8)),), 0.0)
    assert shift_of(through, (4, 3), (2, 3), 0) is None
    both = Move("move", ("x", "x"), "y", (2, 3), (part, part), 0.0)
    assert shift_of(both, (4, 3), (2, 3), 0) is None


@pytest.mark.parametrize(("count", "scale", "fits"), [(255, 1.0, True), (256, 1.0, True), (256, 0.5, False)])
def test_an_index_is_a_byte_of_whole_numbers(count: int, scale: float, fits: bool) -> None:
    layer = Take("take", ("x",), "y", (1, count, 2), 3, np.zeros((count, 2), np.float32))
    grids = {"x": Grid(scale, 0), "y": Grid(0.25, 128)}
    graph = Graph("m", (layer,), {"x": (3,), "y": (3, 2)}, ("x",), ("y",), grids=grids)
    if fits:
        assert not quantize_graph(graph).words
    else:
        with pytest.raises(UnsupportedError, match="an index of one of 256"):
            quantize_graph(graph)


def test_an_index_of_more_than_a_byte_counts_takes_two() -> None:
    layer = Take("take", ("x",), "y", (1, 257, 2), 3, np.zeros((257, 2), np.float32))
    graph = Graph("m", (layer,), {"x": (3,), "y": (3, 2)}, ("x",), ("y",), grids={"y": Grid(0.25, 128)})
    assert quantize_graph(graph).words == {"x"}
