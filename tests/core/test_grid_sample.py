"""grid_sample in every mode against onnxruntime, for random images and grids that reach far outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from support.backends import array, tensor
from support.onnxruntime_node import run_node
from support.rows import every


@pytest.mark.parametrize("corners", [0, 1])
@every("padding", ["zeros", "border", "reflection"])
@every("mode", ["linear", "nearest", "cubic"])
def test_grid_sample_is_onnxruntimes(backend: Any, mode: str, padding: str, corners: int) -> None:
    draw = np.random.default_rng(len(mode + padding) + corners)
    for _ in range(3):
        height, width = draw.integers(2, 7, 2)
        x = draw.normal(size=(2, 2, height, width)).astype(np.float32)
        grid = draw.uniform(-2.5, 2.5, (2, 4, 5, 2)).astype(np.float32)
        found = array(F.grid_sample(tensor(x), tensor(grid), mode, padding, bool(corners)))
        options = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        expected = run_node("GridSample", [x, grid], opset=20, **options)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
