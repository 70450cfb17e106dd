"""A small network of two branches that are joined, one of them pooled, as in SqueezeNet."""

from __future__ import annotations

import numpy as np
import onnx

from .onnx_models import parse

TEXT = """
net (float[1, 3, 8, 8] x) => (float[1, 6, 4, 4] y{more})
{{ a = Conv(x, w1, b1)
   b = Relu(a)
   left = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
   c = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]>(x, w2, b2)
   right = Clip(c, low, high)
   both = Concat<axis = 1>(left, right)
   y = Conv(both, w3, b3) }}
"""
SHAPES = {"w1": (4, 3, 1, 1), "b1": (4,), "w2": (5, 3, 3, 3), "b2": (5,), "w3": (6, 9, 1, 1), "b3": (6,)}


def joined_branches(more: str = "") -> onnx.ModelProto:
    """more: outputs of the model behind y."""
    model, draw = parse(TEXT.format(more=more)), np.random.default_rng(5)
    values = {name: draw.normal(size=shape) for name, shape in SHAPES.items()} | {"low": 0.0, "high": 4.0}
    values["w1"] = values["w1"] * 0.3  # the branches have other ranges
    for name, value in values.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.float32), name))
    return model
