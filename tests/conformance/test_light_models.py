"""ONNX's light models: whole architectures, each weight one constant, against the outputs that ship with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet import asarray
from emberlet import functional as F
from emberlet.codegen import load

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = {path.stem.removeprefix("light_"): path for path in sorted(FOLDER.glob("light_*.onnx"))}


def test_there_are_nine() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("name", MODELS)
def test_light_model_gives_the_output_that_ships_with_it(name: str) -> None:
    graph = onnx.load(MODELS[name]).graph
    held = {t.name for t in graph.initializer}
    (given,) = (i for i in graph.input if i.name not in held)
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
    # The input that onnx.backend.test.runner uses.
    image = (np.arange(math.prod(shape)).reshape(shape) / math.prod(shape)).astype(np.float32)
    expected = onnx.TensorProto()
    expected.ParseFromString((FOLDER / f"light_{name}_output_0.pb").read_bytes())
    wanted = onnx.numpy_helper.to_array(expected)

    def run(model: onnx.ModelProto) -> np.ndarray:
        return np.asarray(load(model, backend="numpy")(asarray(image, backend="numpy")))

    model = onnx.load(MODELS[name])
    found = run(model)
    # Their weights are equal, and so are their logits, 9.5e9 in squeezenet, where the neighbors of a float32 are 1024
    # apart. If a BLAS rounds one of them differently, that class gets the whole softmax, so equal logits take their
    # place there.
    if model.graph.node[-1].op_type == "Softmax" and not np.allclose(found, wanted, rtol=1e-3, atol=1e-7):
        last = model.graph.node.pop()
        model.graph.output[0].name = last.input[0]
        logits = run(model)
        np.testing.assert_allclose(logits, logits.flat[0], rtol=1e-4)  # sums of thousands of equal numbers
        same = asarray(np.full_like(logits, logits.flat[0]), backend="numpy")
        found = np.asarray(F.softmax(same, axis=1))
    # The tolerance that the runner uses for them.
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-7)
