"""Pooling on lists: the inputs of each window tap are a list, and `map` reduces these lists elementwise."""

from ..shapes import size, window
from .buffers import build, listed
from .convolution import positions
from .identities import identity
from .reductions import largest


def pool(backend, op, x, kernel, stride, padding, dilation):
    n = len(kernel)
    spatial = tuple([window(x.shape[i + 2], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    if op not in ("max", "sum"):
        from .lacking import no_kernel

        no_kernel("pool " + op)
    fill = identity(op, x.dtype)
    for low, high in padding:
        if low or high:
            x = backend.pad(x, ((0, 0), (0, 0)) + tuple(padding), fill)
            break
    values = listed(x)
    area = size(x.shape[2:])
    starts, taps = positions(x.shape[2:], kernel, stride, dilation, spatial)
    step = stride[-1]
    reach = (spatial[-1] - 1) * step + 1
    out = []
    for base in range(0, len(values), area or 1):
        seen = []
        for tap in taps:
            o = base + tap
            column = []
            for s in starts:
                s += o
                column += values[s : s + reach : step]
            seen.append(column)
        if op == "sum":
            out += map(sum, zip(*seen))
        elif len(seen) == 1:
            out += seen[0]
        elif x.dtype.is_float and (total := sum(values[base : base + area])) - total != 0:
            out += map(largest, zip(*seen))  # an infinity or a NaN somewhere
        else:
            out += map(max, *seen)
    return backend.new(build(x.dtype, out, len(out)), x.dtype, x.shape[:2] + spatial)
