"""Models with activations of 16 bits: onnxruntime's answers, and those of the layers' references."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from emberlet.micro.builder.build import BuildResult
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.indices import numbers, stored

from .onnx_models import Array


def as_written(model: onnx.ModelProto, x: Array) -> Array:
    """onnxruntime's output without its fusions, which would omit roundings to 16 bits."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0]).reshape(-1)


def inferred(built: BuildResult, x: Array) -> Array:
    """The model's numbers for an input in the shape of the ONNX model."""
    source, target = built.graph.inputs[0], built.graph.outputs[0]
    laid = check_samples({source: x[None]}, built.graph)[source][0]
    return numbers(built.graph, target, built.graph.run({source: stored(built.graph, source, laid)})[target])
