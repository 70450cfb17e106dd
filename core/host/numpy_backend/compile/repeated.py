"""Constants as they broadcast over the results of elementwise steps: NumPy takes longer for many short rows than for
one. Over a large result they are as long as a block (blocks.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..storage import Array
from .memory import Buffers

REPEATED = 1 << 15  # maximum bytes of a constant that is repeated
SHORT, FAR = 32, 1 << 18  # of a row of at most as many elements, which takes NumPy three times as long


def repeated(x: Any, out: Array, numbers: bool, buffers: Buffers) -> Any:
    """An operand of a step that computes `out`, repeated if it is a constant; numbers: if it is a single number, too,
    over a large result along its last axes."""
    if numbers and isinstance(x, np.generic):
        x = np.asarray(x)
    if not isinstance(x, np.ndarray) or x.size < 2 - numbers or x.shape == out.shape or buffers.of(x) is not None:
        return x
    if out.size * x.itemsize > (FAR if 1 < x.size == x.shape[-1] <= SHORT else REPEATED):
        return x if x.size > 1 else np.full(_last_axes(out), x.reshape(()), x.dtype)
    return np.broadcast_to(x, out.shape).copy() if out.flags.c_contiguous else x


def _last_axes(out: Array) -> tuple[int, ...]:
    """The lengths of as many axes of a result as a constant may have."""
    axis = out.ndim
    while axis and math.prod(out.shape[axis - 1 :]) * out.itemsize <= REPEATED:
        axis -= 1
    return out.shape[axis:]
