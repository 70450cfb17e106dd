"""Networks whose weights were drawn name one class for all images: their scores differ far more than an image changes
them. With these weights of the last product, all classes occur, so that agreement means something.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper


def varied(model: onnx.ModelProto, images: NDArray[Any]) -> onnx.ModelProto:
    """A copy of a model whose last Gemm computes its scores, with a mean of 0 and a deviation of 1 of each score over
    these images (count, channels, height, width)."""
    import onnxruntime

    found = onnx.ModelProto()
    found.CopyFrom(model)
    last = next(node for node in reversed(found.graph.node) if node.op_type == "Gemm")
    seen = onnx.ModelProto()
    seen.CopyFrom(model)
    if last.output[0] not in [o.name for o in seen.graph.output]:
        seen.graph.output.append(onnx.ValueInfoProto(name=last.output[0]))
    session = onnxruntime.InferenceSession(seen.SerializeToString(), providers=["CPUExecutionProvider"])
    scores = session.run([last.output[0]], {session.get_inputs()[0].name: images})[0].astype(np.float64)
    mean, deviation = scores.mean(0), scores.std(0)
    weights = {t.name: t for t in found.graph.initializer}
    weight, bias = (weights[name] for name in last.input[1:3])
    turned = any(a.name == "transB" and a.i for a in last.attribute)
    scaled = numpy_helper.to_array(weight) / (deviation[:, None] if turned else deviation)
    shifted = (numpy_helper.to_array(bias) - mean) / deviation
    for tensor, values in ((weight, scaled), (bias, shifted)):
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32), tensor.name))
    return found
