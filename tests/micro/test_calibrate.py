"""Samples in every accepted layout, and the grid of 256 bytes over their range, which includes both ends and zero."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.errors import FormatError, ShapeError
from emberlet.host.quantization.calibration import Observed
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.elementwise import MapFloat
from emberlet.micro.builder.quantization.calibrate import check_samples, grid_over, ranges_of
from support.rows import every

RANGES = [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0), (-3.7, 0.2), (-0.001, 500.0), (0.5, 2.0), (-4.0, -1.0)]
DRAWN = [tuple(sorted(pair)) for pair in np.random.default_rng(3).normal(0, 10, (50, 2)).tolist()]


@every(("low", "high"), RANGES + DRAWN)
def test_the_ends_of_the_range_are_the_ends_of_the_bytes(low: float, high: float) -> None:
    grid = grid_over(low, high)
    low, high = min(low, 0.0), max(high, 0.0)
    assert grid.scale == pytest.approx((high - low) / 255, rel=2**-12)
    assert 0 <= grid.zero <= 255
    first, last = grid.scale * (0 - grid.zero), grid.scale * (255 - grid.zero)
    assert abs(first - low) <= grid.scale * 0.57  # half a step, and 255 times what 12 binary digits leave out
    assert abs(last - high) <= grid.scale * 0.57
    assert last - first == pytest.approx(high - low, rel=2**-12)


@pytest.mark.parametrize(("low", "high", "zero"), [(0.0, 1.0, 0), (-1.0, 0.0, 255), (0.0, 0.0, 128)])
def test_zero_lies_at_the_end_of_a_range_of_one_sign(low: float, high: float, zero: int) -> None:
    assert grid_over(low, high).zero == zero


def test_percentiles_cut_the_same_part_off_both_ends() -> None:
    values = np.linspace(-50, 50, 1001).astype(np.float32)
    seen = {"x": Observed(), "y": Observed()}
    seen["x"].add(values)
    seen["y"].add(np.abs(values))
    assert ranges_of(seen, "minmax") == {"x": (-50.0, 50.0), "y": (0.0, 50.0)}
    found = ranges_of(seen, "percentile", 90)
    assert found["x"] == pytest.approx((-45.0, 45.0))
    assert found["y"] == pytest.approx((2.5, 47.5), abs=0.1) or found["y"][0] == 0.0


@every("seed", range(40), share=4)
def test_samples_come_in_any_order_and_with_or_without_axes_of_one(seed: int) -> None:
    """In the model's layout, in the device's, or in either without axes of size 1."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    dims = (1, *(int(v) for v in rng.integers(1, 5, rank - 1)))
    order = (0, *range(2, rank), 1) if rng.random() < 0.7 else tuple(range(rank))
    shape = tuple(dims[k] for k in order)[1:]
    layer = MapFloat("copy", ("x",), "y", shape, (("abs", ()),))
    graph = Graph("m", (layer,), {"x": shape, "y": shape}, ("x",), ("y",), layouts={"x": (dims, order)})
    count = int(rng.integers(1, 5))
    model = rng.standard_normal((count, *dims[1:])).astype(np.float32)
    laid = np.transpose(model, order)
    np.testing.assert_array_equal(check_samples({"x": model}, graph)["x"], laid)
    with_batch = model.reshape(count, *dims)
    np.testing.assert_array_equal(check_samples({"x": with_batch}, graph)["x"], laid)
    squeezed = model.reshape(count, *(n for n in dims if n != 1))
    np.testing.assert_array_equal(check_samples({"x": squeezed}, graph)["x"], laid)
    large = [n for n in dims if n != 1]
    if large != [n for n in shape if n != 1]:
        # Not the model's own order: it can only be the device's.
        np.testing.assert_array_equal(check_samples({"x": laid}, graph)["x"], laid)
    with pytest.raises(ShapeError, match="expected \\(samples, "):
        check_samples({"x": np.zeros((count, *dims[1:], 7), np.float32)}, graph)
    with pytest.raises(FormatError, match=r"1.*NaN.*float32"):
        wrong = model.astype(np.float64)
        wrong.reshape(-1)[int(rng.integers(wrong.size))] = rng.choice([np.nan, np.inf, 1e300])
        check_samples({"x": wrong}, graph)
    with pytest.raises(FormatError, match="expected numbers"):
        check_samples({"x": np.full((count, *dims[1:]), "a")}, graph)


def test_bytes_of_an_input_that_takes_bytes_become_its_real_numbers() -> None:
    for byte, dtype in ((0, np.uint8), (128, np.int8)):
        layer = MapFloat("copy", ("x",), "y", (4,), ())
        grids = {"x": Grid(0.5, byte + 10)}
        graph = Graph("m", (layer,), {"x": (4,), "y": (4,)}, ("x",), ("y",), grids=grids, integers={"x": byte})
        given = np.array([[10, 11, 0, 100]]).astype(dtype)
        np.testing.assert_array_equal(check_samples({"x": given}, graph)["x"], [[0.0, 0.5, -5.0, 45.0]])


def test_inputs_have_as_many_samples_as_each_other() -> None:
    layers = tuple(MapFloat(f"copy {n}", (n,), f"{n}:y", (4,), ()) for n in "ab")
    shapes = dict.fromkeys(("a", "b", "a:y", "b:y"), (4,))
    graph = Graph("m", layers, shapes, ("a", "b"), ("a:y", "b:y"))
    with pytest.raises(ShapeError, match=r"different numbers of samples: \{'a': 2, 'b': 3\}"):
        check_samples({"a": np.zeros((2, 4)), "b": np.zeros((3, 4))}, graph)
