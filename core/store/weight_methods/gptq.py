"""GPTQ: rounding weights one input after the other, each time correcting the inputs that are left for the error.

Frantar, Ashkboos, Hoefler, Alistarh 2022, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers", arXiv:2210.17323.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...functional.arrays import asarray
from ...functional.quantized.weights import WeightScheme, quantize_rows, scale_of

Array = NDArray[Any]

DAMPING = 0.01
"""Added to the diagonal of the second moments, as a share of its mean; the paper's 1 %."""
COLUMNS = 128
"""Rounded before the others are corrected."""


class Rows(NamedTuple):
    """Quantized weights: levels (channels, blocks, block size), scale and zero (channels, blocks)."""

    levels: Array
    scale: Array
    zero: Array

    def real(self, n: int) -> Array:
        """The weights (channels, n)."""
        whole = (self.levels - self.zero[..., None]) * self.scale[..., None]
        return whole.reshape(len(whole), -1)[:, :n]


def nearest(w: Array, scheme: WeightScheme) -> Rows:
    """Weights (channels, n), float64, rounded to the nearest by a scheme."""
    levels, stored, whole, zero = quantize_rows(asarray(w.astype(np.float32), backend="numpy"), scheme)
    shape = levels.shape[:2]
    scales = np.asarray(scale_of(stored, whole)).astype(np.float64).reshape(shape)
    middle = float(1 << (scheme.bits - 1))
    zeros = np.full(shape, middle) if zero is None else np.asarray(zero).astype(np.float64).reshape(shape)
    return Rows(np.asarray(levels).astype(np.float64), scales, zeros)


def split(rows: Rows, count: int) -> list[Rows]:
    """The rows of each of `count` groups of channels."""
    return [Rows(*parts) for parts in zip(*(np.split(part, count) for part in rows), strict=True)]


def errors(off: Array, gram: Array) -> Array:
    """The squared error of each channel's outputs, summed over the samples: the diagonal of off gram offᵀ."""
    found: Array = np.einsum("ij,ij->i", off @ gram, off)
    return found


def gptq(
    w: Array, gram: Array, scheme: WeightScheme, damping: float = DAMPING, plain: Rows | None = None
) -> Rows:  # fmt: skip
    """Weights (channels, n), quantized so that their products with the samples change little.

    gram (n, n): the sum of x xᵀ over the samples, finite. plain: the weights rounded to the nearest, whose scales stay;
    inputs are taken in the order of their size, the largest first. A channel for which plain is better keeps that.
    """
    found = plain or nearest(w, scheme)
    gram = leveled(gram)
    n = w.shape[1]
    size = found.levels.shape[2]
    scale, zero = (np.repeat(part, size, axis=1)[:, :n] for part in (found.scale, found.zero))
    last = (1 << scheme.bits) - 1
    first = 1 if scheme.mode == "symmetric" else 0
    order = np.argsort(-np.diag(gram), kind="stable")
    factors = _factors(gram[np.ix_(order, order)], damping)
    left, scale, zero = w[:, order].copy(), scale[:, order], zero[:, order]
    levels = np.empty_like(left)
    for start in range(0, n, COLUMNS):
        stop = min(start + COLUMNS, n)
        off = np.empty((len(w), stop - start))
        for j in range(start, stop):
            levels[:, j] = np.clip(np.rint(left[:, j] / scale[:, j]) + zero[:, j], first, last)
            off[:, j - start] = (left[:, j] - (levels[:, j] - zero[:, j]) * scale[:, j]) / factors[j, j]
            left[:, j + 1 : stop] -= np.outer(off[:, j - start], factors[j, j + 1 : stop])
        left[:, stop:] -= off @ factors[start:stop, stop:]
    chosen = found.levels.reshape(len(w), -1).copy()
    chosen[:, order] = levels
    better = Rows(chosen.reshape(found.levels.shape), found.scale, found.zero)
    worse = errors(w - better.real(n), gram) > errors(w - found.real(n), gram)
    chosen[worse] = found.levels.reshape(len(w), -1)[worse]
    return better._replace(levels=chosen.reshape(found.levels.shape))


def leveled(gram: Array) -> Array:
    """Second moments, the largest of which is 1, so that sums of them are finite."""
    return gram / max(float(np.diag(gram).max(initial=0.0)), 1e-300)


def _factors(gram: Array, damping: float) -> Array:
    """The upper Cholesky factor of the inverse of the damped second moments."""
    gram = gram.copy()
    diagonal = np.arange(len(gram))
    gram[diagonal, diagonal] = np.where(np.diag(gram) > 0, np.diag(gram), 1.0)  # inputs that are always zero
    mean = float(np.mean(np.diag(gram)))
    while True:
        try:
            held = gram.copy()
            held[diagonal, diagonal] += damping * mean
            inverse = np.linalg.inv(np.linalg.cholesky(held))
            found: Array = np.linalg.cholesky(inverse.T @ inverse).T
            return found
        except np.linalg.LinAlgError:
            damping = max(damping * 10, 1e-6)
