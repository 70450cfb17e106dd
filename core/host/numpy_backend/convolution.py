"""Convolution as a matrix product (BLAS): one row for each tap of the kernel, with the element that it meets at each
position.

A kernel of one element needs no copy. A large matrix is built and multiplied a few lines at a time, so that it stays in
the processor's cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .storage import Array
from .windows import padded

# Elements of the matrix that are built at a time.
BLOCK = 1 << 21


def conv(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Array:
    """`Backend.conv` on arrays of one dtype."""
    x = padded(x, padding, 0)
    batch, (outputs, inputs, *kernel) = x.shape[0], weight.shape
    columns = columns_of(x, kernel, stride, dilation)
    spatial = columns.shape[-len(kernel) :]
    count, rows = math.prod(spatial), inputs * math.prod(kernel)
    taps = weight.reshape(groups, outputs // groups, rows)
    if groups * rows * count > BLOCK and columns.ndim > x.ndim:
        out = _by_lines(columns, taps, len(kernel))
    elif groups == 1:
        out = taps[0] @ columns.reshape(batch, rows, count)
    else:
        out = taps @ columns.reshape(batch, groups, rows, count)
    if bias is not None:
        out = out.reshape(batch, outputs, count)
        out += bias[:, None]
    return out.reshape(batch, outputs, *spatial)


def _by_lines(columns: Array, taps: Array, rank: int) -> Array:
    """taps (groups, m, rows) times the columns, some lines of the first spatial axis at a time."""
    batch, lines = columns.shape[0], columns.shape[-rank]
    line = math.prod(columns.shape[columns.ndim - rank + 1 :])
    step = max(1, BLOCK // (math.prod(columns.shape[1:]) // lines))
    out = np.empty((batch, *taps.shape[:2], lines * line), columns.dtype)
    for item in range(batch):
        for first in range(0, lines, step):
            key: tuple[Any, ...] = (item, ..., slice(first, first + step), *(slice(None),) * (rank - 1))
            part = columns[key].reshape(taps.shape[0], taps.shape[2], -1)
            np.matmul(taps, part, out=out[item, :, :, first * line : first * line + part.shape[2]])
    return out


def columns_of(x: Array, kernel: list[int], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Array:
    """(n, c, *kernel, *spatial): the elements that each tap of the kernel meets; (n, c, *spatial) for one tap."""
    if max(kernel) == 1:
        key: tuple[Any, ...] = (..., *(slice(None, None, s) for s in stride))
        return x[key]
    sizes, steps = x.shape[2:], x.strides[2:]
    spatial = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)]
    between_taps = [b * d for b, d in zip(steps, dilation, strict=True)]
    between_positions = [b * s for b, s in zip(steps, stride, strict=True)]
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *kernel, *spatial), (*x.strides[:2], *between_taps, *between_positions), writeable=False
    )
