"""Average and norm pooling, global and adaptive pooling; arguments as in max_pooling.py."""

from ...errors import ShapeError
from ...shapes import assume_equal, size
from ..convolution import per_axis
from ..max_pooling import max_pool, windows
from ..operands import alias, astype, numeric
from ..overriding import composite
from ..promotion import widened


#: function; ONNX AveragePool
@composite
def avg_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True):
    """The mean of each window. count_include_pad: whether padding counts (the padding that ceil_mode adds never
    does)."""
    x, dtype = widened(x)
    backend = x.backend
    kernel, stride, padding, dilation, grown = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    total = backend.pool("sum", x, kernel, stride, grown, dilation)
    plain = True
    for i in range(len(kernel)):
        plain = plain and grown[i] == padding[i] and (count_include_pad or assume_equal(padding[i], (0, 0), "avg_pool"))
    if plain:
        return astype(backend.binary("div", total, backend.full((), size(kernel), x.dtype)), dtype)
    ones = backend.full((1, 1) + x.shape[2:], 1, x.dtype)
    if count_include_pad:
        ones = backend.pad(ones, ((0, 0), (0, 0)) + padding, 1)
        grown = tuple([(0, g[1] - p[1]) for g, p in zip(grown, padding)])
    return astype(backend.binary("div", total, backend.pool("sum", ones, kernel, stride, grown, dilation)), dtype)


#: function; ONNX LpPool; p: float
@composite
def lp_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, p=2):
    """The p-norm of each window."""
    x, dtype = widened(x)
    backend = x.backend
    kernel, stride, padding, dilation, grown = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    power = backend.full((), p, x.dtype)
    total = backend.pool("sum", backend.binary("pow", backend.unary("abs", x), power), kernel, stride, grown, dilation)
    return astype(backend.binary("pow", total, backend.full((), 1 / p, x.dtype)), dtype)


#: function; ONNX MaxPool -> tuple[Tensor, Tensor]
@composite
def max_pool_with_indices(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """(largest elements, int64 index of each in the flattened spatial axes of its channel)."""
    from .max_pooling_indices import pool_with_indices

    x = numeric(x, "max_pool")
    kernel, stride, _, dilation, grown = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    return pool_with_indices(x, kernel, stride, grown, dilation)


#: function; ONNX GlobalAveragePool
@composite
def global_avg_pool(x):
    """The mean over all spatial axes, which are kept with length 1."""
    from ..reductions.over_axes import mean

    return mean(x, tuple(range(2, len(x.shape))), keepdims=True)


#: function; ONNX GlobalMaxPool
@composite
def global_max_pool(x):
    """The largest element over all spatial axes, which are kept with length 1."""
    from ..reductions.over_axes import max

    return max(x, tuple(range(2, len(x.shape))), keepdims=True)


#: function; PyTorch adaptive_avg_pool2d
@composite
def adaptive_avg_pool(x, output_size):
    """Means of windows that divide each spatial axis as evenly as possible into output_size parts."""
    x, dtype = widened(x)
    return astype(_adaptive(x, output_size, "sum"), dtype)


#: function; PyTorch adaptive_max_pool2d
@composite
def adaptive_max_pool(x, output_size):
    """Largest elements of windows that divide each spatial axis as evenly as possible into output_size parts."""
    return _adaptive(numeric(x, "adaptive_max_pool"), output_size, "max")


def _adaptive(x, output_size, op):
    backend = x.backend
    x = alias(x)
    n = x.ndim - 2
    output = per_axis(output_size, n, "output_size")
    from ..movement.rearranging import narrow

    for i in range(n):
        axis, length, parts = i + 2, x.shape[i + 2], output[i]
        if parts < 1 or parts > length + 65536:  # windows that repeat: a mistake, and a tensor for each of them
            raise ShapeError("adaptive pooling of axis {} of {} into {} parts".format(axis, x.shape, parts))
        pieces = []
        for j in range(parts):
            start, stop = j * length // parts, -(-(j + 1) * length // parts)
            piece = backend.reduce(op, narrow(x, axis, start, stop - start), (axis,), True)
            if op == "sum":
                piece = backend.binary("div", piece, backend.full((), stop - start, x.dtype))
            pieces.append(piece)
        x = backend.concat(pieces, axis) if len(pieces) > 1 else pieces[0]
    return x


def _check_rank(rank, x):
    if len(x.shape) != rank + 2:
        raise ShapeError("{}d pooling needs (n, c) and {} spatial axes, found {}".format(rank, rank, x.shape))


#: function; PyTorch max_pool1d; Burn max_pool1d
def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """`max_pool` of x (n, c, length). Raises ShapeError for another number of axes."""
    _check_rank(1, x)
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)


#: function; PyTorch max_pool2d; Burn max_pool2d
def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """`max_pool` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    _check_rank(2, x)
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)


#: function; PyTorch max_pool3d
def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """`max_pool` of x (n, c, depth, height, width). Raises ShapeError for another number of axes."""
    _check_rank(3, x)
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)


#: function; PyTorch avg_pool1d; Burn avg_pool1d
def avg_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True):
    """`avg_pool` of x (n, c, length). Raises ShapeError for another number of axes."""
    _check_rank(1, x)
    return avg_pool(x, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad)


#: function; PyTorch avg_pool2d; Burn avg_pool2d
def avg_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True):
    """`avg_pool` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    _check_rank(2, x)
    return avg_pool(x, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad)


#: function; PyTorch avg_pool3d
def avg_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True):
    """`avg_pool` of x (n, c, depth, height, width). Raises ShapeError for another number of axes."""
    _check_rank(3, x)
    return avg_pool(x, kernel_size, stride, padding, dilation, ceil_mode, count_include_pad)


#: function; PyTorch adaptive_avg_pool1d; Burn adaptive_avg_pool1d
def adaptive_avg_pool1d(x, output_size):
    """`adaptive_avg_pool` of x (n, c, length). Raises ShapeError for another number of axes."""
    _check_rank(1, x)
    return adaptive_avg_pool(x, output_size)


#: function; PyTorch adaptive_avg_pool2d; Burn adaptive_avg_pool2d
def adaptive_avg_pool2d(x, output_size):
    """`adaptive_avg_pool` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    _check_rank(2, x)
    return adaptive_avg_pool(x, output_size)


#: function; PyTorch adaptive_max_pool1d
def adaptive_max_pool1d(x, output_size):
    """`adaptive_max_pool` of x (n, c, length). Raises ShapeError for another number of axes."""
    _check_rank(1, x)
    return adaptive_max_pool(x, output_size)


#: function; PyTorch adaptive_max_pool2d
def adaptive_max_pool2d(x, output_size):
    """`adaptive_max_pool` of x (n, c, height, width). Raises ShapeError for another number of axes."""
    _check_rank(2, x)
    return adaptive_max_pool(x, output_size)
