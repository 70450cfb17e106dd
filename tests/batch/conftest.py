"""Models and data for scoring data sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from support.onnx_models import parse
from support.ray_stand_in import ray_stand_in

__all__ = ["ray_stand_in"]

NETWORK = """
network (float[batch,1,28,28] image) => (float[batch,10] scores) {
    a = Conv<kernel_shape=[5,5], pads=[2,2,2,2]>(image, w1, b1)
    b = Relu(a)
    c = MaxPool<kernel_shape=[4,4], strides=[4,4]>(b)
    d = Flatten(c)
    scores = Gemm(d, w2, b2)
}"""


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small convolutional network for pictures of mnist's size."""
    random = np.random.default_rng(0)
    model = parse(NETWORK)
    for name, shape in {"w1": (8, 1, 5, 5), "b1": (8,), "w2": (392, 10), "b2": (10,)}.items():
        values = random.standard_normal(shape).astype(np.float32) / 20
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path = tmp_path_factory.mktemp("network") / "network.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a model in ONNX's notation to a file."""

    def write(text: str, **initializers: NDArray[Any]) -> Path:
        model = parse(text)
        for name, values in initializers.items():
            model.graph.initializer.append(numpy_helper.from_array(values, name))
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        return path

    return write
