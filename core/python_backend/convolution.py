"""Convolution by im2col on lists: the inputs of each kernel tap are a list, `zip` turns these into windows, and a
window times a filter is one C-speed sum of products."""

from ..shapes import size, window
from .buffers import Borrowed, build, listed
from .dots import dot
from .taps import geometry, seen_by_taps


def conv(backend, x, weight, bias, stride, padding, dilation, groups):
    if isinstance(x.data[0], Borrowed):
        from .level_products import conv as of_levels

        found = of_levels(backend, x, weight, bias, stride, padding, dilation, groups)
        if found is not None:
            return found
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
    view = geometry(x.shape[2:], kernel, stride, dilation, spatial)
    length = size(weight.shape[1:])
    shifts = bias is not None and listed(bias)
    out = []
    for image in range(batch):
        for group in range(groups):
            seen = []
            for c in range(group * depth, (group + 1) * depth):
                seen += seen_by_taps(values, (image * channels + c) * area, view)
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
