"""onnxruntime with integer products that are added exactly, on processors where it does not do so by itself.

On x86-64 without VNNI, onnxruntime adds pairs of products of uint8 and int8 in 16 bits, which saturate. It adds those
of two uint8 exactly everywhere. So `use` lets its sessions read weights of int8 as uint8, they and their zero points
128 more: the same numbers.
https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html#when-and-why-do-i-need-to-try-u8u8
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

# for each operator: the places of the weight and of its zero point among the inputs
PLACES = {
    "ConvInteger": (1, 3),
    "DequantizeLinear": (0, 2),
    "MatMulInteger": (1, 3),
    "QGemm": (3, 5),
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
}


def use() -> None:
    """Sessions of onnxruntime in this process add exactly."""
    flags = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not flags.exists() or "vnni" in flags.read_text("ascii", "replace"):
        return
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return

    class InferenceSession(onnxruntime.InferenceSession):
        def __init__(self, model: Any, *args: Any, **options: Any) -> None:
            super().__init__(exact(model), *args, **options)

    onnxruntime.InferenceSession = InferenceSession


def exact(source: Any) -> Any:
    """A path or the bytes of a model, as they are, or the bytes of one whose int8 weights are uint8."""
    import onnx

    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    try:
        model = onnx.load(path, load_external_data=False) if path else onnx.load_from_string(source)
    except Exception:  # not a model: onnxruntime says so
        return source
    if not any(True for _ in _weights(model.graph, {})):
        return source
    if path:
        model = onnx.load(path)
    for graph, node, constants in list(_weights(model.graph, {})):
        weight, zero = PLACES[node.op_type]
        node.input.extend([""] * (zero + 1 - len(node.input)))
        values = onnx.numpy_helper.to_array(constants[node.input[weight]])
        if node.input[zero]:
            zeros = onnx.numpy_helper.to_array(constants[node.input[zero]])
        else:  # DequantizeLinear has one for each scale, the others one in all
            scales = constants.get(node.input[1])
            zeros = np.zeros(scales.dims if scales and node.op_type == "DequantizeLinear" else (), np.int8)
        for place, x in ((weight, values), (zero, zeros)):
            node.input[place] = name = f"{node.output[0]}/uint8/{place}"
            moved = (x.astype(np.int16) + 128).astype(np.uint8)
            graph.initializer.append(onnx.numpy_helper.from_array(moved, name))
    return model.SerializeToString()


def _weights(graph: Any, outer: dict[str, Any]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """(graph, node, the constants that it may name) of each node with a weight of int8."""
    import onnx

    constants = outer | {x.name: x for x in graph.initializer}
    for node in graph.node:
        weight, _ = PLACES.get(node.op_type, (0, 0))
        held = constants.get(node.input[weight]) if node.op_type in PLACES else None
        other = constants.get(node.input[2]) if weight == 3 else None  # it has no products of int8 and uint8
        signed = [x is not None and x.data_type == onnx.TensorProto.INT8 for x in (held, other)]
        if signed == [True, False]:
            yield graph, node, constants
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _weights(attribute.g, constants)
