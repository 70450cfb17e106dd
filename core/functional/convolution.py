"""Convolution (cross-correlation) over any number of spatial axes.

stride, padding, dilation: one int for all spatial axes or one entry per axis; an entry of padding is an int (both
sides) or a (low, high) pair. padding may also be "same" (output as large as the input at stride 1), "valid", or ONNX's
"same_upper" and "same_lower" (output of length / stride, rounded up; an odd element on the upper or the lower side).
"""

from ..errors import refuse
from .operands import floating, like


def per_axis(value, n, what):
    """`value` as a tuple of n entries: ints, or pairs of a padding. Raises ShapeError for another number of them."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    for entry in value:
        if not isinstance(entry, (int, tuple, list)):
            refuse("entry", what, entry)
    if len(value) != n:
        refuse("per axis", what, len(value), n)
    return value


def padding_pairs(padding, n, *window):
    """`padding` as a tuple of n (low, high) pairs. window: what a name needs (padding_rules.py). Raises ShapeError for
    a kernel, dilation or stride below 1 in it."""
    for steps in window[:3]:
        for step in steps:
            if step < 1:
                refuse("steps", window[:3])
    if isinstance(padding, str):
        from .windows.padding_rules import named

        return named(padding, n, *window)
    return tuple([(p, p) if isinstance(p, int) else tuple(p) for p in per_axis(padding, n, "padding")])


#: function; ONNX Conv
def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation: x (n, c, *spatial), weight (m, c // groups, *kernel), bias (m,) -> (n, m, *out).

    Raises ShapeError if the channels, groups or kernel do not match.
    """
    x = floating(x)
    weight = like(weight, x)
    n = x.ndim - 2
    if n < 1 or weight.ndim != x.ndim:
        refuse("conv rank", x.shape, weight.shape)
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        refuse("conv channels", x.shape, x.shape[1], weight.shape, groups, weight.shape[1] * groups)
    kernel = weight.shape[2:]
    stride, dilation = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    padding = padding_pairs(padding, n, kernel, dilation, stride, x)
    for low, high in padding:
        if low < 0 or high < 0:
            from .windows.padding_rules import cropped

            x, padding = cropped(x, padding)
            break
    for i in range(n):
        room = x.shape[i + 2] + padding[i][0] + padding[i][1]
        if room < dilation[i] * (kernel[i] - 1) + 1:
            refuse("kernel", "conv", kernel, x.shape, padding)
    if bias is not None:
        bias = like(bias, x)
        if bias.shape != weight.shape[:1]:
            refuse("bias", bias.shape, weight.shape)
    return x.backend.conv(x, weight, bias, stride, padding, dilation, groups)
