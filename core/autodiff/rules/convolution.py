"""The rule of convolution. The gradient of x is a transposed convolution of g with the weight; that of the weight is a
convolution of x with g, with the batch in place of the channels."""

from ...shapes import assume_equal
from ..arithmetic import call, own, reshaped, total


def conv(x, weight, stride, padding, dilation, groups, wants):
    shapes = (x.shape, weight.shape)
    weight, x = weight if wants[0] else None, x if wants[1] else None

    def pull(g):
        return (
            of_input(g, weight, shapes[0], stride, padding, dilation, groups) if wants[0] else None,
            of_weight(x, g, shapes[1], stride, padding, dilation, groups) if wants[1] else None,
            total(g, (0,) + tuple(range(2, len(g.shape))), False) if wants[2] else None,
        )

    return pull


def of_input(g, weight, shape, stride, padding, dilation, groups):
    """The gradient of x, of this shape."""
    quick = own("conv_input_gradient", g)
    if quick and _inside(padding):
        return quick(g, weight, shape, stride, padding, dilation, groups)
    n = len(stride)
    rest = []  # positions of the padded input that no window reaches
    for i in range(n):
        low, high = padding[i]
        reach = dilation[i] * (weight.shape[i + 2] - 1) + 1
        rest.append(shape[i + 2] + low + high - reach - (g.shape[i + 2] - 1) * stride[i])
    return call("conv_transpose", g, weight, None, stride, padding, tuple(rest), dilation, groups)


def of_weight(x, g, shape, stride, padding, dilation, groups):
    """The gradient of the weight, of this shape."""
    backend = g.backend
    quick = own("conv_weight_gradient", g)
    if quick and _inside(padding):
        return quick(x, g, shape, stride, padding, dilation, groups)
    batch, channels = x.shape[:2]
    n = len(stride)
    each = channels // groups
    outputs = shape[0] // groups
    # A device with many processors sums parts of the batch side by side.
    parts = own("parts_of_sum", g)
    parts = parts(shape, batch) if parts else 1
    rest = (batch + parts - 1) // parts
    if not assume_equal(parts * rest, batch, "of_weight"):
        margins = ((0, parts * rest - batch),) + ((0, 0),) * (n + 1)
        x, g = backend.pad(x, margins, 0), backend.pad(g, margins, 0)
        batch = parts * rest
    spatial = tuple(range(3, n + 3))
    x = reshaped(x, (batch, groups, each) + x.shape[2:])
    x = backend.permute(x, (2, 1, 0) + spatial)
    x = reshaped(x, (each, groups * batch) + x.shape[3:])
    spatial = tuple(range(4, n + 4))
    g = reshaped(g, (parts, rest, groups, outputs) + g.shape[2:])
    g = backend.permute(g, (2, 0, 3, 1) + spatial)
    g = reshaped(g, (groups * parts * outputs, rest) + g.shape[4:])
    out = backend.conv(x, g, None, dilation, padding, stride, groups * parts)
    wanted = (each, groups * parts * outputs) + shape[2:]
    if out.shape != wanted:  # windows beyond the kernel, where the stride leaves a rest
        out = backend.slice(out, (0,) * (n + 2), wanted, (1,) * (n + 2))
    if parts > 1:
        out = total(reshaped(out, (each, groups, parts, outputs) + shape[2:]), (2,), False)
        out = reshaped(out, (each, shape[0]) + shape[2:])
    return backend.permute(out, (1, 0) + tuple(range(2, n + 2)))


def _inside(padding):
    """Whether no padding cuts elements off."""
    return min([min(p) for p in padding]) >= 0
