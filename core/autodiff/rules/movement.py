"""The rules of movement: each element's gradient goes back to where the element was."""

from ..arithmetic import cut, flipped, reshaped, undo_broadcast
from ..pieces import Pieces


def reshape(x, y, shape):
    before = x.shape
    return lambda g: (g.backend.reshape(g, before),)


def permute(x, y, axes):
    back = [0] * len(axes)
    for i in range(len(axes)):
        back[axes[i]] = i
    return lambda g: (g.backend.permute(g, tuple(back)),)


def expand(x, y, shape):
    before = x.shape
    return lambda g: (undo_broadcast(g, before),)


def pad(x, y, padding, value):
    starts, sizes = tuple([p[0] for p in padding]), x.shape
    return lambda g: (g.backend.slice(g, starts, sizes, (1,) * len(sizes)),)


def concat(lengths, axis):
    def pull(g):
        out, start = [], 0
        for n in lengths:
            out.append(cut(g, axis, start, n))
            start += n
        return out

    return pull


def slice(x, y, starts, sizes, steps):
    shape = x.shape

    def pull(g):
        first = []
        for i in range(len(shape)):
            start, n, step = starts[i], sizes[i], steps[i]
            if not n:
                return (g.backend.full(shape, 0, g.dtype),)
            if step < 0:
                g, start, step = flipped(g, i), start + (n - 1) * step, -step
            if step > 1 and n > 1:
                g = _apart(g, i, step)
            first.append(start)
        return (g if g.shape == shape else Pieces(g, tuple(first), shape),)

    return pull


def _apart(g, axis, step):
    """g with step - 1 zeros between neighbors along an axis."""
    n = g.shape[axis]
    wide = reshaped(g, g.shape[: axis + 1] + (1,) + g.shape[axis + 1 :])
    wide = g.backend.pad(wide, tuple([(0, step - 1) if i == axis + 1 else (0, 0) for i in range(len(wide.shape))]), 0)
    return cut(reshaped(wide, g.shape[:axis] + (n * step,) + g.shape[axis + 1 :]), axis, 0, (n - 1) * step + 1)
