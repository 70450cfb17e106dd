"""Max pooling that also returns the index of each maximum."""

from ... import dtypes
from ...shapes import size, window
from ...shapes import strides as row_major
from ..movement.rearranging import reshape


def pool_with_indices(x, kernel, stride, padding, dilation):
    """(values, int64 indices into the flattened spatial axes); arguments as in `Backend.pool`."""
    backend = x.backend
    n = len(kernel)
    inside = x.shape[2:]
    out = tuple([window(inside[i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    steps = row_major(inside)
    # For each output position and tap: the flat index it reads, or -1 in the padding.
    seen = _taps(inside, kernel, stride, padding, dilation, out, steps)
    positions, taps = size(out), size(kernel)
    index = backend.from_list(seen, dtypes.int64, (positions * taps,))
    planes = reshape(x, (x.shape[0] * x.shape[1], size(inside)))
    low = float("-inf") if x.dtype.is_float else x.dtype.range[0]
    zero = backend.full((), 0, dtypes.int64)
    missing = backend.binary("lt", index, zero)
    values = backend.take(planes, backend.where(missing, zero, index), 1)
    values = backend.where(missing, backend.full((), low, x.dtype), values)
    values = reshape(values, (planes.shape[0], positions, taps))
    best = backend.argreduce("max", values, 2, True)
    largest = backend.gather(values, best, 2)
    index = backend.expand(reshape(index, (1, positions, taps)), values.shape)
    where = backend.gather(index, best, 2)
    shape = x.shape[:2] + out
    return reshape(largest, shape), reshape(where, shape)


def _taps(inside, kernel, stride, padding, dilation, out, steps):
    positions, taps = [()], [()]
    for i in range(len(kernel)):
        positions = [p + (j * stride[i] - padding[i][0],) for p in positions for j in range(out[i])]
        taps = [t + (j * dilation[i],) for t in taps for j in range(kernel[i])]
    seen = []
    for p in positions:
        for t in taps:
            at = 0
            for i in range(len(kernel)):
                place = p[i] + t[i]
                if place < 0 or place >= inside[i]:
                    at = -1
                    break
                at += place * steps[i]
            seen.append(at)
    return seen
