"""The rarer paddings of a convolution: by name, and negative ones, which cut elements off."""

from ...errors import refuse


def named(padding, n, kernel, dilation):
    """The (low, high) pairs of "same" or "valid"."""
    if padding == "valid":
        return ((0, 0),) * n
    if padding != "same":
        refuse("padding", padding)
    totals = [dilation[i] * (kernel[i] - 1) for i in range(n)]
    return tuple([(t // 2, t - t // 2) for t in totals])


def cropped(x, padding):
    """x without what negative padding cuts off, and the padding that is left."""
    from ..movement.rearranging import pad

    x = pad(x, ((0, 0), (0, 0)) + tuple([(min(p, 0), min(q, 0)) for p, q in padding]))
    return x, tuple([(max(p, 0), max(q, 0)) for p, q in padding])
