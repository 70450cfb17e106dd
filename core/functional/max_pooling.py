"""Pooling: the largest, the mean or the p-norm of each window of x (n, c, *spatial).

kernel_size, stride, padding, dilation: an int for all spatial axes or one entry per axis (an entry of padding: an int
or a (low, high) pair). stride None means kernel_size. ceil_mode counts windows that start inside the input or its left
padding and reach beyond it.
"""

from ..errors import refuse
from .convolution import padding_pairs, per_axis
from .operands import numeric


def windows(x, kernel_size, stride, padding, dilation, ceil_mode):
    n = len(x.shape) - 2
    if n < 1:
        refuse("pool", x.shape)
    kernel = per_axis(kernel_size, n, "kernel_size")
    stride = kernel if stride is None else per_axis(stride, n, "stride")
    dilation = per_axis(dilation, n, "dilation")
    padding = padding_pairs(padding, n, kernel, dilation, stride, x)
    grown = []
    for i in range(n):
        low, high = padding[i]
        if low < 0 or high < 0:
            refuse("least", "padding", 0, padding)
        step, length = stride[i], x.shape[i + 2] + low
        room = length + high - dilation[i] * (kernel[i] - 1) - 1
        if room < 0 and not (ceil_mode and room > -step):
            refuse("kernel", "pool", kernel, x.shape, padding)
        if ceil_mode:
            count = -(-room // step)
            if count * step >= length:
                count -= 1
            high += max(0, count * step - room)
        grown.append((low, high))
    return kernel, stride, padding, dilation, tuple(grown)


#: function; ONNX MaxPool
def max_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest element of each window, ignoring padding."""
    x = numeric(x, "max_pool")
    kernel, stride, _, dilation, grown = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    return x.backend.pool("max", x, kernel, stride, grown, dilation)
