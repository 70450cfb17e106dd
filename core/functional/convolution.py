"""Convolution (cross-correlation) over any number of spatial axes.

stride, padding, dilation: one int for all spatial axes or one entry per axis; an entry of padding is an int (both
sides) or a (low, high) pair. padding may also be "same" (output as large as the input at stride 1) or "valid".
"""

from ..backend import operation
from ..errors import ShapeError
from .operands import floating, like


def per_axis(value, n, what):
    """`value` as a tuple of n ints. Raises ShapeError where it has another length."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    if len(value) != n:
        raise ShapeError("{} has {} entries for {} spatial axes".format(what, len(value), n))
    return value


def padding_pairs(padding, n, kernel=None, dilation=None):
    """`padding` as a tuple of n (low, high) pairs."""
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * n
        if padding != "same":
            raise ShapeError("padding is 'same', 'valid' or numbers, found {!r}".format(padding))
        totals = [dilation[i] * (kernel[i] - 1) for i in range(n)]
        return tuple([(t // 2, t - t // 2) for t in totals])
    if isinstance(padding, int):
        return ((padding, padding),) * n
    padding = tuple(padding)
    if len(padding) != n:
        raise ShapeError("padding has {} entries for {} spatial axes".format(len(padding), n))
    return tuple([(p, p) if isinstance(p, int) else tuple(p) for p in padding])


def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation: x (n, c, *spatial), weight (m, c // groups, *kernel), bias (m,) -> (n, m, *out).

    Raises ShapeError where channels, groups or kernel do not fit.
    """
    x = floating(x)
    weight = like(weight, x)
    n = x.ndim - 2
    if n < 1 or weight.ndim != x.ndim:
        raise ShapeError(
            "conv: input {} and weight {} must have the same rank, at least 3".format(x.shape, weight.shape)
        )
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(
            "conv: input {} has {} channels, weight {} with {} groups wants {}".format(
                x.shape, x.shape[1], weight.shape, groups, weight.shape[1] * groups
            )
        )
    kernel = weight.shape[2:]
    stride, dilation = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    padding = padding_pairs(padding, n, kernel, dilation)
    for i in range(n):
        low, high = padding[i]
        if low < 0 or high < 0:
            from .movement import pad

            cut = ((0, 0), (0, 0)) + tuple([(min(p, 0), min(q, 0)) for p, q in padding])
            x = pad(x, cut)
            padding = tuple([(max(p, 0), max(q, 0)) for p, q in padding])
            break
    for i in range(n):
        room = x.shape[i + 2] + padding[i][0] + padding[i][1]
        if room < dilation[i] * (kernel[i] - 1) + 1:
            raise ShapeError("conv: kernel {} is larger than input {} with padding {}".format(kernel, x.shape, padding))
    if bias is not None:
        bias = like(bias, x)
        if bias.shape != weight.shape[:1]:
            raise ShapeError("conv: bias {} does not fit weight {}".format(bias.shape, weight.shape))
    return x.backend.conv(x, weight, bias, stride, padding, dilation, groups)


def _ranked(rank):
    def convolve(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if len(x.shape) != rank + 2:
            raise ShapeError("conv{}d wants (n, c) and {} spatial axes, found {}".format(rank, rank, x.shape))
        return conv(x, weight, bias, stride, padding, dilation, groups)

    return convolve


conv1d, conv2d, conv3d = _ranked(1), _ranked(2), _ranked(3)


def conv_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Transposed convolution: x (n, c, *spatial), weight (c, m // groups, *kernel) -> (n, m, *out), where out is
    (in - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1 along each axis."""
    x = floating(x)
    weight = like(weight, x)
    n = x.ndim - 2
    if n < 1 or weight.ndim != x.ndim or x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            "conv_transpose: input {} does not fit weight {}, {} groups".format(x.shape, weight.shape, groups)
        )
    kernel = weight.shape[2:]
    stride, dilation = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    padding, output_padding = padding_pairs(padding, n), per_axis(output_padding, n, "output_padding")
    for i in range(n):
        out = (x.shape[i + 2] - 1) * stride[i] - padding[i][0] - padding[i][1] + dilation[i] * (kernel[i] - 1)
        if out + output_padding[i] < 0:
            raise ShapeError("conv_transpose: padding {} leaves nothing of input {}".format(padding, x.shape))
    if bias is not None:
        bias = like(bias, x)
    fast = operation(x.backend, "conv_transpose")
    if fast:
        return fast(x, weight, bias, stride, padding, output_padding, dilation, groups)
    from .movement import flip, pad, permute_dims, reshape

    # The input with stride - 1 zeros between its elements, correlated with the kernel turned around.
    spread = dilate(x, stride)
    channels = x.shape[1]
    outputs = weight.shape[1]
    weight = flip(weight, tuple(range(2, n + 2)))
    weight = reshape(weight, (groups, channels // groups, outputs) + kernel)
    weight = permute_dims(weight, (0, 2, 1) + tuple(range(3, n + 3)))
    weight = reshape(weight, (groups * outputs, channels // groups) + kernel)
    margins = [(0, 0), (0, 0)]
    for i in range(n):
        reach = dilation[i] * (kernel[i] - 1)
        margins.append((reach - padding[i][0], reach - padding[i][1] + output_padding[i]))
    return x.backend.conv(pad(spread, margins), weight, bias, (1,) * n, ((0, 0),) * n, dilation, groups)


def dilate(x, steps):
    """x (n, c, *spatial) with steps[i] - 1 zeros between neighbours along each spatial axis."""
    from .movement import narrow, pad, reshape

    for i in range(len(steps)):
        if steps[i] > 1 and x.shape[i + 2]:
            axis, length = i + 2, x.shape[i + 2]
            x = reshape(x, x.shape[: axis + 1] + (1,) + x.shape[axis + 1 :])
            x = pad(x, [(0, steps[i] - 1) if d == axis + 1 else (0, 0) for d in range(x.ndim)])
            x = reshape(x, x.shape[:axis] + (length * steps[i],) + x.shape[axis + 2 :])
            x = narrow(x, axis, 0, (length - 1) * steps[i] + 1)
    return x


def _ranked_transpose(rank):
    def convolve(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
        if len(x.shape) != rank + 2:
            raise ShapeError("conv_transpose{}d wants {} spatial axes, found {}".format(rank, rank, x.shape))
        return conv_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups)

    return convolve


conv_transpose1d, conv_transpose2d, conv_transpose3d = _ranked_transpose(1), _ranked_transpose(2), _ranked_transpose(3)
