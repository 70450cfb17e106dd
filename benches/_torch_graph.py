"""Computes an ONNX graph with torch, operator by operator. It has the operators of the benchmark's models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch  # type: ignore[import-not-found]
from torch.nn import functional as F  # type: ignore[import-not-found]


def _pads(x: Any, attributes: dict[str, Any], fill: float) -> Any:
    """x padded as ONNX specifies, for operators whose torch counterpart pads both sides equally."""
    pads = attributes.get("pads", [0, 0, 0, 0])
    if not any(pads):
        return x
    top, left, bottom, right = pads
    return F.pad(x, (left, right, top, bottom), value=fill)


def _conv(a: dict[str, Any], x: Any, w: Any, b: Any = None) -> Any:
    return F.conv2d(_pads(x, a, 0.0), w, b, a.get("strides", 1), 0, a.get("dilations", 1), a.get("group", 1))


def _reshape(a: dict[str, Any], x: Any, shape: Any) -> Any:
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape.tolist())])


def _gemm(a: dict[str, Any], x: Any, w: Any, b: Any) -> Any:
    return torch.addmm(b, x, w.T if a.get("transB") else w)


def _softmax(opset: int) -> Any:
    def old(a: dict[str, Any], x: Any) -> Any:  # before opset 13: over everything from the axis on
        flat = x.reshape(int(np.prod(x.shape[: a.get("axis", 1)])), -1)
        return F.softmax(flat, -1).reshape(x.shape)

    return old if opset < 13 else lambda a, x: F.softmax(x, a.get("axis", -1))


_OPERATORS: dict[str, Any] = {
    "Add": lambda a, x, y: x + y,
    "AveragePool": lambda a, x: F.avg_pool2d(_pads(x, a, 0.0), a["kernel_shape"], a.get("strides", 1)),
    "BatchNormalization": lambda a, x, s, b, m, v: F.batch_norm(x, m, v, s, b, eps=a.get("epsilon", 1e-5)),
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Conv": _conv,
    "Dropout": lambda a, x, *_: x,
    "Erf": lambda a, x: torch.erf(x),
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[: a.get("axis", 1)])), -1),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "LayerNormalization": lambda a, x, s, b: F.layer_norm(x, s.shape, s, b, a.get("epsilon", 1e-5)),
    "LogSoftmax": lambda a, x: F.log_softmax(x, a.get("axis", 1)),
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": lambda a, x: F.max_pool2d(_pads(x, a, -torch.inf), a["kernel_shape"], a.get("strides", 1)),
    "Mul": lambda a, x, y: x * y,
    "Relu": lambda a, x: F.relu(x),
    "Reshape": _reshape,
    "Sum": lambda a, *xs: sum(xs[1:], xs[0]),
    "Transpose": lambda a, x: x.permute(a["perm"]),
}


class Graph:
    """The first result of an ONNX file's graph, for its one input. Shapes stay on the host."""

    def __init__(self, path: str, device: str) -> None:
        model = onnx.load(path)
        graph = model.graph
        self.values = {}
        for t in graph.initializer:
            value = torch.from_numpy(onnx.numpy_helper.to_array(t).copy())
            self.values[t.name] = value if value.dtype == torch.int64 else value.to(device)
        self.input = next(i.name for i in graph.input if i.name not in self.values)
        self.output = graph.output[0].name
        operators = {**_OPERATORS, "Softmax": _softmax(model.opset_import[0].version)}
        self.steps = [
            (
                operators[n.op_type],
                {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute},
                list(n.input),
                n.output[0],
            )
            for n in graph.node
        ]

    def __call__(self, x: Any) -> Any:
        values = dict(self.values)
        values[self.input] = x
        for function, attributes, inputs, output in self.steps:
            values[output] = function(attributes, *[values[i] for i in inputs])
        return values[self.output]
