"""Convolution as plain loops over buffers, for interpreters without C-speed list operations (MicroPython).

A few windows are gathered at a time; then every filter is read once (it may be in flash) for all of them.
"""

from ..shapes import size, strides, window
from .buffers import Borrowed, allocate, flat, is_narrow, run, store, wrapper

BLOCK = 1024  # the maximum total size of the gathered windows, in elements


def _dot(a, b, count, total):
    # A separate function, because a function's first few locals are the fastest, and conv has many.
    for i in range(count):
        total += a[i] * b[i]
    return total


def conv(backend, x, weight, bias, stride, padding, dilation, groups):
    batch, channels = x.shape[:2]
    outputs, depth = weight.shape[:2]
    kernel = weight.shape[2:]
    n = len(kernel)
    inside = x.shape[2:]
    spatial = tuple([window(inside[i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    dtype = x.dtype
    source, area = flat(x), size(inside)
    taps_of, first_tap = weight.data[0], weight.data[1]
    if weight.data[2] is not None or not isinstance(taps_of, Borrowed):
        taps_of, first_tap = flat(weight), 0
    shifts = None if bias is None else flat(bias)
    length = depth * size(kernel)
    count = size(spatial)
    each = outputs // groups
    total = batch * outputs * count
    direct = dtype.is_float and not is_narrow(dtype)
    out = allocate(dtype, total) if direct else [0] * total
    block = max(1, min(count, BLOCK // max(1, length)))
    windows = [allocate(dtype, length) for _ in range(block)]
    steps = strides(inside)
    # Index of each tap, and of each output position, per axis.
    tap_index = offsets_nd(kernel, dilation)
    for image in range(batch):
        for group in range(groups):
            base = (image * channels + group * depth) * area
            for first in range(0, count, block):
                now = min(block, count - first)
                for w in range(now):
                    corner = _corner(first + w, spatial, stride, padding)
                    _gather(windows[w], source, base, area, depth, corner, tap_index, inside, steps)
                for m in range(group * each, (group + 1) * each):
                    taken = run(taps_of, first_tap + m * length, length)
                    start = 0 if shifts is None else shifts[m]
                    at = (image * outputs + m) * count + first
                    for w in range(now):
                        out[at + w] = _dot(taken, windows[w], length, start)
    if not direct:
        if dtype.is_integer:
            out = map(wrapper(dtype), out)
        out = store(dtype, out, total)
    return backend.new(out, dtype, (batch, outputs) + spatial)


def offsets_nd(kernel, dilation):
    """The index of every tap along each axis: a list of tuples."""
    out = [()]
    for i in range(len(kernel)):
        out = [t + (j * dilation[i],) for t in out for j in range(kernel[i])]
    return out


def _corner(position, spatial, stride, padding):
    """The start of the window at a flat output position along each axis (negative: in the padding)."""
    corner = []
    for i in range(len(spatial) - 1, -1, -1):
        corner.insert(0, position % spatial[i] * stride[i] - padding[i][0])
        position //= spatial[i]
    return corner


def _gather(into, source, base, area, depth, corner, tap_index, inside, steps):
    """Fill a window with its inputs in `depth` channels, and zeros in the padding."""
    taps = len(tap_index)
    n = len(corner)
    for t in range(taps):
        tap = tap_index[t]
        at = 0
        for i in range(n):
            p = corner[i] + tap[i]
            if p < 0 or p >= inside[i]:
                at = -1
                break
            at += p * steps[i]
        if at < 0:
            for c in range(depth):
                into[c * taps + t] = 0
        else:
            at += base
            for c in range(depth):
                into[c * taps + t] = source[at]
                at += area
