"""Which images of a plan lie with their channels last in memory, and the arrays that do.

NumPy's own layout has one image of each channel behind the other. OpenBLAS multiplies a convolution's columns faster
the other way around, where all channels of a position lie side by side: by 5 to 25 % for the shapes of ResNet-50, most
where an image is small. Columns are then copied in longer runs, and pooling combines whole rows: where lines are short,
that is most of a network's time. Axes keep their order (n, c, *spatial): what lies so is a view of an array
(n, *spatial, c).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ....dtypes import float32
from ..storage import Array
from .tracing import Call, Value

LARGE = 1 << 26  # multiplications of all convolutions: below, a plan is quicker as the model has it, unless
SMALL = 64  # most positions of an image, where all are small

_ELEMENTWISE = ("unary", "binary", "relu", "clip", "sigmoid", "batch_norm", "pad", "slice", "grid", "from_levels",
                "level_table")  # fmt: skip


def channels_last(calls: Iterable[Call]) -> set[Value]:
    """The Values that are computed with their channels last: results of convolutions, and what is made of them.

    None in a model of few multiplications with larger images than SMALL, or of many over other than two axes, or with
    a grouped convolution.
    """
    calls = list(calls)
    convolutions = [c for c in calls if c.op == "conv"]
    if not convolutions or not all(map(_fits, convolutions)):
        return set()
    small = all(math.prod(c.results[0].shape[2:]) <= SMALL for c in convolutions)
    if not small and (
        sum(map(_products, convolutions)) < LARGE or any(len(c.args[0].shape) != 4 for c in convolutions)
    ):
        return set()
    ranks = {len(c.args[0].shape) for c in convolutions}
    found: set[Value] = set()
    for call in calls:
        value = call.results[0] if call.results else None
        if value is None or len(value.shape) not in ranks or call.keywords:
            continue
        operands = list(call.operands())
        if call.op == "conv":
            last = True
        elif call.op == "concat":
            last = call.args[1] == 1 and len(operands) == len(call.args[0]) and found.issuperset(operands)
        elif call.op == "pool":
            last = found.issuperset(operands)
        else:
            same = call.op in ("pad", "slice") or any(v in found and v.shape == value.shape for v in operands)
            last = call.op in _ELEMENTWISE and same and not found.isdisjoint(operands)
        if call.op == "range_levels" and found.issuperset(operands):
            found.update((value, *call.results[3:]))  # levels, and the floats that equal them
        if last:
            found.add(value)
    return found


def _fits(call: Call) -> bool:
    x, weight, bias, *_, groups = call.args
    given = [x, weight] if bias is None else [x, weight, bias]
    return (
        groups == 1
        and len(x.shape) > 2
        and not call.keywords
        and type(weight) is not Value
        and all(v.dtype is float32 and math.prod(v.shape) for v in given)
        and bool(math.prod(call.results[0].shape))
    )


def _products(call: Call) -> int:
    return math.prod(call.args[1].shape) * math.prod(call.results[0].shape[2:]) * call.args[0].shape[0]


def is_last(array: Array) -> bool:
    """Whether the channels of (n, c, *spatial) lie nearer to one another than a line's elements."""
    return array.ndim > 2 and array.shape[1] > 1 and array.strides[1] < min(array.strides[2:])


def gapless(array: Array) -> bool:
    """Whether the elements of an array are one run of memory, with its channels last or not."""
    return array.flags.c_contiguous or (is_last(array) and to_last(array).flags.c_contiguous)


def to_last(array: Array) -> Array:
    """A view (n, *spatial, c)."""
    return array.transpose(0, *range(2, array.ndim), 1)


def from_last(array: Array) -> Array:
    """A view (n, c, *spatial) of an array (n, *spatial, c)."""
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def in_order(array: Array, rank: int) -> Array:
    """An operand of an elementwise step as a view whose axes are in the order of memory of a result with channels last.
    rank: that of the result."""
    if array.ndim == 0:
        return array
    return to_last(np.reshape(array, (1,) * (rank - array.ndim) + array.shape))
