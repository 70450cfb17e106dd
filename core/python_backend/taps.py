"""What the taps of a kernel see of an image, for convolution and pooling. CPython only."""

from ..shapes import strides as row_major
from .views import offsets


def positions(shape, kernel, stride, dilation, out):
    """For a row-major block of `shape`: (the start of each output row, the offset of each tap from there)."""
    steps = row_major(shape)
    starts = offsets(out[:-1], [steps[i] * stride[i] for i in range(len(out) - 1)], 0)
    taps = offsets(kernel, [steps[i] * dilation[i] for i in range(len(kernel))], 0)
    return starts, taps


def geometry(shape, kernel, stride, dilation, out):
    """(starts, taps as of `positions`, how far a row reaches, its step, whether a tap sees the block as it lies)."""
    starts, taps = positions(shape, kernel, stride, dilation, out)
    step = stride[-1]
    return starts, taps, (out[-1] - 1) * step + 1, step, step == 1 and out == shape and len(taps) == 1


def seen_by_taps(values, base, view):
    """What each tap of a kernel sees of the block that begins at `base`, at all positions: a sequence as `values` is,
    for each tap. view: as of `geometry`."""
    starts, taps, reach, step, whole = view
    if whole:
        return [values[base : base + reach * len(starts)]]
    seen = []
    for tap in taps:
        o = base + tap
        column = values[:0]
        for s in starts:
            s += o
            column += values[s : s + reach : step]
        seen.append(column)
    return seen
