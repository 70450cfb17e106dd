"""Convolution by im2col on lists: the inputs of each kernel tap are a list, `zip` turns these into windows, and a
window times a filter is one C-speed sum of products."""

from ..shapes import size, window
from ..shapes import strides as row_major
from .buffers import build, listed
from .dots import dot
from .views import offsets


def positions(shape, kernel, stride, dilation, out):
    """For a row-major block of `shape`: (the start of each output row, the offset of each tap from there)."""
    steps = row_major(shape)
    starts = offsets(out[:-1], [steps[i] * stride[i] for i in range(len(out) - 1)], 0)
    taps = offsets(kernel, [steps[i] * dilation[i] for i in range(len(kernel))], 0)
    return starts, taps


def conv(backend, x, weight, bias, stride, padding, dilation, groups):
    batch, channels = x.shape[:2]
    outputs, depth = weight.shape[:2]
    kernel = weight.shape[2:]
    n = len(kernel)
    spatial = tuple([window(x.shape[i + 2], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    for low, high in padding:
        if low or high:
            x = backend.pad(x, ((0, 0), (0, 0)) + tuple(padding), 0)
            break
    values, taps_of = listed(x), listed(weight)
    area = size(x.shape[2:])
    starts, taps = positions(x.shape[2:], kernel, stride, dilation, spatial)
    step = stride[-1]
    reach = (spatial[-1] - 1) * step + 1
    whole = step == 1 and spatial == x.shape[2:]  # a pointwise kernel reads the channel in place
    length = depth * len(taps)
    shifts = bias is not None and listed(bias)
    out = []
    for image in range(batch):
        for group in range(groups):
            seen = []
            for c in range(group * depth, (group + 1) * depth):
                base = (image * channels + c) * area
                if whole:
                    seen.append(values[base : base + area])
                    continue
                for tap in taps:
                    o = base + tap
                    column = []
                    for s in starts:
                        s += o
                        column += values[s : s + reach : step]
                    seen.append(column)
            windows = list(zip(*seen)) if seen else [()] * size(spatial)
            each = outputs // groups
            for m in range(group * each, (group + 1) * each):
                taken = taps_of[m * length : (m + 1) * length]
                if shifts:
                    shift = shifts[m]
                    out += [dot(taken, w) + shift for w in windows]
                else:
                    out += [dot(taken, w) for w in windows]
    shape = (batch, outputs) + spatial
    return backend.new(build(x.dtype, out, len(out)), x.dtype, shape)
