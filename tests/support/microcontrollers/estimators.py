"""Estimators of scikit-learn in int8: data sets in halves, and what a build answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet.micro.builder.build import BuildResult
from emberlet.micro.builder.quantization.indices import stored
from emberlet.micro.builder.quantization.reference import dequantize
from skl2onnx import to_onnx

Array = npt.NDArray[Any]


def halves(load: Callable[..., tuple[Array, Array]], **options: Any) -> tuple[Array, Array, Array, Array]:
    """Rows to train on and to calibrate with, others to score, and their targets."""
    x, y = load(return_X_y=True, **options)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    return x[::2], x[1::2], y[::2], y[1::2]


def converted(estimator: Any, x: Array) -> bytes:
    """Its ONNX file, the scores in an array."""
    with suppress(NameError):  # some converters have no such option
        return bytes(to_onnx(estimator, x[:1], options={"zipmap": False}).SerializeToString())
    return bytes(to_onnx(estimator, x[:1]).SerializeToString())


def numbers_of(result: BuildResult, row: Array, name: str) -> Array:
    """An output of the int8 graph, as numbers."""
    graph = result.graph
    x = graph.columns["X"].of(row) if "X" in graph.columns else row
    y = graph.run({"X": stored(graph, "X", x)})[name]
    return dequantize(y, graph.grids[name].scale, graph.grids[name].zero).reshape(-1)


def classes_of(result: BuildResult, rows: Array) -> Array:
    """The labels of the classes that a build decides for."""
    graph = result.graph
    port = next(p for p in result.program.outputs if p.labels)
    found = [numbers_of(result, row, graph.decides or port.name) for row in rows]
    return np.array([port.labels[round(float(v[0])) if graph.decides else int(v.argmax())] for v in found])
