"""Convolutions of small pictures of integers, as products; the sums are the same integers.

Depthwise ones multiply a channel's pixels by a matrix of its weights,

    out[n, c, q] = sum over p of x[n, c, p] * matrix[c, p, q].

A window then needs no border and no row of its own in a vector, and taps that never meet the picture cost nothing.
Others with few results a channel multiply what each result sees by the weights, so that the channels fill vectors, and
so do those of patches: their windows do not overlap, and what each sees is only moved.
"""

from emberlet import dtypes
from emberlet.shapes import size, window
from emberlet.sizes.size import is_open

from .host_evaluation import given
from .node import depends_on_input

PIXELS = 16  # of the largest picture, and of the largest result
ROWS = 8  # at most, of a product in place of a convolution: one of 16 rows takes twice the convolution's time
SHORT = 4  # a step from window to window
FOUR = 4  # terms that an instruction multiplies


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
    matrix = _constant(backend, matrix)
    pixels = backend.reshape(x, (x.shape[0], channels, 1, size(inside)))
    return pixels, matrix, (x.shape[0], channels) + tuple(outside)


def seen(x, weight, stride, dilation, most, width):
    """(rows, matrix, the shape of the convolution) for integer tensors without a border and constant weights: a row
    (terms,) is what a result of each channel is computed from, the matrix (terms, channels) is filled up with zeros to
    fours of terms and whole tiles, `width` columns. None for groups, few channels, and more than `most` rows, unless
    they are patches."""
    if weight.shape[1] != x.shape[1] or depends_on_input(weight.data):
        return None
    if [d for d in list(x.shape) + list(weight.shape) if is_open(d)]:
        return None
    kernel, channels, terms = weight.shape[2:], weight.shape[0], size(weight.shape[1:])
    outside = [window(x.shape[2 + i], kernel[i], stride[i], (0, 0), dilation[i]) for i in range(len(stride))]
    rows, host = x.shape[0] * size(outside), x.backend.host
    more = -terms % FOUR
    patches = not more and set(dilation) == {1} and _are_patches(x.shape[2:], kernel, stride)
    fits = (rows <= most or patches) and rows * terms and 2 * channels >= width
    known = given(weight.data, host) if fits else None
    if known is None:
        return None
    known = host.permute(host.reshape(known, (channels, terms)), (1, 0))
    matrix = _constant(x.backend, host.pad(known, ((0, more), (0, -channels % width)), 0))
    shape = (x.shape[0], channels) + tuple(outside)
    if patches:
        return _patches(x, kernel, (rows, terms)), matrix, shape
    places = _places(x.shape[1:], outside, kernel, stride, dilation, more)
    found = x.backend.reshape(x, (x.shape[0], size(x.shape[1:])))
    if places != list(range(found.shape[1])):
        found = x.backend.take(found, x.backend.from_list(places, dtypes.int32, (size(outside), terms + more)), 1)
    return x.backend.reshape(found, (rows, terms + more)), matrix, shape


def _are_patches(inside, kernel, stride):
    """Whether windows that divide a picture see each pixel once. With short steps a product would take longer."""
    divided = tuple(stride) == tuple(kernel) and not [1 for i in range(len(kernel)) if inside[i] % kernel[i]]
    return divided and kernel[-1] > SHORT


def _patches(x, kernel, shape):
    """What each result sees of a picture that windows divide, a row each."""
    split, axes = list(x.shape[:2]), range(2, 2 + 2 * len(kernel), 2)
    for i, extent in enumerate(kernel):
        split += [x.shape[2 + i] // extent, extent]
    x = x.backend.permute(x.backend.reshape(x, split), (0,) + tuple(axes) + (1,) + tuple(n + 1 for n in axes))
    return x.backend.reshape(x, shape)


def _places(inside, outside, kernel, stride, dilation, more):
    """The places in a picture (channels, *spatial) of what each result sees, and `more` others."""
    spatial, axes = inside[1:], range(len(kernel))
    terms = []
    for n in range(inside[0] * size(kernel)):
        at, *tap = _place(n, (inside[0],) + tuple(kernel))
        terms.append(_flat([at] + [tap[i] * dilation[i] for i in axes], inside))
    places = []
    for n in range(size(outside)):
        first = _place(n, outside)
        first = _flat([first[i] * stride[i] for i in axes], spatial)
        places += [first + term for term in terms] + [0] * more
    return places


def _constant(backend, known):
    """The host's integers in int32; a plan keeps those of 8 bits as bytes."""
    host = backend.host
    axes = tuple(range(known.ndim))
    ends = [host.to_list(host.reduce(op, known, axes, False))[0] for op in ("min", "max")]
    kind = dtypes.int8 if -128 <= ends[0] and ends[1] <= 127 else dtypes.int32
    found = backend.from_bytes(host.to_bytes(host.cast(known, kind)), kind, known.shape)
    return backend.cast(found, dtypes.int32)


def _place(flat, shape):
    out = []
    for d in reversed(shape):
        out.insert(0, flat % d)
        flat //= d
    return out


def _flat(place, shape):
    out = 0
    for at, d in zip(place, shape):
        out = out * d + at
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
