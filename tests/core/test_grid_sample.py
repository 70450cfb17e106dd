"""grid_sample in every mode against onnxruntime, for random images and grids that reach far outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from emberlet import functional as F
from onnx import TensorProto, helper
from support.backends import array, tensor
from support.rows import every

Array = np.ndarray[Any, np.dtype[Any]]


def expected(x: Array, grid: Array, mode: str, padding: str, corners: int) -> Array:
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=corners)
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in (("x", x), ("grid", grid))]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", values, out)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: Array = session.run(None, {"x": x, "grid": grid})[0]
    return found


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
        np.testing.assert_allclose(found, expected(x, grid, mode, padding, corners), rtol=1e-4, atol=2e-5)
