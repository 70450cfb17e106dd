"""Selecting elements: by condition, by index, and the nonzero ones."""

from .. import dtypes
from ..shapes import broadcast, size
from ..shapes import strides as row_major
from .buffers import build, code_of, flat, run, store
from .sequences import join, repeated


def where(backend, condition, a, b):
    shape = broadcast(condition.shape, a.shape, b.shape)
    count = size(shape)

    def seen(x):
        if x.size == 1:
            return repeated(flat(x)[0], count)
        return flat(x if x.shape == shape else backend.expand(x, shape))

    values = map(lambda c, u, v: u if c else v, seen(condition), seen(a), seen(b))
    return backend.new(store(a.dtype, values, count), a.dtype, shape)


def _turned(indices, n):
    """Flat indices, with negative ones wrapped."""
    return [i + n if i < 0 else i for i in flat(indices)]


def take(backend, x, indices, axis):
    n = x.shape[axis]
    length = size(x.shape[axis + 1 :])
    buffer, start, strides = x.data
    if strides is not None:
        buffer, start = flat(x), 0
    picked = _turned(indices, n)
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    chunks = []
    for lead in range(size(x.shape[:axis])):
        base = start + lead * n * length
        if length == 1 and code_of(x.dtype) is not None:
            chunks.append(store(x.dtype, [buffer[base + i] for i in picked], len(picked)))
        else:
            chunks += [run(buffer, base + i * length, length) for i in picked]
    return backend.new(join(x.dtype, chunks), x.dtype, shape)


def element_offsets(x, indices, axis):
    """The row-major offset in x of each element that `indices` selects along axis."""
    steps = row_major(x.shape)
    index = _turned(indices, x.shape[axis])
    bases = [0]
    for i in range(len(x.shape)):
        step = 0 if i == axis else steps[i]
        bases = [o + j * step for o in bases for j in range(indices.shape[i])]
    step = steps[axis]
    return [bases[i] + index[i] * step for i in range(len(index))]


def gather(backend, x, indices, axis):
    values = flat(x)
    out = [values[o] for o in element_offsets(x, indices, axis)]
    return backend.new(store(x.dtype, out, len(out)), x.dtype, indices.shape)


def nonzero(backend, x):
    values = flat(x)
    zero = "" if x.dtype.kind == "string" else 0
    found = [i for i in range(x.size) if values[i] != zero]
    out = []
    for step, n in zip(row_major(x.shape), x.shape):
        out += [i // step % n for i in found]
    return backend.new(build(dtypes.int64, out, len(out)), dtypes.int64, (len(x.shape), len(found)))
