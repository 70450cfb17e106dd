"""Backward passes of convolution and pooling as NumPy computes them best: products of matrices, and sums of shifted
views."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from .convolution import BLOCK, columns_of
from .storage import Array
from .windows import padded

Pairs = tuple[tuple[int, int], ...]


def views(
    x: Array, kernel: Any, stride: tuple[int, ...], dilation: tuple[int, ...], spatial: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """(tap, the elements of x (n, c, *padded) that it meets) for each tap of a window."""
    for tap in product(*map(range, kernel)):
        key: tuple[Any, ...] = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, spatial, stride, strict=True)
        )
        key = (..., *key)
        yield tap, x[key]


def inside(shape: tuple[int, ...], padding: Pairs) -> tuple[Any, ...]:
    """The key of the image of this shape within its border."""
    spatial = zip(shape[2:], padding, strict=True)
    return (slice(None), slice(None), *(slice(low, low + n) for n, (low, _) in spatial))


def with_border(shape: tuple[int, ...], padding: Pairs) -> tuple[int, ...]:
    """The shape of an image with its border."""
    return (*shape[:2], *(n + low + high for n, (low, high) in zip(shape[2:], padding, strict=True)))


def conv_input(
    g: Array, weight: Array, shape: tuple[int, ...], stride: tuple[int, ...], padding: Pairs, dilation: tuple[int, ...],
    groups: int,
) -> Array:  # fmt: skip
    """The gradient of a convolution's input, of this shape."""
    batch, outputs, *spatial = g.shape
    inputs, kernel = weight.shape[1], weight.shape[2:]
    matrix = weight.reshape(groups, outputs // groups, -1).swapaxes(1, 2)
    out = np.zeros(with_border(shape, padding), g.dtype)
    step = max(1, BLOCK // max(1, groups * matrix.shape[1] * math.prod(spatial)))
    for first in range(0, batch, step):
        part = g[first : first + step]
        columns = matrix @ part.reshape(len(part), groups, outputs // groups, -1)
        columns = columns.reshape(len(part), groups * inputs, *kernel, *spatial)
        for tap, view in views(out[first : first + step], kernel, stride, dilation, tuple(spatial)):
            at: tuple[Any, ...] = (slice(None), slice(None), *tap)
            view += columns[at]
    return out[inside(shape, padding)]


def conv_weight(
    x: Array, g: Array, shape: tuple[int, ...], stride: tuple[int, ...], padding: Pairs, dilation: tuple[int, ...],
    groups: int,
) -> Array:  # fmt: skip
    """The gradient of a convolution's weight, of this shape."""
    outputs, inputs, *kernel = shape
    columns = _taps(columns_of(padded(x, padding, 0), kernel, stride, dilation), x.ndim, len(kernel))
    used: tuple[Any, ...] = (..., *map(slice, g.shape[2:]))  # no windows behind the last one
    columns = columns[used]
    out = np.zeros((groups, outputs // groups, inputs * math.prod(kernel)), g.dtype)
    step = max(1, BLOCK // max(1, math.prod(columns.shape[1:])))
    for first in range(0, len(x), step):
        seen = np.moveaxis(columns[first : first + step], 0, 1 + len(kernel)).reshape(*out.shape[::2], -1)
        part = g[first : first + step].swapaxes(0, 1).reshape(*out.shape[:2], -1)
        out += part @ seen.swapaxes(1, 2)
    return out.reshape(shape)


def _taps(columns: Array, rank: int, count: int) -> Array:
    """Columns (n, c, *kernel, *spatial), those of a kernel of one element too."""
    return columns.reshape(*columns.shape[:2], *(1,) * count, *columns.shape[2:]) if columns.ndim == rank else columns


def max_pool(
    x: Array, y: Array, g: Array, kernel: tuple[int, ...], stride: tuple[int, ...], padding: Pairs,
    dilation: tuple[int, ...],
) -> Array:  # fmt: skip
    """The gradient of the input of max pooling, whose result is y: that of each window goes to its first maximum."""
    image = padded(x, padding, -math.inf)
    out = np.zeros(image.shape, g.dtype)
    free = np.ones(y.shape, bool)
    places = views(out, kernel, stride, dilation, y.shape[2:])
    for (_, seen), (_, place) in zip(views(image, kernel, stride, dilation, y.shape[2:]), places, strict=True):
        hit = (seen == y) & free
        free &= ~hit
        np.add(place, g, out=place, where=hit)
    return out[inside(x.shape, padding)]
