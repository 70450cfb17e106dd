"""Convolutions of integers by 3 x 3 weights, two lines of an image at a time: Winograd's F(2, 3) along the height.

From four lines d of an image and three lines g of weights, two lines of sums take four products in place of six:

    m0 = (d0 - d2) g0               m1 = (d1 + d2) (g0 + g1 + g2) / 2
    m3 = (d1 - d3) g2               m2 = (d2 - d1) (g0 - g1 + g2) / 2
    first = m0 + (m1 + m2)          second = (m1 - m2) - m3

All of these are integers, m1 and m2 halves. While there are less than 2**24 of either, floats hold them, and the sums
are those of the convolution, exactly. Floats' own convolutions would be rounded in another way.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from ....tensor import Tensor
from ..storage import Array
from .exact_sums import EXACT, largest_sum
from .layout import to_last
from .of_integers import Ends, OfIntegers
from .steps import Writer
from .tracing import Call
from .windows import BLOCK

CHANNELS = 32  # of the image, at least: with fewer, additions take as long as the products that are saved
LINES = 6  # of the result, at least: of an odd number, the last one takes four products, too
LARGE = 1 << 22  # least multiplications: below, calls of NumPy take longer
POSITIONS = 192  # least positions of a product, because every product reads all the weights


def fits(call: Call) -> bool:
    """Whether a Call is such a convolution, exact and faster so."""
    _, weight, bias, stride, _, dilation, groups = call.args
    if not isinstance(call.method, OfIntegers) or call.method.weight is not weight or groups != 1:
        return False
    spatial = call.results[0].shape[2:]
    if weight.shape[2:] != (3, 3) or (*stride, *dilation) != (1, 1, 1, 1) or spatial[0] < LINES:
        return False
    if weight.shape[1] < CHANNELS or weight.size * math.prod(spatial) < LARGE:
        return False
    shift = 0.0
    if bias is not None:
        whole = call.method.in_units(bias) if isinstance(bias, Tensor) else None
        if whole is None:
            return False
        shift = float(np.abs(whole).max())
    return largest(call.method.integers, call.method.ends) + 2 * shift < EXACT


def largest(weight: Array, ends: list[Ends]) -> float:
    """The largest magnitude of m0, 2 m1, 2 m2, m3, m1 + m2 and m1 - m2, all integers, or of some of their terms."""
    first, middle, last = (weight[:, :, i].astype(np.int64).reshape(len(weight), -1) for i in range(3))
    differences = [(low - high, high - low) for low, high in ends]
    sums = [(2 * low, 2 * high) for low, high in ends]
    both = np.concatenate([middle, first + last], axis=1)  # of d1 and d2 in m1 + m2, and of d2 and d1 in m1 - m2
    return max(
        largest_sum(first, (1,), differences),
        largest_sum(first + middle + last, (1,), sums),
        largest_sum(first - middle + last, (1,), differences),
        largest_sum(last, (1,), differences),
        largest_sum(both, (1,), ends),
    )


def conv(w: Writer, call: Call, image: Array, result: Array) -> None:
    """Write the sums of a Call that fits, its bias included: of an image with its border into a result, both
    (n, c, h, w) with their channels last."""
    _, weight, bias, *_ = call.args
    lines, width = result.shape[2:]
    channels = 3 * weight.shape[1]
    g = weight.data.transpose(2, 3, 1, 0).reshape(3, channels, -1)  # of a line: taps and channels, outputs
    half = np.float32(0.5)
    weights = np.stack([g[0], (g[0] + g[1] + g[2]) * half, (g[0] - g[1] + g[2]) * half, g[2]])
    shift = None if bias is None else bias.data
    tiles = -(-lines // 2)
    most = max(BLOCK // (4 * width * (channels + g.shape[2])), -(-POSITIONS // width))
    step = -(-tiles // -(-tiles // most))  # blocks of about the same size
    for item, start in product(range(len(image)), range(0, tiles, step)):
        seen = to_last(image)[item, 2 * start : 2 * (start + step) + 2]
        place = to_last(result)[item, 2 * start : 2 * (start + step)]
        _block(w, seen, weights, shift, place)


def _block(w: Writer, seen: Array, weights: Array, shift: Array | None, place: Array) -> None:
    """Some lines (lines, width, outputs) of a result, from those of the image that they see."""
    lines, width, outputs = place.shape
    count, pairs, inputs = -(-lines // 2), lines // 2, seen.shape[2]
    d0, d1, d2 = (seen[i : i + 2 * count - 1 : 2] for i in range(3))
    mixed = w.scratch((4, count, *seen.shape[1:]), seen.dtype)
    w.map(np.subtract, d0, d2, mixed[0])
    w.map(np.add, d1, d2, mixed[1])
    w.map(np.subtract, d2, d1, mixed[2])
    if pairs:
        w.map(np.subtract, d1[:pairs], seen[3 : 2 * pairs + 2 : 2], mixed[3, :pairs])
    columns = w.scratch((4, count * width, 3 * inputs), seen.dtype)
    taps = np.lib.stride_tricks.as_strided(mixed, (4, count, width, 3 * inputs), mixed.strides)
    w.copy(taps, columns.reshape(taps.shape))
    m = w.scratch((4, count, width, outputs), seen.dtype)
    for i, n in enumerate((count, count, count, pairs)):
        out = m[i, :n].reshape(n * width, outputs)
        if n:
            w.emit(np.matmul, columns[i, : n * width], weights[i], out, writes=(out,))
    if shift is not None:
        w.map(np.add, m[1], shift, m[1])
    both = w.scratch((count, width, outputs), seen.dtype)
    w.map(np.add, m[1], m[2], both)
    w.map(np.add, both, m[0], place[::2])
    if pairs:
        w.map(np.subtract, m[1, :pairs], m[2, :pairs], both[:pairs])
        w.map(np.subtract, both[:pairs], m[3, :pairs], place[1::2])
