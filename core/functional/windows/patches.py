"""Images as columns of windows, and back: im2col (unfold), col2im (fold), max_unpool, center_crop_pad."""

from ... import dtypes
from ...errors import ShapeError, refuse
from ...shapes import as_int, axes_of, axis_of, size, strides, window
from ..convolution import padding_pairs
from ..movement.rearranging import _not_negative
from ..operands import numeric, tensor
from ..overriding import composite
from .steps import steps as at_least_one


def _window_pixels(lengths, kernel, stride, padding, dilation):
    """(the flat index in the padded image of every (tap, position), a list with taps outermost; the positions per
    axis)."""
    d = len(lengths)
    if [low for low, high in padding if low < 0 or high < 0]:
        refuse("least", "padding", 0, padding)
    padded = [lengths[i] + padding[i][0] + padding[i][1] for i in range(d)]
    out = [window(padded[i], kernel[i], stride[i], (0, 0), dilation[i]) for i in range(d)]
    if [i for i in range(d) if kernel[i] > max(padded[i], 1)]:
        raise ShapeError("no window of {} fits into {}, padding included".format(kernel, padded))
    steps = strides(padded)
    pixels = [0]
    for axis in range(d):
        pixels = [p + t * dilation[axis] * steps[axis] for p in pixels for t in range(kernel[axis])]
    for axis in range(d):
        pixels = [p + o * stride[axis] * steps[axis] for p in pixels for o in range(out[axis])]
    return pixels, tuple(out), tuple(padded)


#: function; Burn unfold4d
@composite
def im2col(x, kernel_size, stride=1, padding=0, dilation=1):
    """x (n, c, *spatial) -> (n, c * taps, positions): every window as a column (PyTorch's unfold). Raises ShapeError
    if no window fits, or for negative padding."""
    x = numeric(x, "im2col")
    d = x.ndim - 2
    kernel = at_least_one(kernel_size, d, "kernel_size")
    stride, dilation = at_least_one(stride, d, "stride"), at_least_one(dilation, d, "dilation")
    padding = padding_pairs(padding, d)
    pixels, out, padded = _window_pixels(x.shape[2:], kernel, stride, padding, dilation)
    n, c = x.shape[:2]
    backend = x.backend
    x = backend.reshape(backend.pad(x, ((0, 0), (0, 0)) + padding, 0), (n, c, size(padded)))
    columns = backend.take(x, backend.from_list(pixels, dtypes.int32, (len(pixels),)), 2)
    return backend.reshape(columns, (n, c * size(kernel), size(out)))


#: method; Burn unfold; axis: int; size: int; step: int
@composite
def sliding_windows(x, axis, size, step=1):
    """The windows of `size` elements that begin at every `step`-th element of axis: the axis counts the windows, a new
    last axis has their elements (Burn's unfold, and PyTorch's of tensors). Raises ShapeError if none fits."""
    x = tensor(x)
    axis = axis_of(axis, x.ndim)
    n = x.shape[axis]
    if not 1 <= size <= n or step < 1:
        raise ShapeError("windows of {} elements, one every {}, of axis {} of {}".format(size, step, axis, x.shape))
    from ..creation.fills import arange

    count = (n - size) // step + 1
    backend = x.backend
    starts = arange(0, count * step, step, backend=backend).reshape((count, 1))
    found = backend.take(x, starts + arange(size, backend=backend), axis)
    last = [i for i in range(found.ndim) if i != axis + 1] + [axis + 1]
    return backend.permute(found, tuple(last))


#: function; PyTorch unfold
def unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    """`im2col` by PyTorch's name and in its order of parameters."""
    return im2col(x, kernel_size, stride, padding, dilation)


