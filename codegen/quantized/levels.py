"""The weights of products as integers of 8 bits with a scale for each output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Levels(NamedTuple):
    """A weight whose integers were chosen: levels, int8 (outputs, weights of each), and scales, float32 (outputs,)."""

    levels: Any
    scales: Any

    @staticmethod
    def of(values: Any, scale: Any) -> Levels:
        """Those of a QuantizedWeight with a scale for each output: values uint8 (outputs, 1, weights of each)."""
        rows = np.asarray(values).reshape(len(values), -1).astype(np.int16) - 128
        return Levels(rows.astype(np.int8), np.asarray(scale, np.float32).reshape(-1))


def levels_of(
    w: Any, axis: int, chosen: Levels | None = None, coarser: Callable[[Any, Any], Any] | None = None
) -> tuple[Any, Any]:
    """(int8 levels in the shape of a weight, a float32 scale for each slice along the axis of outputs): those chosen,
    or the nearest, the largest of which is 127 unless `coarser` gives larger scales for (rows of weights, scales)."""
    if chosen is not None:
        others = [n for i, n in enumerate(w.shape) if i != axis]
        return np.moveaxis(chosen.levels.reshape(-1, *others), 0, axis), chosen.scales
    w = np.asarray(w, np.float64)
    scales = np.abs(w).max(tuple(i for i in range(w.ndim) if i != axis), initial=0) / 127
    scales = np.where(scales > 0, scales, 1.0).astype(np.float32)
    if coarser is not None:
        scales = coarser(np.moveaxis(w, axis, 0).reshape(len(scales), -1), scales)
    spread = scales.astype(np.float64).reshape([-1 if i == axis else 1 for i in range(w.ndim)])
    return np.clip(np.rint(w / spread), -127, 127).astype(np.int8), scales
