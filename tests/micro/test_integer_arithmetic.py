"""The integer arithmetic of quantized layers: each step as in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.graph import Grid
from emberlet.micro.builder.quantization.doubled import (
    DividedRequant,
    high_product,
    multiplied,
    quantize_multiplier,
    shifted,
)
from emberlet.micro.builder.quantization.sixteen import sum_requant
from emberlet.micro.builder.tflite.arithmetic import Doubled16, quantized, rounded, rounded16


def away(x: Fraction) -> int:
    """Rounded, ties away from zero."""
    return floor(x + Fraction(1, 2)) if x >= 0 else -floor(-x + Fraction(1, 2))


@pytest.mark.parametrize("bits", [0, 1, 2, 7, 15, 31])
def test_shifts_round_ties_away_from_zero(bits: int) -> None:
    half = 1 << bits >> 1
    for x in (*range(-9, 10), *(s * (k * half + d) for s in (-1, 1) for k in (1, 2, 3, 5) for d in (-1, 0, 1))):
        assert int(shifted(x, bits)) == away(Fraction(x, 1 << bits)), (x, bits)


def test_high_products_round_half_up() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-(1 << 30), 1 << 30, 200) for _ in "ab")
    a[:3], b[:3] = (1, 1, -1), (1 << 30, (1 << 30) - 1, 1 << 30)
    assert high_product(a, b).tolist() == [
        floor(Fraction(int(x) * int(y), 1 << 31) + Fraction(1, 2)) for x, y in zip(a, b, strict=True)
    ]


def test_a_multiplier_is_within_half_a_unit_of_its_number() -> None:
    assert quantize_multiplier(0) == (0, 0)
    for real in (1.0, 0.5, 2.0, 1 - 2.0**-33, 2 - 2.0**-33, 2.0**-31, 2.0**-32, 0.75 * 2**-32, *np.logspace(-9, 3, 60)):
        multiplier, shift = quantize_multiplier(float(real))
        if real < 2.0**-32:
            assert (multiplier, shift) == (0, 0)
            continue
        assert 1 << 30 <= multiplier < 1 << 31
        assert abs(Fraction(multiplier, 1 << 31) * Fraction(2) ** shift - Fraction(float(real))) <= Fraction(
            2
        ) ** shift / (1 << 32)


@pytest.mark.parametrize("shift", [-9, -1, 0, 1, 3])
def test_a_product_is_rounded_twice(shift: int) -> None:
    rng, multiplier = np.random.default_rng(shift + 9), 1_340_000_001
    for x in (0, 1, -1, *map(int, rng.integers(-(1 << 20), 1 << 20, 50))):
        first = floor(Fraction((x << max(shift, 0)) * multiplier, 1 << 31) + Fraction(1, 2))
        assert int(multiplied(x, multiplier, shift)) == away(Fraction(first, 1 << max(-shift, 0)))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 16])
def test_a_quotient_rounds_ties_away_from_zero(n: int) -> None:
    r = DividedRequant((n,), 0, 0, 128)
    for x in range(-3 * n - 2, 3 * n + 3):
        assert int(r.apply(np.array([x]), [1])[0]) == away(Fraction(x, n)) + 128


@pytest.mark.parametrize(("bits", "most"), [(8, 255), (16, 65535)])
def test_numbers_round_ties_away_from_zero_and_saturate(bits: int, most: int) -> None:
    grid = Grid(0.5, most // 2, bits)
    for half_steps in (*range(-9, 10), 2 * most, -2 * most):
        number = half_steps / 4
        wanted = min(max(away(Fraction(half_steps, 2)) + grid.zero, 0), most)
        assert (rounded if bits == 8 else rounded16)(number, grid) == wanted
        if bits == 8:
            assert int(quantized([number], grid)[0]) == wanted
    low, high = (rounded16(v, grid) for v in (-inf, inf)) if bits == 16 else (rounded(v, grid) for v in (-inf, inf))
    assert (low, high) == (0, most)


def test_limits_of_words_without_a_clamp_are_the_ends() -> None:
    for bits, most in ((8, 255), (16, 65535)):
        grid = Grid(0.5, 100, bits)
        assert Doubled16._limits(-inf, inf, grid) == (0, most)
        assert Doubled16._limits(-1.0, 2.0, grid) == (98, 104)
        assert Doubled16._limits(-1.0, inf, grid) == (98, most)


# -- choices ----------------------------------------------------------------------------------------------------------


def test_the_greatest_sums_of_words_just_fit() -> None:
    """Below the limits there is a multiplier, at them there is none."""
    for bound, fits in ((2.0**36 - 1, True), (2.0**36, False)):
        try:
            made = sum_requant(2.0**-20, bound, 0)
        except UnsupportedError:
            made = None
        assert (made is not None) == fits