#: function; ONNX Col2Im
@composite
def col2im(x, output_size, kernel_size, stride=1, padding=0, dilation=1):
    """x (n, c * taps, positions) -> (n, c, *output_size): windows summed back into an image (PyTorch's fold)."""
    x = numeric(x, "col2im")
    output_size = tuple([as_int(s) for s in output_size])
    _not_negative(output_size, "col2im")
    d = len(output_size)
    kernel = at_least_one(kernel_size, d, "kernel_size")
    stride, dilation = at_least_one(stride, d, "stride"), at_least_one(dilation, d, "dilation")
    padding = padding_pairs(padding, d)
    taps = size(kernel)
    positions = [window(output_size[i], kernel[i], stride[i], padding[i], dilation[i]) for i in range(d)]
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != size(positions):
        raise ShapeError(
            "col2im: {} columns do not fold into {} with kernel {} ({} positions)".format(
                x.shape, output_size, kernel, positions
            )
        )
    pixels, out, padded = _window_pixels(output_size, kernel, stride, padding, dilation)
    n, c = x.shape[0], x.shape[1] // taps
    backend = x.backend
    values = backend.reshape(x, (n, c, taps * size(out)))
    index = backend.expand(backend.from_list(pixels, dtypes.int32, (1, 1, len(pixels))), values.shape)
    image = backend.scatter(backend.full((n, c, size(padded)), 0, x.dtype), index, values, 2, "add")
    image = backend.reshape(image, (n, c) + padded)
    starts = (0, 0) + tuple([p[0] for p in padding])
    return backend.slice(image, starts, (n, c) + output_size, (1,) * (d + 2))


#: function; PyTorch fold
def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """`col2im` by PyTorch's name and in its order of parameters."""
    return col2im(x, output_size, kernel_size, stride, padding, dilation)


#: function; ONNX MaxUnpool
@composite
def max_unpool(x, indices, kernel_size, stride=1, padding=0, output_size=None):
    """x (n, c, *spatial) written back to where max_pool_with_indices found it, with zeros elsewhere (ONNX MaxUnpool).

    indices: int64, position in the flattened (n, c, *spatial) array that was pooled; output_size: the spatial size of
    the result, if larger than the one that kernel, stride and padding imply.
    """
    x = numeric(x, "max_unpool")
    indices = tensor(indices)
    if x.ndim < 3 or indices.shape != x.shape:
        raise ShapeError(
            "max_unpool needs (n, c, *spatial) and as many indices, found {} and {}".format(x.shape, indices.shape)
        )
    d = x.ndim - 2
    kernel = at_least_one(kernel_size, d, "kernel_size")
    stride = at_least_one(stride, d, "stride")
    padding = padding_pairs(padding, d)
    pooled = tuple([(x.shape[i + 2] - 1) * stride[i] - sum(padding[i]) + kernel[i] for i in range(d)])
    if output_size is not None and (len(output_size) != d or [i for i in range(d) if output_size[i] < pooled[i]]):
        raise ShapeError("max_unpool: output_size {} is smaller than {}".format(tuple(output_size), pooled))
    shape = x.shape[:2] + pooled
    from ..indexing.picking import check_bounds

    indices, _ = check_bounds(indices, size(shape), 0)
    backend = x.backend
    flat = backend.full((size(shape),), 0, x.dtype)
    flat = backend.scatter(flat, backend.reshape(indices, (x.size,)), backend.reshape(x, (x.size,)), 0, "none")
    out = backend.reshape(flat, shape)
    if output_size is None:
        return out
    grow = [(0, 0), (0, 0)] + [(0, as_int(output_size[i]) - pooled[i]) for i in range(d)]
    return backend.pad(out, tuple(grow), 0)


#: function; ONNX CenterCropPad; shape: Sequence[int]
@composite
def center_crop_pad(x, shape, axes=None):
    """x cropped or zero-padded around its center to `shape` along `axes` (all by default); an odd element goes to the
    end. Raises ShapeError for a negative length."""
    x = tensor(x)
    axes = list(axes_of(None, x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
    shape = [as_int(d) for d in shape]
    _not_negative(shape, "center_crop_pad")
    starts, sizes, padding = [0] * x.ndim, list(x.shape), [(0, 0)] * x.ndim
    for axis, wanted in zip(axes, shape):
        have = x.shape[axis]
        if wanted < have:
            starts[axis], sizes[axis] = (have - wanted) // 2, wanted
        else:
            low = (wanted - have) // 2
            padding[axis] = (low, wanted - have - low)
    x = x.backend.slice(x, tuple(starts), tuple(sizes), (1,) * x.ndim)
    return x.backend.pad(x, tuple(padding), 0)
