"""Cases whose results are random: checks that hold for any draw.

Bernoulli, and Dropout in training mode (whose cases expect the stream of numpy.random.RandomState, which ONNX does not
specify): shape and dtype are checked as usual; this file checks the values, their distribution (within five standard
deviations), and that a seed fixes the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, np.dtype[Any]]


def is_drawn(name: str) -> bool:
    """Whether the case's values are random."""
    return name.startswith("test_bernoulli") or (name.startswith("test_training_dropout") and "zero_ratio" not in name)


def check(case: Any, inputs: Sequence[Array], results: Sequence[Array], again: Callable[[], Sequence[Array]]) -> None:
    """Raise AssertionError unless `results` have the distribution that the case describes."""
    if case.name.startswith("test_bernoulli"):
        _bernoulli(inputs[0], results[0])
    else:
        ratio = float(inputs[1]) if len(inputs) > 1 and np.size(inputs[1]) else 0.5
        _dropout(inputs[0], ratio, *results)
    if _seeded(case.model):
        for first, second in zip(results, again(), strict=True):
            np.testing.assert_array_equal(first, second)


def _seeded(model: onnx.ModelProto) -> bool:
    return any(a.name == "seed" for node in model.graph.node for a in node.attribute)


def _bernoulli(p: Array, drawn: Array) -> None:
    assert set(np.unique(drawn)) <= {0, 1}
    spread = sqrt(float((p * (1 - p)).sum())) + 1e-9
    assert abs(float(drawn.sum() - p.sum())) <= 5 * spread + 1


def _dropout(x: Array, ratio: float, y: Array, mask: Array | None = None) -> None:
    kept = y != 0
    np.testing.assert_allclose(y[kept], x[kept] / (1 - ratio), rtol=1e-5)
    if mask is not None:
        np.testing.assert_array_equal(mask.astype(bool), kept)
    assert abs(kept.sum() - x.size * (1 - ratio)) <= 5 * sqrt(x.size * ratio * (1 - ratio)) + 1
