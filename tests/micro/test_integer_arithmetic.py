"""The integer arithmetic of quantized layers: each step as in exact fractions, and every choice as it is recorded.

`UPDATE_SNAPSHOTS=1 pytest` on this file records the choices again: another multiplier or another table is a step off
in a few results at most, which comparisons of whole models miss.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError, UnsupportedError
from emberlet.micro.builder.functions import Chain
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.plan import Buffer, fullest_step, lower_bound, place
from emberlet.micro.builder.quantization.calibrate import grid_over
from emberlet.micro.builder.quantization.doubled import (
    DividedRequant,
    doubled,
    high_product,
    multiplied,
    quantize_multiplier,
    shifted,
)
from emberlet.micro.builder.quantization.recurrences import own_steps
from emberlet.micro.builder.quantization.reference import (
    choose,
    dot_bounds,
    error_of,
    quantize_bias,
    quantize_weights,
    requantize,
    start_bounds,
)
from emberlet.micro.builder.quantization.sixteen import difference_requant, sum_requant
from emberlet.micro.builder.tflite.arithmetic import Doubled16, quantized, rounded, rounded16, table
from support.microcontrollers.described import digest, words
from support.recorded import assert_recorded

Rng = np.random.Generator

RECORDED = Path(__file__).with_name("recorded_arithmetic.txt")


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

CHAINS: dict[str, Chain] = {
    "the same": (),
    "clip": (("clip", (-1.0, 2.0)),),
    "clip below": (("clip", (0.25, inf)),),
    "clip above": (("clip", (-inf, 0.75)),),
    "abs": (("abs", ()),),
    "sqrt": (("sqrt", ()),),
    "reciprocal sqrt": (("sqrt", ()), ("reciprocal", ())),
    "leaky relu": (("leaky_relu", (0.3,)),),
    "hard swish": (("hard_swish", ()),),
    "affine": (("affine", (-1.5, 0.25)),),
    "rectified affine": (("affine", (-1.5, 0.25)), ("clip", (0.0, inf))),
}


def said(make: Callable[[], Any]) -> str:
    """A value, or the reason against it."""
    try:
        return words(make())
    except EmberletError as error:
        return str(error)


def some(rng: Rng, low: int, high: int, count: int = 1) -> Any:
    """Numbers between two powers of two, the same on every machine."""
    return np.ldexp(rng.uniform(0.5, 1, count), rng.integers(low + 1, high + 1, count))


def a_grid(rng: Rng, bits: int = 8) -> Grid:
    low = int(rng.choice([0, 1 << bits - 1, (1 << bits) - 1, rng.integers(1 << bits)]))
    return Grid(float(np.float32(some(rng, -7, 0)[0] * 2.0 ** (8 - bits))), low, bits)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHAINS)
def test_the_tables_of_functions_are_recorded(name: str) -> None:
    rng = np.random.default_rng(5)
    lines = []
    for _ in range(24):
        x, out = a_grid(rng), a_grid(rng)
        if name.endswith("sqrt"):
            x = Grid(x.scale, x.zero % 7)  # a byte below zero has no root
        lines.append(f"{x.scale:.6g} {x.zero} to {out.scale:.6g} {out.zero}: {said(lambda: _table(name, x, out))}")  # noqa: B023
    assert_recorded(RECORDED, f"table of {name}", "\n".join(lines))


def _table(name: str, x: Grid, out: Grid) -> str:
    made = table(CHAINS[name], x, out)
    if name == "sqrt" or name == "reciprocal sqrt":
        made = made[x.zero :]
    return f"{digest(made.tobytes())} {made[[0, len(made) // 3, -1]].tolist()}"


def some_sums(rng: Rng) -> dict[str, Any]:
    """What is known of a layer's sums: the ratio of scales of each channel, the largest sums, the output's range."""
    channels = int(rng.integers(1, 4))
    return {
        "ratio": some(rng, -16, 3) * rng.uniform(0.5, 1, channels),
        "bound": some(rng, 4, 31, channels).astype(np.int64),
        "zero": int(rng.choice([0, 128, 255, rng.integers(256)])),
        "low": int(rng.choice([0, 0, 128])),
        "high": int(rng.choice([255, 255, 200])),
    }


def choices(rng: Rng) -> Any:
    given = some_sums(rng)
    made = choose(**given)
    s = np.array([[-3], [0], [1], [1000], [-77777]]) * np.ones(len(given["ratio"]), np.int64)
    off = error_of(given["ratio"], given["bound"], made)
    return made, made.packed(0), made.rest, made.offset, requantize(s, made), f"{off:.4g}"


def choices_rounding_twice(rng: Rng) -> Any:
    given = some_sums(rng)
    made = doubled(given["ratio"], given["bound"] >> 3, given["zero"], twice=bool(rng.integers(2)))
    s = np.array([[-3], [0], [1], [1000], [-77777]]) * np.ones(len(given["ratio"]), np.int64)
    return made, made.packed(0), made.words, made.left, requantize(s, made)


def choices_of_words(rng: Rng) -> Any:
    ratio = some(rng, -20, 10) * rng.uniform(0.5, 1, int(rng.integers(1, 4)))
    made = sum_requant(ratio, some(rng, 10, 37), int(rng.integers(1 << 16)))
    return made, made.last, made.words, made.packed(0), made.apply(np.array([[-5], [12345], [1 << 29]]))


def choices_of_differences(rng: Rng) -> Any:
    ratios = [float(v) for v in some(rng, -12, 14) * rng.uniform(-1, 1, int(rng.integers(1, 3)))]
    zeros = [int(v) for v in rng.integers(0, 1 << 16, len(ratios))]
    made = difference_requant(ratios, zeros, int(rng.integers(1 << 16)))
    return made, made.apply([np.array([0, 7, 65535])] * len(ratios)), made.lines(("a", "b")[: len(ratios)])


def choices_rounding_twice_in_words(rng: Rng) -> Any:
    channels = int(rng.integers(1, 4))
    once = bool(rng.integers(2))
    graph = Graph("m", (), {}, (), (), once=frozenset(["dense"] if once else ()))
    quantizer = Doubled16(graph, lambda layer: (np.zeros(0), np.zeros(0)), lambda layer: 128)
    ratios = some(rng, -24, 6) * (np.ones(channels) if once else rng.uniform(0.1, 1, channels))
    bound = np.full(channels, some(rng, 20, 40)[0])
    return quantizer._requant(ratios, bound, 5, (0, 65535), "dense")


def grids(rng: Rng) -> Any:
    low, high = np.sort(np.round(rng.uniform(-4, 4, 2) * rng.choice([0, 1, 100]), 3))
    made = grid_over(float(low), float(high), int(rng.choice([8, 16])))
    return f"{made.scale:.9g} {made.zero} {made.bits} {made.ends[0]:.6g} {made.ends[1]:.6g}"


def weights(rng: Rng) -> Any:
    w = np.round(rng.uniform(-1, 1, (3, 6)) * rng.choice([0, 1, 3], (3, 1)) * 8) / 8
    w[0, 0] *= 127 if rng.random() < 0.5 else 1
    bytes_, scale = quantize_weights(w, some(rng, -9, -5)[0])
    bias = rng.integers(-5000, 5000, 3)
    zero, own = int(rng.integers(256)), int(rng.choice([128, 100]))
    ends = (dot_bounds(bytes_, bias, zero, own), start_bounds(bytes_, bias, zero, own))
    return bytes_, scale.round(9).tolist(), [v.tolist() for v in ends[0]], ends[1], own_steps(w)[0]


def biases(rng: Rng) -> Any:
    return quantize_bias(rng.uniform(-1, 1, 3) * some(rng, 0, 31), some(rng, -2, 1)).tolist()


def places(rng: Rng) -> Any:
    n = int(rng.integers(0, 12))
    firsts, sizes, lengths = (rng.integers(low, high, n) for low, high in ((-1, 9), (1, 60), (0, 6)))
    made = [Buffer(int(s), int(f), int(f + k)) for s, f, k in zip(sizes, firsts, lengths, strict=True)]
    return place(made), [b.place for b in made], fullest_step(made), lower_bound(made)


CHOICES = (
    choices, choices_rounding_twice, choices_of_words, choices_of_differences, choices_rounding_twice_in_words, grids,
    weights, biases, places,
)  # fmt: skip


@pytest.mark.parametrize("make", CHOICES, ids=lambda make: make.__name__)
def test_choices_are_recorded(make: Callable[[Rng], Any]) -> None:
    lines = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        text = said(lambda: make(rng))  # noqa: B023
        lines.append(f"{seed}: {text if len(text) < 160 else f'{digest(text)} {text[:60]}'}")
    assert_recorded(RECORDED, make.__name__.replace("_", " "), "\n".join(lines))


def test_the_greatest_sums_of_words_just_fit() -> None:
    """Below the limits there is a multiplier, at them there is none."""
    for bound, fits in ((2.0**36 - 1, True), (2.0**36, False)):
        try:
            made = sum_requant(2.0**-20, bound, 0)
        except UnsupportedError:
            made = None
        assert (made is not None) == fits
