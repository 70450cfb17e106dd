"""Calibration: the range of a tensor that its integers should cover, from the values it takes over samples.

Each sample is shown to an `Observed`; `range_of` then chooses by one of METHODS. A range always holds zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedError

Array = NDArray[Any]
Range = tuple[float, float]

METHODS = ("minmax", "moving-average", "percentile", "entropy", "mse")
OF_EXTREMES = METHODS[:2]  # the others need values

MOST_KEPT = 1 << 16
"""The most values of a tensor kept; of more, some that lie evenly among the sorted ones."""
AVERAGING = 0.01
"""The weight of a new sample in a moving average, as in PyTorch; the first ones, which are fewer, weigh the same."""
BINS = 2048
"""Of the histogram of absolute values that the entropy is computed of."""
MOST_CLIPPED = 0.01
"""The largest share of the values that the entropy may leave outside: a few coarse steps of a distribution with a sharp
peak differ little from it, too, if they leave out its tail."""
SHRINKS = 64
"""Ranges tried for the least mean squared error, down to a fifth of the whole one."""


class Observed:
    """What calibration records of one tensor: its extremes, their moving average, and a sample of its values.

    samples: how many will be shown, which decides how many values of each are kept. The order of the values within a
    sample, which differs between layouts, makes no difference. keep: whether values are kept at all.
    """

    def __init__(self, samples: int = 1, keep: bool = True) -> None:
        self.low = self.high = 0.0
        self.average: Range | None = None
        self.shown = 0
        self.keep = keep
        self.values: list[Array] = []
        self._most = max(16, MOST_KEPT // max(samples, 1))

    def add(self, x: Array) -> None:
        """Show the values of one sample: finite numbers of any shape."""
        if not x.size:
            return
        low, high = float(x.min()), float(x.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.shown += 1
        a, b = self.average or (0.0, 0.0)
        weight = max(AVERAGING, 1.0 / self.shown)
        self.average = a + weight * (low - a), b + weight * (high - b)
        if self.keep:
            self.values.append(x.reshape(-1) if x.size <= self._most else self._evenly(x))

    def _evenly(self, x: Array) -> Array:
        """As many values as are kept, one of each of as many equal parts of the sorted ones. Its place in the part
        moves from sample to sample by the golden ratio, so that together they follow the tails, too."""
        place = (0.5 + len(self.values) * (5**0.5 - 1) / 2) % 1.0
        at = (np.arange(self._most) + place) * (x.size / self._most)
        found: Array = np.sort(x, axis=None)[at.astype(np.int64)]
        return found

    def sample(self) -> Array:
        """The kept values, float64."""
        return np.concatenate([v.astype(np.float64) for v in self.values] or [np.zeros(1)])


def range_of(seen: Observed, method: str, percentile: float = 99.99, bits: int = 8) -> Range:
    """The range of a tensor.

    method: "minmax": the extremes; "moving-average": averages of each sample's extremes, in which single outliers count
    little; "percentile": drops outliers at both ends and keeps that share of the values; "entropy": the range whose
    integers differ least in their distribution (Kullback-Leibler; Migacz 2017, as in TensorRT); "mse": the range that
    rounding to `bits` bits changes least. All but the first two look at a sample of the values. Raises UnsupportedError
    for another method.
    """
    if method not in METHODS:
        raise UnsupportedError(f"the method of calibration is one of {', '.join(METHODS)}, found {method!r}")
    low, high = seen.low, seen.high
    if method == "moving-average" and seen.average is not None:
        low, high = seen.average
    elif method == "percentile" and seen.values:
        tail = (100 - percentile) / 2
        low, high = (float(end) for end in np.percentile(np.concatenate(seen.values), (tail, 100 - tail)))
    elif method == "entropy" and np.unique(seen.sample()).size > 1 << bits:  # else each value can have its step
        most = entropy_threshold(
            *np.histogram(np.abs(seen.sample()), BINS, (0, max(-low, high) or 1.0)), 1 << (bits - 1)
        )
        low, high = max(low, -most), min(high, most)
    elif method == "mse" and seen.values:
        low, high = _least_error(seen.sample(), low, high, bits)
    return min(0.0, low), max(0.0, high)


def grid_of(low: float, high: float, bits: int = 8) -> tuple[float, int]:
    """(scale, zero point) of the unsigned integers of `bits` bits that cover a range with zero in it.

    Scales of 8 bits or fewer have 12 binary digits, so that ranges that differ only by rounding, as those of two ways
    of adding the same numbers do, have the same scale in float32 and in float64, but for the rare one that is
    halfway between two such numbers.
    """
    low, high, last = min(low, 0.0), max(high, 0.0), (1 << bits) - 1
    if high == low:
        return 2.0 / (last + 1), (last + 1) // 2
    scale = (high - low) / last
    if bits <= 8:
        digits, exponent = np.frexp(scale)
        scale = float(np.ldexp(np.rint(digits * (1 << 12)), exponent - 12))
    return scale, int(np.clip(np.rint(-low / scale), 0, last))


def rounded(x: Array, scale: float, zero: int, bits: int = 8) -> Array:
    """x as the integers of a grid, and back."""
    out: Array = (np.clip(np.rint(x / scale) + zero, 0, (1 << bits) - 1) - zero) * scale
    return out


def _least_error(x: Array, low: float, high: float, bits: int) -> Range:
    best, least = (low, high), np.inf
    for shrink in np.linspace(1.0, 0.2, SHRINKS):
        found = low * shrink, high * shrink
        error = float(np.mean((rounded(x, *grid_of(*found, bits), bits) - x) ** 2))
        if error < least:
            best, least = (float(found[0]), float(found[1])), error
    return best


def entropy_threshold(counts: Array, edges: Array, levels: int = 128) -> float:
    """The absolute value at which to clip: the histogram up to it, whose last bin takes what lies beyond, differs least
    from the same in `levels` steps. At most MOST_CLIPPED of the values lie beyond.

    counts: of absolute values, by bin; edges: of the bins, one more.
    """
    bins = len(counts)
    if bins <= levels:
        return float(edges[-1])
    counts = counts.copy()
    counts[0] = counts[1]  # zeros, which are exact in every grid, would outweigh the rest after a relu
    if not counts.any():
        return float(edges[-1])
    best, least = bins, np.inf
    beyond = np.cumsum(counts[::-1])[::-1]
    first = int(np.count_nonzero(beyond > MOST_CLIPPED * counts.sum()))
    for stop in range(max(levels, first), bins + 1):
        reference = counts[:stop].astype(np.float64)
        used = reference > 0
        edge = np.minimum(np.arange(stop) * levels // stop, levels - 1)  # which step each bin falls into
        sums = np.bincount(edge, reference, levels)
        filled = np.bincount(edge, used, levels)
        spread = np.where(used, (sums / np.maximum(filled, 1))[edge], 0.0)
        if stop < bins:
            reference[-1] += beyond[stop]
        divergence = _divergence(reference, spread)
        if divergence < least:
            best, least = stop, divergence
    return float(edges[best])


def _divergence(p: Array, q: Array) -> float:
    """Kullback-Leibler of two histograms; what only p holds counts as a millionth in q."""
    p, q = p / p.sum(), q / max(q.sum(), 1e-300)
    there = p > 0
    return float(np.sum(p[there] * np.log(p[there] / np.maximum(q[there], 1e-6))))
