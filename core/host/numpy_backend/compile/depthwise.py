"""Depthwise convolutions of small images whose numbers are finite, such as levels: a line of results is one product of
the lines that it sees with a band matrix, which holds the line's taps at their places and zeros elsewhere.

The lines that it sees lie side by side in memory: they are copied in long runs, where columns are copied element by
element. Most terms are zeros times an element, so that infinity would become NaN in a whole line.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ....dtypes import float32
from ....tensor import Tensor
from ..storage import Array
from .magnitudes import FINITE, largest
from .tracing import Call

if TYPE_CHECKING:
    from .steps import Writer

WIDEST = 32  # elements of a line: a longer one is multiplied by more zeros than copying saves
LARGEST = 1 << 17  # elements of all band matrices


def by_lines(call: Call) -> bool:
    """Whether a convolution is computed here."""
    if call.op != "conv" or call.keywords or call.open or len(call.args[3]) != 2:
        return False
    x, weight, bias, *_, groups = call.args
    if not isinstance(weight, Tensor) or any(p is not None and p.dtype is not float32 for p in (x, weight, bias)):
        return False
    if weight.shape[0] != groups or weight.shape[1] != 1 or max(weight.shape[2:]) == 1:
        return False
    width, result = x.shape[3], call.results[0].shape
    if width > WIDEST or groups * weight.shape[2] * width * result[3] > LARGEST or not math.prod(result):
        return False
    return largest(weight) < FINITE and largest(x) < FINITE


def conv(w: Writer, call: Call) -> None:
    """Lowers a convolution that `by_lines` takes."""
    x, weight, bias, stride, padding, dilation, _ = call.args
    value = call.results[0]
    batch, channels, lines, width = value.shape
    image = w.contiguous(w.with_border(x, border(call), 0))
    taps, line = weight.shape[2], x.shape[3]
    n, c, step, one = image.strides
    seen = np.lib.stride_tricks.as_strided(
        image, (batch, channels, lines, taps, line), (n, c, step * stride[0], step * dilation[0], one), writeable=False
    )
    rows = w.scratch((batch, channels, lines, taps * line), image.dtype)
    w.copy(seen, rows.reshape(seen.shape))
    out = w.out(value)
    result = out if out.flags.c_contiguous else w.scratch(value.shape, out.dtype)
    bands = _bands(weight.data[:, 0], line, width, stride[1], padding[1][0], dilation[1])
    w.emit(np.matmul, rows, bands, result, writes=(result,))
    if bias is not None:
        w.map(np.add, result, w.contiguous(w.array(bias)).reshape(-1, 1, 1), out)
    else:
        w.copy(result, out)


def border(call: Call) -> tuple[tuple[int, int], ...]:
    """The border that a convolution's image has in memory: none beside lines that band matrices multiply."""
    padding = call.args[4]
    return (padding[0], (0, 0)) if by_lines(call) else padding


def _bands(weight: Array, line: int, width: int, stride: int, before: int, dilation: int) -> Array:
    """(channels, taps * line, width): what the elements of the lines that a line of results sees are multiplied by, for
    weights (channels, taps, taps of a line) and `before` elements of border."""
    channels, taps, inner = weight.shape
    out = np.zeros((channels, taps, line, width), weight.dtype)
    for tap in range(inner):
        at = np.arange(width) * stride - before + tap * dilation
        inside = np.flatnonzero((at >= 0) & (at < line))
        out[:, :, at[inside], inside] = weight[:, :, tap, None]
    return out.reshape(channels, taps * line, width)
