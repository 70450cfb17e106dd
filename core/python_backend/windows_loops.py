"""Pooling as plain loops over buffers, for interpreters without C-speed list operations (MicroPython)."""

from ..shapes import size, strides, window
from .buffers import allocate, flat, is_narrow, store, wrapper
from .convolution_loops import _corner, offsets_nd
from .identities import identity


def pool(backend, op, x, kernel, stride, padding, dilation):
    n = len(kernel)
    inside = x.shape[2:]
    spatial = tuple([window(inside[i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    source, area, steps = flat(x), size(inside), strides(inside)
    planes, count = x.shape[0] * x.shape[1], size(spatial)
    total = planes * count
    start = identity(op, x.dtype)
    taps = offsets_nd(kernel, dilation)
    largest = op == "max"
    direct = largest or (x.dtype.is_float and not is_narrow(x.dtype))
    out = allocate(x.dtype, total) if direct else [0] * total
    for position in range(count):
        corner = _corner(position, spatial, stride, padding)
        inner = []  # the taps inside the input, the same in every plane
        for tap in taps:
            at = 0
            for i in range(n):
                p = corner[i] + tap[i]
                if p < 0 or p >= inside[i]:
                    at = -1
                    break
                at += p * steps[i]
            if at >= 0:
                inner.append(at)
        for plane in range(planes):
            base = plane * area
            best = start
            for at in inner:
                v = source[base + at]
                if not largest:
                    best += v
                elif v > best or v != v:
                    best = v
            out[plane * count + position] = best
    if not direct:
        if x.dtype.is_integer:
            out = map(wrapper(x.dtype), out)
        out = store(x.dtype, out, total)
    return backend.new(out, x.dtype, x.shape[:2] + spatial)
