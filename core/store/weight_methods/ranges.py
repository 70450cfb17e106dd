"""The grids of integers that hold what the layers of a model take over samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...host.quantization.calibration import OF_EXTREMES, Observed, grid_of, range_of
from .recording import Sample, watched

Grid = tuple[float, int]


def grids(
    module: Any, layers: Mapping[str, Any], samples: Sequence[Sample], method: str, percentile: float,
    tell: Callable[[str], None],
) -> tuple[dict[str, Grid], list[str]]:  # fmt: skip
    """(layer -> (scale, zero point) of the uint8 that its inputs become; the layers with inputs that are NaN or
    infinite, which have none) of these layers of a module. A layer that no sample reaches has none. method,
    percentile: how a range is chosen (host/quantization/calibration.py)."""
    seen: dict[str, Observed] = {}
    infinite: set[str] = set()

    def see(name: str, layer: Any, x: Any, _: Any) -> None:
        scale = getattr(layer.weight, "input_scale", None)
        x = np.asarray(x if scale is None else x * scale.val().astype(x.dtype))
        if x.dtype.kind not in "fV":  # V: bfloat16
            return
        x = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        if not np.isfinite(x).all():
            infinite.add(name)
        else:
            seen.setdefault(name, Observed(len(samples), method not in OF_EXTREMES)).add(x)

    with watched(layers, see):
        for k, sample in enumerate(samples):
            tell(f"calibrating: {k + 1} of {len(samples)}")
            module(*sample)
    found = {}
    for name, one in seen.items():
        if one.average is not None and name not in infinite:
            scale, zero = grid_of(*range_of(one, method, percentile))
            if np.float32(scale) > 0:  # else the inputs are smaller than float32 has steps for
                found[name] = float(str(np.float32(scale))), zero  # as a module's source says it
    return found, sorted(infinite)
