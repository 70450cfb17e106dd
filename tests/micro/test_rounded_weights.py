"""The note on weights that a quantized model has finer than 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from emberlet.micro.builder.graph import Graph, Grid
from emberlet.micro.builder.kernels.dot import DotFloat
from emberlet.micro.builder.kernels.layer import Layer
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.agreement import rounded_weights

Array = np.ndarray[Any, Any]
EXACT = np.array([[127.0, -5.0, 64.0], [127.0, 0.0, 1.0]])
WORDS = Grid(1e-4, 1 << 15, 16)


def off(by: float) -> Array:
    """Weights of which one is off from a step of 1 by a fraction of the largest."""
    weights = EXACT.copy()
    weights[1, 2] += by * 127
    return weights


def dense(name: str, weights: Array) -> Layer:
    return DotFloat(name, ("x",), name, (3,), Window((1, 1)), 1, weights.reshape(2, 1, 1, 3), np.zeros(2))


def notes(*layers: Layer, **more: Any) -> tuple[str, ...]:
    names = tuple(layer.output for layer in layers)
    return rounded_weights(
        Graph("m", layers, dict.fromkeys(("x", *names), (3,)), ("x",), names, grids={"x": WORDS}, **more)
    )


def test_weights_that_the_model_quantized_are_as_they_are() -> None:
    finer = off(1e-3)
    (said,) = notes(dense("a", finer), dense("b", finer), weight_scales={"a": np.ones(2)})
    assert "weights of b are" in said


def test_five_layers_are_named() -> None:
    layers = [dense(f"layer {k}", off(1e-3)) for k in range(7)]
    assert "layer 0, layer 1, layer 2, layer 3, layer 4 and 2 more are" in notes(*layers)[0]
    assert "layer 0, layer 1, layer 2, layer 3, layer 4 are" in notes(*layers[:5])[0]
