"""The grid of 256 bytes over a calibrated range: its ends, zero, and everything between."""

from __future__ import annotations

import pytest
from emberlet.micro.builder.quantization.calibrate import grid_over
from hypothesis import given
from hypothesis import strategies as st

BOUNDS = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)


@given(BOUNDS, BOUNDS)
def test_the_first_and_the_last_byte_are_the_ends_of_the_range(a: float, b: float) -> None:
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    if high - low < 1e-6:
        return
    grid = grid_over(min(a, b), max(a, b))
    assert 0 <= grid.zero <= 255
    first, last = (0 - grid.zero) * grid.scale, (255 - grid.zero) * grid.scale
    # A scale has 12 binary digits: 2**-12 of it is 0.062 steps at the other end.
    assert abs(first - low) <= 0.57 * grid.scale and abs(last - high) <= 0.57 * grid.scale
    assert last - first == pytest.approx(high - low, rel=2**-12)


@pytest.mark.parametrize(("low", "high", "zero"), [(0.0, 1.0, 0), (-1.0, 0.0, 255), (2.0, 5.0, 0), (-5.0, -2.0, 255)])
def test_a_range_on_one_side_of_zero_has_zero_at_its_end(low: float, high: float, zero: int) -> None:
    assert grid_over(low, high).zero == zero
