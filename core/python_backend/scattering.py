"""Placing elements by index."""

from ..shapes import strides as row_major
from . import scalars
from .buffers import MICRO, build, flat, run
from .selection import element_offsets
from .views import merged, offsets


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
        elif not join:
            from .lacking import no_kernel

            no_kernel("scatter " + op)
        else:
            out[o] = join(out[o], values[i])
    return backend.new(build(x.dtype, out, len(out)), x.dtype, x.shape)


def assign_region(backend, x, starts, sizes, steps, value):
    """x with `value`, of shape `sizes`, at starts[i] + j * steps[i] along each axis i."""
    buffer = flat(x)
    if buffer is x.data[0]:
        buffer = run(buffer, 0, x.size)
    write_region(buffer, x.shape, starts, sizes, steps, value)
    return backend.new(buffer, x.dtype, x.shape)


def write_region(buffer, shape, starts, sizes, steps, value):
    """Put `value`, of shape `sizes`, into the row-major buffer of a tensor of that shape, as `assign_region` says."""
    if not value.size:
        return
    strides = row_major(shape)
    at = 0
    for i in range(len(shape)):
        at += starts[i] * strides[i]
    values = flat(value)
    axes = merged(sizes, [strides[i] * steps[i] for i in range(len(shape))])
    length, step = axes.pop() if axes else (1, 1)
    done = 0
    for o in offsets([a[0] for a in axes], [a[1] for a in axes], at):
        if step == 1:
            buffer[o : o + length] = run(values, done, length)
        elif MICRO:
            for i in range(length):
                buffer[o + i * step] = values[done + i]
        else:
            stop = o + length * step
            buffer[o : None if stop < 0 else stop : step] = run(values, done, length)
        done += length
