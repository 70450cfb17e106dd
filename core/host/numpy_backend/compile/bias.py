"""The bias of a convolution as a last column of its weights, against a row of 1: adding it costs no pass of its own.

OpenBLAS's kernels for AVX-512 give the same bits as a sum behind the product within the limits below; others may round
the last addition in another order.
"""

from __future__ import annotations

import math

from ....dtypes import float32
from .tracing import Call, Value

LARGE = 1 << 20  # minimum multiplications: smaller products use other kernels, which add in another order
LONGEST = 384  # maximum terms of a sum: longer sums are added in parts


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
    return 0 < rows <= min(count, LONGEST) and weight.shape[0] * rows * count >= LARGE


def on_image(call: Call, value: Value) -> bool:
    """Whether the columns are the image `value` itself, so that the row of ones must follow its channels in memory."""
    if not in_product(call) or call.args[0] is not value:
        return False
    _, weight, _, stride, padding, _, _ = call.args
    return max(weight.shape[2:]) == 1 and max(stride) == 1 and not any(low or high for low, high in padding)
