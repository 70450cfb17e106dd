"""Operators on quantized tensors drawn at random, each a model of one node whose inputs and output are bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .onnx_models import Array

Rng = np.random.Generator


class Node:
    """One node in the making. Inputs are added in its order; those of the model are `x`, `z`, …"""

    def __init__(self, rng: Rng, op: str, domain: str = "com.microsoft") -> None:
        self.rng, self.op, self.domain = rng, op, domain
        self.dtype = np.dtype(rng.choice(["uint8", "int8"]))
        self.names: list[str] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: dict[str, tuple[int, ...]] = {}
        self.attributes: dict[str, Any] = {}

    def constant(self, value: Any) -> None:
        self.names.append(f"c{len(self.names)}")
        self.constants.append(numpy_helper.from_array(np.asarray(value), self.names[-1]))

    def taken(self, *shape: int) -> None:
        """An input of the model."""
        self.names.append("xzv"[len(self.inputs)])
        self.inputs[self.names[-1]] = shape

    def grid(self, scale: float) -> None:
        """A scale about as large, so that hardly a number lies between two steps, and a zero point at random."""
        self.constant(np.float32(scale * self.rng.uniform(0.9, 1.1)))
        low = np.iinfo(self.dtype).min
        self.constant(np.asarray(self.rng.integers(low, low + 256), self.dtype))

    def weights(self, shape: tuple[int, ...], axis: int) -> float:
        """Weights, their scales and zero points: of int8 or uint8, symmetric or not, one for each channel or for all.
        The mean of the scales."""
        rng = self.rng
        kind = np.dtype(rng.choice(["uint8", "int8"])) if self.dtype == np.uint8 else np.dtype("int8")
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        many = rng.random() < 0.5
        scales = (10 ** rng.uniform(-3, -2, shape[axis] if many else ())).astype(np.float32)
        zero = (low + high + 1) // 2 if many or rng.random() < 0.3 else int(rng.integers(low + 64, high - 64))
        self.constant(rng.integers(low, high + 1, shape).astype(kind))
        self.constant(scales)
        self.constant(np.full(scales.shape, zero, kind))
        return float(np.mean(scales))

    def model(self) -> onnx.ModelProto:
        node = helper.make_node(self.op, self.names, ["y"], domain=self.domain, name="node", **self.attributes)
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        given = [helper.make_tensor_value_info(n, kind, s) for n, s in self.inputs.items()]
        out = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph([node], "g", given, [out], self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _image(rng: Rng) -> tuple[int, int, int, int]:
    c, h, w = (int(v) for v in rng.integers(1, 9, 3))
    return 1, c, h, w


def conv(rng: Rng) -> Node:
    n, shape = Node(rng, "QLinearConv", ""), _image(rng)
    c = shape[1]
    group = c if rng.random() < 0.4 else 1
    wide = c if group > 1 else int(rng.integers(1, 7))
    kernel = [int(min(rng.integers(1, 4), side)) for side in shape[2:]]
    n.taken(*shape)
    n.grid(0.02)
    scale = n.weights((wide, c // group, *kernel), 0)
    n.grid(0.02 * scale * 60 * (np.prod(kernel) * c / group) ** 0.5)
    if rng.random() < 0.7:
        n.constant(rng.integers(-5000, 5000, wide).astype(np.int32))
    n.attributes = {"group": group, "strides": [int(v) for v in rng.integers(1, 3, 2)]}
    if rng.random() < 0.5:
        n.attributes["pads"] = [k // 2 for k in kernel] * 2
    return n


def matmul(rng: Rng) -> Node:
    n = Node(rng, "QLinearMatMul", "")
    rows, k, columns = (int(v) for v in rng.integers(1, 9, 3))
    n.taken(1, rows, k)
    n.grid(0.02)
    scale = n.weights((k, columns), 1)
    n.grid(0.02 * scale * 80 * k**0.5)
    return n


def gemm(rng: Rng) -> Node:
    n = Node(rng, "QGemm")
    k, columns, turned = int(rng.integers(1, 40)), int(rng.integers(1, 9)), int(rng.integers(2))
    n.taken(1, k)
    n.grid(0.02)
    scale = n.weights((columns, k) if turned else (k, columns), 1 - turned)
    alpha = float(np.float32(rng.choice([1.0, 0.5, 1.75])))
    n.constant(rng.integers(-5000, 5000, columns).astype(np.int32))
    n.grid(0.02 * scale * alpha * 80 * k**0.5)
    n.attributes = {"alpha": alpha, "transB": turned}
    return n


def pairwise(rng: Rng) -> Node:
    n = Node(rng, str(rng.choice(["QLinearAdd", "QLinearMul"])))
    shape = tuple(int(v) for v in rng.integers(2, 6, 3))
    n.taken(1, *shape)
    n.grid(0.02)
    if rng.random() < 0.3:
        low = np.iinfo(n.dtype).min
        n.constant(rng.integers(low, low + 256, (shape[0], 1, 1)).astype(n.dtype))
    else:
        n.taken(1, *shape)
    n.grid(0.03)
    n.grid(0.03 if n.op == "QLinearAdd" else 0.05)
    return n


def function(rng: Rng) -> Node:
    n = Node(rng, str(rng.choice(["QLinearSigmoid", "QLinearLeakyRelu"])))
    n.taken(*_image(rng))
    n.grid(0.05)
    n.grid(1 / 256 if n.op == "QLinearSigmoid" else 0.04)
    if n.op == "QLinearLeakyRelu":
        n.attributes = {"alpha": float(rng.uniform(0.01, 0.5))}
    return n


def softmax(rng: Rng) -> Node:
    n = Node(rng, "QLinearSoftmax")
    n.taken(1, int(rng.integers(2, 40)))
    n.grid(0.05)
    n.constant(np.float32(1 / 256))
    n.constant(np.asarray(np.iinfo(n.dtype).min, n.dtype))
    n.attributes = {"axis": -1, "opset": 13}
    return n


def concat(rng: Rng) -> Node:
    n = Node(rng, "QLinearConcat")
    n.grid(0.03)
    shape = _image(rng)
    for _ in range(int(rng.integers(1, 4))):
        n.taken(1, int(rng.integers(1, 5)), *shape[2:])
        n.grid(float(rng.choice([0.01, 0.03, 0.05])))
    n.attributes = {"axis": 1}
    return n


def global_pool(rng: Rng) -> Node:
    n = Node(rng, "QLinearGlobalAveragePool")
    last = int(rng.integers(2))
    n.taken(*_image(rng))
    n.grid(0.03)
    n.grid(0.02)
    n.attributes = {"channels_last": last}
    return n


def pool(rng: Rng) -> Node:
    n, shape = Node(rng, "QLinearAveragePool"), _image(rng)
    n.taken(*shape)
    n.grid(0.03)
    n.grid(0.02)
    last = int(rng.integers(2))
    sides = shape[1:3] if last else shape[2:]
    n.attributes = {"kernel_shape": [int(min(rng.integers(1, 4), side)) for side in sides], "ceil_mode": 0}
    n.attributes |= {"strides": [int(v) for v in rng.integers(1, 3, 2)], "channels_last": last}
    return n


KINDS: tuple[Callable[[Rng], Node], ...] = (
    *(conv, matmul, gemm, pairwise, function, softmax, concat, global_pool, pool),
)


def node_of(seed: int) -> Node:
    """A node by its number; the kinds take turns."""
    return KINDS[seed % len(KINDS)](np.random.default_rng([seed, 21]))


def bytes_for(node: Node, rng: Rng) -> dict[str, Array]:
    low = np.iinfo(node.dtype).min
    return {name: rng.integers(low, low + 256, shape).astype(node.dtype) for name, shape in node.inputs.items()}
