"""The bias of a convolution as a last column of its weights, against a row of 1: adding it costs no pass of its own.

OpenBLAS's kernels for AVX-512 give the same bits as a sum behind the product within the limits below; others may round
the last addition in another order.
"""

from __future__ import annotations

import math

from ....dtypes import float32
from .tracing import Call, Value

LARGE = 1 << 20  # multiplications of a product; a smaller one takes other kernels, which add in another order
LONGEST = 384  # terms of a sum; longer ones are added in parts


def in_product(call: Call) -> bool:
    """Whether a convolution's bias is worth a column of its weights, which are copied for it: they are fixed, and
    smaller than what is computed with them."""
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
    """Whether the columns are the image itself, `value`, so that the row of 1 has to stand behind its channels."""
    if not in_product(call) or call.args[0] is not value:
        return False
    _, weight, _, stride, padding, _, _ = call.args
    return max(weight.shape[2:]) == 1 and max(stride) == 1 and not any(low or high for low, high in padding)
