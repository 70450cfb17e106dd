"""The grid of 256 bytes over a range: both ends are on it, and so is zero."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.micro.builder.quantization.calibrate import Tally, grid_over, ranges_of

RANGES = [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0), (-3.7, 0.2), (-0.001, 500.0), (0.5, 2.0), (-4.0, -1.0)]
DRAWN = [tuple(sorted(pair)) for pair in np.random.default_rng(3).normal(0, 10, (50, 2)).tolist()]


@pytest.mark.parametrize(("low", "high"), RANGES + DRAWN)
def test_the_ends_of_the_range_are_the_ends_of_the_bytes(low: float, high: float) -> None:
    grid = grid_over(low, high)
    low, high = min(low, 0.0), max(high, 0.0)
    assert grid.scale == pytest.approx((high - low) / 255)
    assert 0 <= grid.zero <= 255
    first, last = grid.scale * (0 - grid.zero), grid.scale * (255 - grid.zero)
    assert abs(first - low) <= grid.scale / 2 * 1.0001
    assert abs(last - high) <= grid.scale / 2 * 1.0001
    assert last - first == pytest.approx(high - low)


@pytest.mark.parametrize(("low", "high", "zero"), [(0.0, 1.0, 0), (-1.0, 0.0, 255), (0.0, 0.0, 128)])
def test_zero_lies_at_the_end_of_a_range_of_one_sign(low: float, high: float, zero: int) -> None:
    assert grid_over(low, high).zero == zero


def test_percentiles_cut_the_same_part_off_both_ends() -> None:
    values = np.linspace(-50, 50, 1001).astype(np.float32)
    seen = {"x": Tally(-50.0, 50.0, [values]), "y": Tally(0.0, 50.0, [np.abs(values)])}
    assert ranges_of(seen, "minmax") == {"x": (-50.0, 50.0), "y": (0.0, 50.0)}
    found = ranges_of(seen, "percentile", 90)
    assert found["x"] == pytest.approx((-45.0, 45.0))
    assert found["y"] == pytest.approx((2.5, 47.5), abs=0.1) or found["y"][0] == 0.0
