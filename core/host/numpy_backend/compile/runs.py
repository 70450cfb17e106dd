"""Small convolutions of integers: the elements that a tap sees are one run of memory instead of many short lines.

What mixes the end of a line with the begin of the next one lies between the lines of the result, in gaps that nothing
reads. Sums of integers are the same in every order; those of floats are left as the model adds them.
"""

from __future__ import annotations

import numpy as np

from .bias import with_ones
from .of_integers import OfIntegers
from .steps import Writer
from .tracing import Call
from .windows import BLOCK

SHORT = 32  # elements of a line, at most: longer ones are copied as fast


def conv(w: Writer, call: Call) -> bool:
    """Write such a convolution; returns whether it is one."""
    x, weight, bias, stride, padding, dilation, groups = call.args
    value = call.results[0]
    (outputs, inputs, *kernel), spatial = weight.shape, value.shape[2:]
    users = w.users(value)
    if not isinstance(call.method, OfIntegers) or max(stride) > 1 or groups * x.shape[0] > 1 or max(kernel) == 1:
        return False
    if len(users) != 1 or users[0].op not in ("binary", "grid") or spatial[-1] > SHORT or len(spatial) == 1:
        return False
    image = w.with_border(x, padding, 0)
    steps = image.strides[2:]
    count = sum((n - 1) * step for n, step in zip(spatial, steps, strict=True)) // image.itemsize + 1
    rows, width = weight.size // outputs, spatial[0] * steps[0] // image.itemsize
    if not image.flags.c_contiguous or rows * width > BLOCK:
        return False
    matrix = w.contiguous(w.array(weight)).reshape(outputs, rows)
    if bias is not None:
        matrix = np.concatenate([matrix, w.array(bias).reshape(outputs, 1)], -1)
    between = [b * d for b, d in zip(steps, dilation, strict=True)]
    taps = np.lib.stride_tricks.as_strided(
        image, (inputs, *kernel, count), (image.strides[1], *between, image.itemsize), writeable=False
    )
    columns = with_ones(w, (matrix.shape[1], width), rows, 0, image.dtype)
    w.copy(taps, columns[:rows].reshape(*taps.shape[:-1], width)[..., :count])
    sums = w.scratch((outputs, width), image.dtype)
    w.emit(np.matmul, matrix, columns, sums, writes=(sums,))
    w.put(value, w.between_gaps(sums.reshape(1, outputs, spatial[0], *image.shape[3:]), value.shape))
    return True
