"""The bias of a convolution as a last column of its weights, against a row of 1: adding it costs no pass of its own.

Where products are large, OpenBLAS's kernels for AVX-512 give the same bits as a sum behind the product within the
limits below; others may round the last addition in another order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dtypes import float32
from ..storage import Array
from .of_integers import OfIntegers
from .tracing import Call, Value

if TYPE_CHECKING:
    from .steps import Writer

LARGE = 1 << 20  # minimum multiplications: smaller products use other kernels, which add in another order
LONGEST = 384  # maximum terms of a sum: longer sums are added in parts
KEPT = 1 << 16  # maximum bytes of columns whose row of 1 is written once, since nothing else has their memory
COPIED = 1 << 18  # maximum bytes of weights that are copied to save a call


def in_product(call: Call) -> bool:
    """Whether to make a convolution's bias a column of its weights. This copies the weights, so they must be constant
    and smaller than the result."""
    if call.op != "conv" or call.keywords:
        return False
    x, weight, bias, *_, groups = call.args
    if bias is None or groups != 1 or any(type(p) is Value for p in (weight, bias)):
        return False
    if x.dtype is not float32 or bias.dtype is not float32:
        return False
    rows, count = math.prod(weight.shape[1:]), math.prod(call.results[0].shape[2:])
    if max(weight.shape[2:]) > 1 and 0 < rows * count * x.shape[0] and weight.size <= COPIED // 4:
        if isinstance(call.method, OfIntegers) or rows * count * x.shape[0] < KEPT // 4:
            return True  # a call of NumPy takes longer than this addition
    return 0 < rows <= min(count, LONGEST) and weight.shape[0] * rows * count >= LARGE


def on_row(call: Call, value: Value) -> bool:
    """Whether a linear layer multiplies the one row `value` with few constant weights, so that a 1 may follow it."""
    if call.op != "linear" or call.keywords or call.args[0] is not value:
        return False
    _, weight, bias = call.args
    if bias is None or any(type(p) is Value for p in (weight, bias)) or len(weight.shape) != 2:
        return False
    alike = value.dtype is weight.dtype is bias.dtype and value.dtype.name in ("float32", "float64")
    return alike and math.prod(value.shape) == weight.shape[0] > 0 and 0 < weight.size <= COPIED // 4


def with_ones(w: Writer, shape: tuple[int, int], taps: int, axis: int, dtype: np.dtype[Any]) -> Array:
    """A matrix for columns, with 1 behind the first `taps` along an axis."""
    if taps == shape[axis]:
        return w.scratch(shape, dtype)
    if math.prod(shape) * dtype.itemsize <= KEPT:
        return w.buffers.new(shape, dtype, 1, ("columns", axis))
    out = w.scratch(shape, dtype)
    w.copy(np.ones((), dtype), out[taps:] if axis == 0 else out[:, taps:])
    return out


def on_image(call: Call, value: Value) -> bool:
    """Whether the columns are the image `value` itself, so that the row of ones must follow its channels in memory."""
    if not in_product(call) or call.args[0] is not value:
        return False
    _, weight, _, stride, padding, _, _ = call.args
    return max(weight.shape[2:]) == 1 and max(stride) == 1 and not any(low or high for low, high in padding)
