"""Activations in one pass over the elements, where the composites take several."""

from math import exp

from .buffers import MICRO, fit, flat, is_narrow, store


def _sigmoid(v):
    if v >= 0:
        return 1 / (1 + exp(-v))
    e = exp(v)
    return e / (1 + e)


def sigmoid(backend, x):
    # NaN takes the second branch and stays NaN; neither branch overflows.
    return backend.new(store(x.dtype, map(_sigmoid, flat(x)), x.size), x.dtype, x.shape)


def softmax(backend, x, axis):
    if not x.size:
        return x
    n = x.shape[axis]
    row = flat(x)
    last = axis == len(x.shape) - 1
    if not last:
        order = [i for i in range(len(x.shape)) if i != axis] + [axis]
        row = flat(backend.permute(x, tuple(order)))
    if not MICRO:
        row = row.tolist()
    # A narrow dtype rounds after every step, as the composite does.
    rounded = fit(x.dtype) if is_narrow(x.dtype) else None
    values = []
    for start in range(0, x.size, n):
        values += _soft_row(row[start : start + n], rounded)
    if last:
        return backend.new(store(x.dtype, values, x.size), x.dtype, x.shape)
    shape = tuple([x.shape[i] for i in order])
    back = [0] * len(order)
    for i in range(len(order)):
        back[order[i]] = i
    return backend.permute(backend.new(store(x.dtype, values, x.size), x.dtype, shape), tuple(back))


def _soft_row(row, rounded=None):
    peak = max(row)
    try:
        # A NaN anywhere, or an infinite maximum (inf - inf), makes the sum NaN, and with it the whole row.
        if rounded:
            e = [rounded(exp(rounded(v - peak))) for v in row]
            total = sum(e)
            total = rounded(total) if total <= 65504 else total  # which float16 would make infinite
        else:
            e = [exp(v - peak) for v in row]
            total = sum(e)
    except (ValueError, OverflowError):
        return [float("nan")] * len(row)
    return [v / total for v in e]
