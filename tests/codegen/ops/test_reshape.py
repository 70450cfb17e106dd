"""Reshape accepts what NumPy accepts after zeros are replaced by the input's sizes, and refuses the rest with the
node's name."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import ModelError
from onnx import numpy_helper
from support.onnx_models import parse


def wanted_array(x: np.ndarray, shape: list[int], allow_zero: bool) -> np.ndarray | None:
    """Reshape's result according to ONNX's specification; None if it has none."""
    if shape.count(-1) > 1 or min(shape, default=0) < -1 or (allow_zero and {0, -1} <= {*shape}):
        return None
    if not allow_zero:
        if any(d == 0 and at >= x.ndim for at, d in enumerate(shape)):
            return None
        shape = [x.shape[at] if d == 0 else d for at, d in enumerate(shape)]
    try:
        return x.reshape(shape)
    except ValueError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_drawn_shapes(seed: int) -> None:
    draw = random.Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(40):
        x = np.arange(draw.choice([1, 4, 6, 12]), dtype=np.float32)
        x = x.reshape(draw.choice([(-1,), (1, -1), (-1, 1), (2, -1) if x.size % 2 == 0 else (-1,)]))
        shape = [draw.choice([-1, 0, 1, 2, 3, 6, -2]) for _ in range(draw.randint(0, 3))]
        if draw.random() < 0.6:  # one that fits
            shape = [x.shape[0] if draw.random() < 0.5 else 0, -1] + [1] * draw.randint(0, 1)
        allow_zero = draw.random() < 0.2
        text = f"y = Reshape<allowzero = {int(allow_zero)}>(x, s)"
        model = parse(f"g (float[{','.join(map(str, x.shape))}] x) => (float y) {{ {text} }}")
        model.graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), "s"))
        model.graph.output[0].type.tensor_type.ClearField("shape")
        wanted = wanted_array(x, shape, allow_zero)
        seen[wanted is None] += 1
        if wanted is None:
            with pytest.raises(ModelError, match="Reshape"):
                load(model, "numpy")
        else:
            np.testing.assert_array_equal(to_array(load(model, "numpy")(to_tensor(x, "numpy"))), wanted)
    assert min(seen.values()) > 5


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([-1, -1], r"the shape \(-1, -1\) has more than one -1"),
        ([-2, 4], r"the shape \(-2, 4\) has the dimension -2"),
        ([4, 0], r"the shape \(4, 0\) copies dimension 1 of an input of rank 1"),
        ([4, 1, 0], r"copies dimension 2 of an input of rank 1"),
        ([3], r"an input of shape \(4,\) does not fit the shape \(3,\)"),
        ([3, -1], r"an input of shape \(4,\) does not fit the shape \(3, -1\)"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_in_words(shape: list[int], message: str) -> None:
    model = parse("g (float[4] x) => (float[4] y) { y = Reshape(x, s) }")
    model.graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), "s"))
    with pytest.raises(ModelError, match=message):
        load(model)
