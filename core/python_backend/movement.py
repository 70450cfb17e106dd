"""Movement: strided views where possible, else copies of runs."""

from ..shapes import size
from ..shapes import strides as row_major
from ..tensor import Tensor
from .buffers import flat, run
from .sequences import join
from .views import merged, offsets, strides_of


def _view(backend, x, shape, offset, strides):
    strides = tuple(strides)
    return Tensor((x.data[0], offset, None if strides == row_major(shape) else strides), x.dtype, shape, backend)


def permute(backend, x, axes):
    strides = strides_of(x)
    return _view(backend, x, tuple([x.shape[a] for a in axes]), x.data[1], [strides[a] for a in axes])


def expand(backend, x, shape):
    strides = strides_of(x)
    lead = len(shape) - len(x.shape)
    new = [0] * lead
    for i in range(len(x.shape)):
        new.append(strides[i] if x.shape[i] == shape[lead + i] else 0)
    return _view(backend, x, tuple(shape), x.data[1], new)


def slice(backend, x, starts, sizes, steps):
    strides = strides_of(x)
    offset = x.data[1]
    for i in range(len(sizes)):
        offset += starts[i] * strides[i]
    return _view(backend, x, tuple(sizes), offset, [strides[i] * steps[i] for i in range(len(sizes))])


def pad(backend, x, padding, value):
    shape = tuple([x.shape[i] + padding[i][0] + padding[i][1] for i in range(len(x.shape))])
    out = flat(backend.full(shape, value, x.dtype))
    if not x.size:
        return backend.new(out, x.dtype, shape)
    strides = row_major(shape)
    start = 0
    for i in range(len(shape)):
        start += padding[i][0] * strides[i]
    source = flat(x)
    # One run per block that is contiguous in both.
    axes = merged(x.shape, row_major(x.shape), strides)
    length = 1
    if axes and axes[-1][2] == 1:  # else a last axis of length 1 is padded, and the blocks are single elements
        length = axes.pop()[0]
    into = offsets([a[0] for a in axes], [a[2] for a in axes], start)
    at = 0
    for o in into:
        out[o : o + length] = run(source, at, length)
        at += length
    return backend.new(out, x.dtype, shape)


def concat(backend, tensors, axis):
    first = tensors[0]
    if type(first) is not Tensor and hasattr(first, "grow"):  # the state of a session, which may have spare capacity
        grown = first.grow(tensors, axis)
        if grown is not None:
            return grown
    total = 0
    parts = []
    for t in tensors:
        total += t.shape[axis]
        parts.append((flat(t), size(t.shape[axis:])))
    shape = first.shape[:axis] + (total,) + first.shape[axis + 1 :]
    chunks = []
    for i in range(size(first.shape[:axis])):
        for buffer, length in parts:
            chunks.append(run(buffer, i * length, length))
    return backend.new(join(first.dtype, chunks), first.dtype, shape)
