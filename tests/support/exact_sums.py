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
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# for each operator: the places of its weights and of their zero points among the inputs
PLACES = {
    "ConvInteger": [(1, 3)],
    "DequantizeLinear": [(0, 2)],
    "DynamicQuantizeLSTM": [(1, 9), (2, 11)],
    "DynamicQuantizeMatMul": [(1, 3)],
    "MatMulInteger": [(1, 3)],
    "MatMulIntegerToFloat": [(1, 5)],
    "QAttention": [(1, 7)],
    "QGemm": [(3, 5)],
    "QLinearConv": [(3, 5)],
    "QLinearMatMul": [(3, 5)],
}


def use() -> None:
    """Sessions of onnxruntime in this process add exactly."""
    if not saturates():
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


@cache
def saturates() -> bool:
    """Whether onnxruntime's sums of uint8 times int8 saturate here."""
    flags = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and flags.exists() and "vnni" not in flags.read_text("ascii", "replace")


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
    cast = []
    for graph, node, held, weight, zero in list(_weights(model.graph, {})):
        node.input.extend([""] * (zero + 1 - len(node.input)))
        if not node.input[zero]:  # DequantizeLinear has one for each scale, the others one in all
            scales: Any = held.get(node.input[1]) if node.op_type == "DequantizeLinear" else None
            shape = getattr(scales, "dims", ())
            node.input[zero] = f"{node.output[0]}/{zero}"
            held[node.input[zero]] = onnx.numpy_helper.from_array(np.zeros(shape, np.int8))
        for place in (weight, zero):
            x, given = held[node.input[place]], node.input[place]
            node.input[place] = name = f"{node.output[0]}/uint8/{place}"
            if isinstance(x, onnx.TensorProto):
                moved = (onnx.numpy_helper.to_array(x).astype(np.int16) + 128).astype(np.uint8)
                graph.initializer.append(onnx.numpy_helper.from_array(moved, name))
            else:  # an input of the graph
                middle = onnx.numpy_helper.from_array(np.array(128, np.int32), name + "/128")
                graph.initializer.append(middle)
                cast += [
                    onnx.helper.make_node("Cast", [given], [name + "/wide"], to=onnx.TensorProto.INT32),
                    onnx.helper.make_node("Add", [name + "/wide", middle.name], [name + "/moved"]),
                    onnx.helper.make_node("Cast", [name + "/moved"], [name], to=onnx.TensorProto.UINT8),
                ]
    nodes = [*cast, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def _weights(graph: Any, outer: dict[str, Any]) -> Iterator[tuple[Any, Any, dict[str, Any], int, int]]:
    """(graph, node, the constants and inputs that it may name, the places of weight and zero point) of each weight of
    int8."""
    import onnx

    types = {x.name: x.type.tensor_type.elem_type for x in graph.input}
    held = outer | {x.name: x for x in (*graph.input, *graph.initializer)}
    types |= {name: x.data_type for name, x in held.items() if isinstance(x, onnx.TensorProto)}
    for node in graph.node:
        for weight, zero in PLACES.get(node.op_type, ()):
            if len(node.input) <= weight or types.get(node.input[weight]) != onnx.TensorProto.INT8:
                continue
            point = node.input[zero] if len(node.input) > zero else ""
            if point and types.get(point) != onnx.TensorProto.INT8:  # onnxruntime says what it thinks of that
                continue
            if weight != 3 or types.get(node.input[2]) != onnx.TensorProto.INT8:  # it has none of int8 and uint8
                yield graph, node, held, weight, zero
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _weights(attribute.g, held)
