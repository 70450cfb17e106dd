"""The rules of pooling: sums spread each gradient over its window, maxima give it to the first largest element."""

from ... import dtypes
from ..arithmetic import add, call, compare, number, own, reshaped, where
from .convolution import of_input


def pool(op, x, y, kernel, stride, padding, dilation):
    if op == "sum":
        shape = x.shape
        return lambda g: (_spread(g, shape, kernel, stride, padding, dilation),)
    quick = own("max_pool_gradient", x)
    if quick:
        return lambda g: (quick(x, y, g, kernel, stride, padding, dilation),)
    if _tiles(x.shape[2:], y.shape[2:], kernel, stride, padding, dilation):
        return lambda g: (_to_first_of_tiles(x, g, kernel),)
    return lambda g: (_to_first(x, y, g, kernel, stride, padding, dilation),)


def _spread(g, shape, kernel, stride, padding, dilation):
    planes = shape[0] * shape[1]
    ones = g.backend.full((1, 1) + tuple(kernel), 1, g.dtype)
    g = reshaped(g, (planes, 1) + g.shape[2:])
    return reshaped(of_input(g, ones, (planes, 1) + shape[2:], stride, padding, dilation, 1), shape)


def _tiles(inside, out, kernel, stride, padding, dilation):
    """Whether the windows cover the input exactly once."""
    for i in range(len(kernel)):
        if kernel[i] != stride[i] or dilation[i] != 1 or tuple(padding[i]) != (0, 0) or out[i] * kernel[i] != inside[i]:
            return False
    return True


def _to_first_of_tiles(x, g, kernel):
    backend = x.backend
    n = len(kernel)
    shape = x.shape[:2]
    taps = 1
    for i in range(n):
        shape += (g.shape[i + 2], kernel[i])
        taps *= kernel[i]
    outer, within = [2 + 2 * i for i in range(n)], [3 + 2 * i for i in range(n)]
    order = [0, 1] + outer + within
    tiles = backend.permute(reshaped(x, shape), tuple(order))
    best = backend.argreduce("max", reshaped(tiles, g.shape + (taps,)), n + 2, True)
    hit = compare("eq", backend.arange(0, 1, taps, dtypes.int64), best)
    spread = reshaped(where(hit, reshaped(g, g.shape + (1,)), number(0, g)), tiles.shape)
    back = tuple([order.index(i) for i in range(len(order))])
    return reshaped(backend.permute(spread, back), x.shape)


def _to_first(x, y, g, kernel, stride, padding, dilation):
    backend = x.backend
    n = len(kernel)
    margins = ((0, 0), (0, 0)) + tuple(padding)
    padded = x.backend.pad(x, margins, float("-inf"))
    steps = (1, 1) + tuple(stride)
    free = total = None
    for tap in _taps(kernel):
        starts = (0, 0) + tuple([tap[i] * dilation[i] for i in range(n)])
        hit = compare("eq", backend.slice(padded, starts, y.shape, steps), y)
        if free is None:
            free = backend.unary("logical_not", hit)
        else:
            hit = compare("logical_and", hit, free)
            free = compare("logical_and", free, backend.unary("logical_not", hit))
        part = call("dilate", where(hit, g, number(0, g)), stride)
        around = [(0, 0), (0, 0)]
        for i in range(n):
            low = starts[i + 2]
            around.append((low, padded.shape[i + 2] - low - part.shape[i + 2]))
        part = backend.pad(part, tuple(around), 0)
        total = part if total is None else add(total, part)
    return backend.slice(total, tuple([low for low, _ in margins]), x.shape, (1,) * (n + 2))


def _taps(kernel):
    taps = [()]
    for k in kernel:
        taps = [t + (j,) for t in taps for j in range(k)]
    return taps
