"""Placing elements by index."""

from . import scalars
from .buffers import build, flat
from .selection import element_offsets


def scatter(backend, x, indices, updates, axis, op):
    out = list(flat(x))
    values = flat(updates)
    places = element_offsets(x, indices, axis)
    join = {"max": scalars.maximum, "min": scalars.minimum}.get(op)
    for i in range(len(places)):
        o = places[i]
        if op == "none":
            out[o] = values[i]
        elif op == "add":
            out[o] += values[i]
        elif op == "mul":
            out[o] *= values[i]
        else:
            out[o] = join(out[o], values[i])
    return backend.new(build(x.dtype, out, len(out)), x.dtype, x.shape)
