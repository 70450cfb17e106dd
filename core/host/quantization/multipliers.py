"""Scales of weights by which sums of integers come to the next scale through a number of few bits, so that backends
whose products are floats can take it into the weights without rounding anything.

A layer of integers gives rint(sum * m), m = scale of its input * scale of its weights / scale of its output, in
float32. Integers times an m of few bits, less its power of two, are integers, which float32 holds below 2**24.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

EXACT = 1 << 24
MOST, LEAST = 8, 3  # bits of a multiplier; with 3, weights become a tenth coarser on average
_TRIES = 3  # multipliers that are tried for each number of bits
_COARSEST = 1.25  # a larger scale would cost digits
_ROUNDS = 4  # of looking whether the sums fit that were estimated
_NEIGHBORS = (0, 1, -1, 2, -2)  # of a scale, in units of its last place


def multiplier(scales: Array, given: float, out: float | None) -> Array:
    """What sums are multiplied by, as layers compute it in float32: given and out, the scales of input and output, None
    for a layer that gives floats."""
    both = np.asarray(scales, np.float32) * np.float32(given)
    return both if out is None else both / np.float32(out)


def odd_part(m: Array) -> Array:
    """The smallest integer that positive float32 numbers are a power of two times, as float64."""
    whole = (np.frexp(np.asarray(m, np.float32))[0].astype(np.float64) * EXACT).astype(np.int64)
    return (whole // (whole & -whole)).astype(np.float64)


def largest_sums(levels: Array, zero: int, bias: Array | None = None) -> Array:
    """The largest magnitude that a sum of products of each row of integers (outputs, n) with uint8 less their zero
    point can have, or some of its terms, and an integer for each output."""
    rows = levels.astype(np.int64)
    positive = np.maximum(rows, 0).sum(1)
    negative = positive - rows.sum(1)
    found = np.maximum(positive * (255 - zero) + negative * zero, positive * zero + negative * (255 - zero))
    return found.astype(np.float64) + (0.0 if bias is None else np.abs(bias))


def short_scales(rows: Array, scales: Array, grid: tuple[float, int], out: float | None, bias: Any = None) -> Array:
    """Scales (outputs,), float32, at least as large as those given, with multipliers of few bits that rows of weights
    (outputs, n) can take without rounding; those given if one of the outputs has none.

    grid: scale and zero point of the input; out: the scale of the output, None for a layer that gives floats; bias: of
    each output, if it becomes an integer.
    """
    rows, scales = np.asarray(rows, np.float64), np.asarray(scales, np.float32)

    def sums(at: Array, of: Array) -> Array:
        """The largest sums of outputs at `at` with these scales."""
        real = of.astype(np.float64)
        shift = None if bias is None else np.rint(np.asarray(bias)[at] / (real * grid[0]))
        return largest_sums(np.rint(rows[at] / real[:, None]), grid[1], shift)

    every = np.arange(len(scales))
    each = np.concatenate([_short(scales, grid[0], out, bits) for bits in range(LEAST, MOST + 1)])
    odd = odd_part(multiplier(np.where(each > 0, each, 1.0), grid[0], out))
    about = sums(every, scales) * scales / np.where(each > 0, each, 1.0)
    each[(about * odd >= EXACT) | (each > _COARSEST * scales)] = 0
    found = np.zeros(len(scales), np.float32)
    for _ in range(_ROUNDS):
        each[each == 0] = np.inf
        missing = np.flatnonzero(found == 0)
        least = each[:, missing].min(0, initial=np.inf)
        if not missing.size or not np.isfinite(least).all():
            break
        fits = sums(missing, least) * odd_part(multiplier(least, grid[0], out)) < EXACT
        found[missing[fits]] = least[fits]
        each[:, missing[~fits]] = np.where(each[:, missing[~fits]] == least[~fits], np.inf, each[:, missing[~fits]])
    return found if (found > 0).all() else scales


def _short(scales: Array, given: float, out: float | None, bits: int) -> Array:
    """The next larger scales (tries, outputs) whose multipliers have so many bits; 0 where float32 has none near."""
    ratio = given / (1.0 if out is None else out)
    digits, exponents = np.frexp(scales.astype(np.float64) * ratio)
    first = np.ceil(np.ldexp(digits, bits))
    found = np.zeros((_TRIES, len(scales)), np.float32)
    for row, further in zip(found, range(_TRIES), strict=True):
        wanted = np.ldexp(first + further, exponents - bits)
        near = (wanted / ratio).astype(np.float32)
        for steps in _NEIGHBORS:
            scale = (near.view(np.int32) + np.int32(steps)).view(np.float32)
            hits = (row == 0) & (scale >= scales) & (multiplier(scale, given, out) == wanted)
            row[hits] = scale[hits]
    return found
