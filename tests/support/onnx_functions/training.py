"""Optimizers' steps, for several tensors at once."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


def _each(c: Call, function: Any, states: int, *options: Any) -> list[Any]:
    """Inputs are rate, step, all parameters, all gradients, all of each state; outputs are grouped the same way."""
    rate, step, *rest = c.tensors()
    count = len(rest) // (2 + states)
    results = [function(rate, step, *(rest[i + count * j] for j in range(2 + states)), *options) for i in range(count)]
    return [result[j] for j in range(1 + states) for result in results]


@handles("Adagrad", "ai.onnx.preview.training.Adagrad")
def adagrad(c: Call) -> Any:
    return _each(c, F.adagrad, 1, c.get("norm_coefficient", 0.0), c.get("epsilon", 0.0), c.get("decay_factor", 0.0))


@handles("Adam", "ai.onnx.preview.training.Adam")
def adam(c: Call) -> Any:
    names = {"alpha": 0.9, "beta": 0.999, "norm_coefficient": 0.0, "norm_coefficient_post": 0.0, "epsilon": 1e-6}
    return _each(c, F.adam, 2, *(c.get(name, usual) for name, usual in names.items()))


@handles("Momentum", "ai.onnx.preview.training.Momentum")
def momentum(c: Call) -> Any:
    nesterov = c.get("mode") == "nesterov"
    return _each(c, F.momentum, 1, c.get("alpha"), c.get("beta"), c.get("norm_coefficient", 0.0), nesterov)
