"""Transposed convolution over any number of spatial axes; arguments as in convolution.py."""

from ...backend import operation
from ...errors import ShapeError
from ..convolution import padding_pairs, per_axis
from ..operands import alias, floating, like
from ..overriding import composite, one_backend
from .steps import steps as at_least_one


#: function; ONNX ConvTranspose; output_padding: int | Sequence[int]
@one_backend
def conv_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Transposed convolution: x (n, c, *spatial), weight (c, m // groups, *kernel) -> (n, m, *out), where out is
    (in - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1 along each axis."""
    x = floating(x)
    weight = like(weight, x)
    n = x.ndim - 2
    if n < 1 or weight.ndim != x.ndim or x.shape[1] != weight.shape[0] or groups < 1 or x.shape[1] % groups:
        raise ShapeError(
            "conv_transpose: input {} does not fit weight {}, {} groups".format(x.shape, weight.shape, groups)
        )
    kernel = weight.shape[2:]
    stride, dilation = at_least_one(stride, n, "stride"), at_least_one(dilation, n, "dilation")
    padding, output_padding = padding_pairs(padding, n), per_axis(output_padding, n, "output_padding")
    for i in range(n):
        out = (x.shape[i + 2] - 1) * stride[i] - padding[i][0] - padding[i][1] + dilation[i] * (kernel[i] - 1)
        if out + output_padding[i] < 0:
            raise ShapeError("conv_transpose: padding {} leaves an empty output for input {}".format(padding, x.shape))
    if bias is not None:
        bias = like(bias, x)
        if bias.shape != (weight.shape[1] * groups,):
            raise ShapeError(
                "conv_transpose: a bias of shape {} does not fit {} channels".format(
                    bias.shape, weight.shape[1] * groups
                )
            )
    fast = operation(x.backend, "conv_transpose")
    if fast:
        return fast(x, weight, bias, stride, padding, output_padding, dilation, groups)
    from ..movement.rearranging import flip, pad, permute_dims, reshape

    # The input with stride - 1 zeros between its elements, correlated with the flipped kernel.
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


#: function; steps: Sequence[int]
@composite
def dilate(x, steps):
    """x (n, c, *spatial) with steps[i] - 1 zeros between neighbors along each spatial axis."""
    from ..movement.rearranging import narrow, pad, reshape

    x = alias(x)
    for i in range(len(steps)):
        if steps[i] > 1 and x.shape[i + 2]:
            axis, length = i + 2, x.shape[i + 2]
            x = reshape(x, x.shape[: axis + 1] + (1,) + x.shape[axis + 1 :])
            x = pad(x, [(0, steps[i] - 1) if d == axis + 1 else (0, 0) for d in range(x.ndim)])
            x = reshape(x, x.shape[:axis] + (length * steps[i],) + x.shape[axis + 2 :])
            x = narrow(x, axis, 0, (length - 1) * steps[i] + 1)
    return x


def _ranked(rank, x, *args):
    if len(x.shape) != rank + 2:
        raise ShapeError("conv_transpose{}d needs {} spatial axes, found {}".format(rank, rank, x.shape))
    return conv_transpose(x, *args)


#: function; PyTorch conv_transpose1d; Burn conv_transpose1d
def conv_transpose1d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """`conv_transpose` of x (n, c, length). Raises ShapeError for another number of axes."""
    return _ranked(1, x, weight, bias, stride, padding, output_padding, dilation, groups)


#: function; PyTorch conv_transpose2d; Burn conv_transpose2d
def conv_transpose2d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """`conv_transpose` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    return _ranked(2, x, weight, bias, stride, padding, output_padding, dilation, groups)


#: function; PyTorch conv_transpose3d; Burn conv_transpose3d
def conv_transpose3d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """`conv_transpose` of x (n, c, depth, height, width). Raises ShapeError for another number of axes."""
    return _ranked(3, x, weight, bias, stride, padding, output_padding, dilation, groups)
