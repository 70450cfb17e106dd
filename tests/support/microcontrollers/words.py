"""What a model answers: onnxruntime's numbers, and those of the references of a build's layers."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from emberlet.micro.builder.build import BuildResult
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.indices import numbers, stored
from emberlet.micro.builder.quantization.reference import dequantize

from .onnx_models import Array


def as_written(model: onnx.ModelProto, x: Array) -> Array:
    """onnxruntime's output without its fusions, which would omit roundings to 16 bits."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0]).reshape(-1)


def inferred(built: BuildResult, x: Array) -> Array:
    """The numbers of the first output for an input in the shape of the ONNX model."""
    graph = built.graph
    source, target = graph.inputs[0], graph.outputs[0]
    laid = check_samples({source: x[None]}, graph)[source][0]
    y = graph.run({source: laid if graph.is_float else stored(graph, source, laid)})[target].reshape(-1)
    if graph.is_float:
        return y
    if graph.grids[target].wide or target in graph.words:
        return numbers(graph, target, y)
    return dequantize(y, graph.grids[target].scale, graph.grids[target].zero)


def step_of(built: BuildResult) -> float:
    """That of the first output of an int8 build."""
    return built.graph.grids[built.graph.outputs[0]].scale
