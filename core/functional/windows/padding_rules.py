"""The rarer paddings of a convolution: by name, and negative padding, which crops."""

from ...errors import refuse


def named(padding, n, kernel=None, dilation=None, stride=None, x=None):
    """The (low, high) pairs of "same", "valid", "same_upper" or "same_lower"; the last two are returned as they are if
    there is no x yet, on whose axes they depend."""
    if padding == "valid":
        return ((0, 0),) * n
    if kernel is None or padding not in ("same", "same_upper", "same_lower"):
        refuse("padding", padding)
    totals = [dilation[i] * (kernel[i] - 1) for i in range(n)]
    if padding != "same":
        if x is None:
            return padding
        totals = [_total(totals[i] + 1 - stride[i], x.shape[i + 2], stride[i]) for i in range(n)]
    if padding == "same_lower":
        return tuple([(t - t // 2, t // 2) for t in totals])
    return tuple([(t // 2, t - t // 2) for t in totals])


def _total(least, length, stride):
    """The padding for an output of length / stride, rounded up. If the length is open, so is the result."""
    total = least + -length % stride
    if least >= 0:
        return total
    from ...sizes.questions import greater

    return greater(0, total)


def cropped(x, padding):
    """(x cropped by the negative padding, the remaining padding)."""
    from ..movement.rearranging import pad

    x = pad(x, ((0, 0), (0, 0)) + tuple([(min(p, 0), min(q, 0)) for p, q in padding]))
    return x, tuple([(max(p, 0), max(q, 0)) for p, q in padding])
