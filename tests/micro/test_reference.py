"""The integer arithmetic: multipliers are as exact as promised and stay within words."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.quantization.doubled import DoubledRequant, check_doubled
from emberlet.micro.builder.quantization.reference import (
    LIMIT,
    Requant,
    choose,
    dot_bounds,
    folded_bias,
    quantize_weights,
    requantize,
    start_bounds,
)
from hypothesis import given
from hypothesis import strategies as st


def in_halves(s: int, m: int, r: Requant) -> int:
    """A kernel's computation step by step, each result checked against the limit."""
    if not r.split:
        steps = [s * m, s * m + r.offset]
        y = (s * m + r.offset) >> r.rest
    else:
        high, low = (s >> r.split) * m, (s & ((1 << r.split) - 1)) * m
        steps = [high, low, high + (low >> r.split), high + (low >> r.split) + r.offset]
        y = steps[-1] >> r.rest
    assert all(abs(v) < LIMIT for v in steps)
    return min(max(y, r.low), r.high)


@given(
    st.floats(1e-7, 100),
    st.integers(1, LIMIT - 1),
    st.integers(0, 255),
    st.integers(0, 10**9),
    st.booleans(),
)
def test_a_kernel_rounds_exactly_and_within_words(
    ratio: float, bound: int, zero: int, sample: int, negative: bool
) -> None:
    try:
        r = choose(ratio, bound, zero)
    except UnsupportedError:
        assert ratio * bound > 256  # only where the output is much finer than the sums
        return
    m = r.multipliers[0]
    for s in {0, 1, bound, sample % (bound + 1)}:
        s = -s if negative else s
        exact = floor(Fraction(s * m, 1 << r.shift) + Fraction(1, 2)) + zero
        assert in_halves(s, m, r) == min(max(exact, 0), 255) == int(requantize(s, r))


@given(st.floats(1e-6, 0.2), st.integers(256, 1 << 24))
def test_an_output_is_off_by_less_than_a_step(ratio: float, bound: int) -> None:
    r = choose(ratio, bound, 0)
    for s in (bound // 3, bound // 2, bound):
        assert abs(min(s * ratio, 255) - int(requantize(s, r))) < 1.01


def test_channels_share_a_shift() -> None:
    r = choose([0.01, 0.0001, 0.0], [20000, 20000, 0], 128)
    y = requantize(np.array([[10000, 10000, 5]]), r)
    assert y.tolist() == [[228, 129, 128]]


def test_bounds_are_reached_and_hold() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 256, (5, 20)).astype(np.uint8)
    bias, zero = rng.integers(-1000, 1000, 5), 37
    low, high = dot_bounds(weights, bias, zero)
    w = weights.astype(int) - 128
    best = np.where(w > 0, 255, 0)
    assert (high == bias + ((best - zero) * w).sum(1)).all()
    assert (low == bias + ((255 - best - zero) * w).sum(1)).all()
    start = start_bounds(weights, bias, zero)
    for _ in range(100):
        x = rng.integers(0, 256, 20)
        begun = folded_bias(weights, bias, zero) - 128 * x.sum()
        assert start[0] <= begun.min() and begun.max() <= start[1]
        ended = begun + (weights.astype(int) * x).sum(1)
        assert (ended == bias + ((x - zero) * w).sum(1)).all()
        assert (low <= ended).all() and (ended <= high).all()


def test_a_sum_too_large_for_words_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="split the layer into two"):
        choose(0.001, 1 << 30, 0, what="huge")


def test_an_output_far_too_fine_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="finer than its sums need"):
        choose(1e6, 1 << 20, 0)


def test_weights_are_symmetric_and_a_dead_channel_is_harmless() -> None:
    q, scale = quantize_weights(np.array([[1.0, -2.0], [0.0, 0.0], [1e-12, 0.0]]), [0, 0, 1e-6])
    assert q.tolist() == [[192, 1], [128, 128], [128, 128]]
    np.testing.assert_allclose(scale[0], 2 / 127)
    assert scale[2] == 1e-6


@pytest.mark.parametrize("multiplier", [1 << 30, (1 << 31) - 1, 1_340_000_001, 1_999_999_999])
@pytest.mark.parametrize("shift", [-3, 0, 2])
def test_the_largest_sum_for_multipliers_of_31_bits_just_fits_words(multiplier: int, shift: int) -> None:
    r = DoubledRequant((multiplier,), 0, 0, 0, 0, 255, (shift,))

    def fits(most: int) -> bool:
        try:
            check_doubled(r, most, "layer")
        except UnsupportedError:
            return False
        return True

    low, high = 0, LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    u, v = multiplier >> 15, multiplier & (1 << 15) - 1
    largest = 0
    for s in (low, -low, low & -(1 << 13), -(low & -(1 << 13)) - 1):
        h, rest = s >> 13, s & (1 << 13) - 1
        inner = rest * u + (h * v + (rest * v >> 13) >> 2)
        steps = [rest * v, h * v, rest * u, inner, h * u, h * u + (inner >> 13), s << max(shift, 0)]
        assert all(abs(step) < LIMIT for step in steps)
        assert steps[-2] == s * multiplier >> 28
        largest = max(largest, *map(abs, steps))
    assert largest > 0.999 * LIMIT


def test_weights_too_small_for_a_scale_are_zero() -> None:
    q, scale = quantize_weights(np.array([[1e-44, -3e-45], [1.0, -2.0]], np.float32))
    assert q[0].tolist() == [128, 128] and (scale > 0).all() and q[1, 1] == 1
