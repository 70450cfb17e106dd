"""Depthwise convolutions of small pictures of integers, as products: a channel's pixels by a matrix of its weights,

    out[n, c, q] = sum over p of x[n, c, p] * matrix[c, p, q].

A window then needs no border and no row of its own in a vector, and taps that never meet the picture cost nothing. The
sums are the same integers.
"""

from emberlet import dtypes
from emberlet.shapes import size, window
from emberlet.sizes.size import is_open

from .host_evaluation import given
from .node import depends_on_input

PIXELS = 16  # of the largest picture, and of the largest result


def product(x, weight, stride, padding, dilation, groups):
    """(pixels, matrix, the shape of the convolution) for integer tensors and constant weights of one channel a group;
    else None. The product of the first two, int32, has the convolution's elements."""
    channels = weight.shape[0]
    if groups != channels or weight.shape[1] != 1 or depends_on_input(weight.data):
        return None
    inside = x.shape[2:]
    outside = [window(inside[i], weight.shape[2 + i], stride[i], padding[i], dilation[i]) for i in range(len(stride))]
    if [d for d in list(x.shape) + list(weight.shape) + outside if is_open(d)] or x.shape[1] != channels:
        return None
    if not 0 < size(inside) <= PIXELS or not 0 < size(outside) <= PIXELS:
        return None
    backend, host = x.backend, x.backend.host
    known = given(weight.data, host)
    if known is None:
        return None
    taps = size(weight.shape[2:])
    picks = []  # for each pixel and each result, the tap that multiplies it; behind the last one is 0
    for p in range(size(inside)):
        for q in range(size(outside)):
            picks.append(_tap(_place(p, inside), _place(q, outside), weight.shape[2:], stride, padding, dilation))
    known = host.pad(host.reshape(known, (channels, taps)), ((0, 0), (0, 1)), 0)
    at = host.from_list(picks, dtypes.int32, (size(inside), size(outside)))
    matrix = host.take(known, at, 1)
    ends = [host.to_list(host.reduce(op, known, (0, 1), False))[0] for op in ("min", "max")]
    kind = dtypes.int8 if -128 <= ends[0] and ends[1] <= 127 else dtypes.int32  # a plan keeps the former as bytes
    matrix = backend.from_bytes(host.to_bytes(host.cast(matrix, kind)), kind, matrix.shape)
    pixels = backend.reshape(x, (x.shape[0], channels, 1, size(inside)))
    return pixels, backend.cast(matrix, dtypes.int32), (x.shape[0], channels) + tuple(outside)


def _place(flat, shape):
    out = []
    for d in reversed(shape):
        out.insert(0, flat % d)
        flat //= d
    return out


def _tap(pixel, result, kernel, stride, padding, dilation):
    """The number of the tap between a pixel and a result; that of all taps if there is none."""
    out = 0
    for i in range(len(kernel)):
        further = pixel[i] + padding[i][0] - result[i] * stride[i]
        if further % dilation[i] or not 0 <= further // dilation[i] < kernel[i]:
            return size(kernel)
        out = out * kernel[i] + further // dilation[i]
    return out
