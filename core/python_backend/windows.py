"""Pooling on lists: the inputs of each window tap are a list, and `map` reduces these lists elementwise."""

from ..shapes import size, window
from .buffers import Borrowed, build, listed
from .identities import identity
from .reductions import largest
from .taps import geometry, seen_by_taps


def pool(backend, op, x, kernel, stride, padding, dilation):
    n = len(kernel)
    spatial = tuple([window(x.shape[i + 2], kernel[i], stride[i], padding[i], dilation[i]) for i in range(n)])
    if op not in ("max", "sum"):
        from .lacking import no_kernel

        no_kernel("pool " + op)
    if op == "max" and isinstance(x.data[0], Borrowed) and not any(low or high for low, high in padding):
        from .coded import largest_of_windows

        found = largest_of_windows(backend, x, kernel, stride, padding, dilation)
        if found is not None:
            return found
    fill = identity(op, x.dtype)
    for low, high in padding:
        if low or high:
            x = backend.pad(x, ((0, 0), (0, 0)) + tuple(padding), fill)
            break
    values = listed(x)
    area = size(x.shape[2:])
    view = geometry(x.shape[2:], kernel, stride, dilation, spatial)
    out = []
    for base in range(0, len(values), area or 1):
        seen = seen_by_taps(values, base, view)
        if op == "sum":
            out += map(sum, zip(*seen))
        elif len(seen) == 1:
            out += seen[0]
        elif x.dtype.is_float and (total := sum(values[base : base + area])) - total != 0:
            out += map(largest, zip(*seen))  # an infinity or a NaN somewhere
        else:
            out += map(max, *seen)
    return backend.new(build(x.dtype, out, len(out)), x.dtype, x.shape[:2] + spatial)
