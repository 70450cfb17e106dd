"""Scales of weights whose multipliers have few bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.host.quantization.calibration import grid_of
from emberlet.host.quantization.multipliers import multiplier, short_scales


def scales_of(rows: Any) -> Any:
    found = np.abs(rows).max(1, initial=0) / 127
    return np.where(found > 0, found, 1.0).astype(np.float32)


@pytest.mark.parametrize("out", [None, 0.0371, 3.0])
@pytest.mark.parametrize("terms", [1, 9, 64, 300])
def test_few_bits_for_all_outputs_and_no_sum_beyond_what_floats_hold(terms: int, out: float | None) -> None:
    draw = np.random.default_rng(terms)
    rows = draw.normal(size=(40, terms)) * np.exp(draw.normal(size=(40, 1)))
    grid = grid_of(-0.3, 1.9)
    scales = scales_of(rows)
    found = short_scales(rows, scales, grid, out and grid_of(0, out * 255)[0])
    assert found.dtype == np.float32
    assert (found >= scales).all()
    assert (found <= 1.25 * scales).all()
    whole = multiplier(found, grid[0], out and grid_of(0, out * 255)[0]).astype(np.float64)
    unit = np.exp2(np.floor(np.log2(whole)) - 7)  # eight digits
    assert (whole / unit == np.rint(whole / unit)).all()
    while (even := whole / unit % 2 == 0).any():
        unit = np.where(even, unit * 2, unit)
    levels = np.rint(rows / found[:, None].astype(np.float64))
    most = np.maximum(levels, 0) @ np.full(terms, 255 - grid[1]) + np.maximum(-levels, 0) @ np.full(terms, grid[1])
    assert (most * whole / unit < 1 << 24).all()
    assert np.mean(found / scales) < (1.01 if terms < 10 else 1.1)


def test_scales_stay_where_the_sums_of_an_output_are_too_large() -> None:
    rows = np.ones((3, 9000))
    rows[1:] = np.random.default_rng(11).normal(size=(2, 9000)) * 1e-3
    scales = scales_of(rows)
    np.testing.assert_array_equal(short_scales(rows, scales, grid_of(0, 1), 0.1), scales)


def test_a_bias_counts_as_a_term() -> None:
    rows, grid = np.random.default_rng(11).normal(size=(1, 4)), grid_of(0, 1)
    scales = scales_of(rows)
    assert short_scales(rows, scales, grid, 0.5, np.zeros(1)) > scales
    np.testing.assert_array_equal(short_scales(rows, scales, grid, 0.5, scales.astype(float) * grid[0] * 2**25), scales)


def test_no_outputs_and_no_weights() -> None:
    for shape in ((0, 5), (4, 0)):
        rows = np.zeros(shape)
        found = short_scales(rows, scales_of(rows), grid_of(0, 1), 0.5)
        assert found.shape == shape[:1]
        assert (found >= 1).all()
