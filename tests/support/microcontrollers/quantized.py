"""Networks drawn at random, quantized by onnxruntime."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from .onnx_models import Array, Maker


class Samples(CalibrationDataReader):
    """Calibration data of a model with the input "x"."""

    def __init__(self, x: Array) -> None:
        self.left = iter(x)

    def get_next(self) -> dict[str, Array] | None:
        x = next(self.left, None)
        return None if x is None else {"x": x}


def samples_of(model: onnx.ModelProto, count: int = 20, seed: int = 0) -> Array:
    """Inputs of a model, (count, *its shape)."""
    dims = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(seed).standard_normal((count, *dims)).astype(np.float32)


def quantized(model: onnx.ModelProto, x: Array, **options: Any) -> onnx.ModelProto:
    """The model with QuantizeLinear and DequantizeLinear nodes; with `quant_format`, in onnxruntime's other format."""
    with tempfile.TemporaryDirectory() as folder:
        plain, out = Path(folder, "plain.onnx"), Path(folder, "quantized.onnx")
        onnx.save(model, plain)
        given = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8} | options
        given = {"quant_format": QuantFormat.QDQ} | given
        quantize_static(str(plain), str(out), Samples(x), **given)
        return onnx.load(out)


def saturating(model: onnx.ModelProto) -> onnx.ModelProto:
    """The quantized model in float32: a Clip in the place of each QuantizeLinear, and no DequantizeLinear behind it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = {i.name: numpy_helper.to_array(i) for i in made.graph.initializer}
    nodes, clipped = [], {}
    for node in made.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in constants:
            scale, zero = float(constants[node.input[1]]), constants[node.input[2]]
            limits = np.iinfo(zero.dtype)
            ends = []
            for end in (limits.min, limits.max):
                ends.append(f"{node.output[0]}_{end}")
                value = np.float32(scale * (end - int(zero)))
                made.graph.initializer.append(numpy_helper.from_array(np.array(value), ends[-1]))
            clipped[node.output[0]] = f"{node.output[0]}_clipped"
            nodes.append(helper.make_node("Clip", [node.input[0], *ends], [clipped[node.output[0]]]))
        elif node.op_type == "DequantizeLinear" and node.input[0] in clipped:
            nodes.append(helper.make_node("Identity", [clipped[node.input[0]]], [node.output[0]]))
        else:
            nodes.append(node)
    kept = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del made.graph.node[:]
    made.graph.node.extend(kept)
    return made


ACTIVATIONS = ("Relu", "Tanh", "Elu", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "SiLU", "")


class Network:
    """A network in the making over "x": each method appends nodes behind `at`."""

    def __init__(self, seed: int) -> None:
        self.m = Maker(seed)
        self.rng = np.random.default_rng(seed)
        self.at = "x"
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def then(self, op: str, *more: str, **attributes: Any) -> str:
        name = self.name()
        self.m(op, " ".join([self.at, *more]), name, **attributes)
        self.at = name
        return name

    def activation(self, kind: str) -> None:
        if kind == "SiLU":
            before = self.at
            self.then("Sigmoid")
            self.then("Mul", before)
        elif kind == "Clip":
            low, high = self.name(), self.name()
            self.m.constant(low, np.float32(0))
            self.m.constant(high, np.float32(6))
            self.then("Clip", low, high)
        elif kind:
            self.then(kind)

    def conv(self, c: int, n: int, k: int, group: int = 1, strides: int = 1) -> None:
        w, b = self.name(), self.name()
        self.m.weight(w, n, c // group, k, k, scale=1 / (k * (c // group) ** 0.5))
        self.m.weight(b, n, scale=0.3)
        self.then("Conv", w, b, group=group, strides=[strides] * 2, pads=[k // 2] * 4)

    def dense(self, k: int, n: int) -> None:
        w, b = self.name(), self.name()
        self.m.weight(w, n, k, scale=k**-0.5)
        self.m.weight(b, n, scale=0.3)
        self.then("Gemm", w, b, transB=1)

    def done(self, shape: list[int]) -> onnx.ModelProto:
        self.m("Identity", self.at, "y")
        return self.m.model(list(shape), opset=17, ir=8)


def image_network(seed: int) -> onnx.ModelProto:
    """Convolutions, activations, pools, a residual, a mean and dense layers, as torch exports them."""
    n, rng = Network(seed), np.random.default_rng(seed)
    c = int(rng.choice([2, 3, 8]))
    shape = [1, c, 8, 8]
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.choice(["conv", "conv", "depthwise", "residual", "pool"])
        if kind == "conv":
            wide = int(rng.choice([4, 8]))
            n.conv(c, wide, int(rng.choice([1, 3])))
            c = wide
            n.activation(str(rng.choice(ACTIVATIONS)))
        elif kind == "depthwise":
            n.conv(c, c, 3, c)
            n.activation(str(rng.choice(ACTIVATIONS)))
        elif kind == "residual":
            before = n.at
            n.conv(c, c, 3)
            n.then("Add", before)
            n.activation(str(rng.choice(ACTIVATIONS)))
        else:
            n.then(str(rng.choice(["MaxPool", "AveragePool"])), kernel_shape=[2, 2])
    way = rng.choice(["mean", "global", "max"])
    if way == "mean":
        n.then("ReduceMean", axes=[2, 3], keepdims=int(rng.integers(0, 2)))
        n.then("Flatten")
    else:
        n.then("GlobalAveragePool" if way == "global" else "GlobalMaxPool")
        n.then("Flatten")
    if rng.random() < 0.5:
        n.activation(str(rng.choice(ACTIVATIONS)))
    n.dense(c, 6)
    if rng.random() < 0.5:
        n.activation(str(rng.choice(ACTIVATIONS)))
        n.dense(6, 4)
    last = rng.choice(["", "Softmax", "Sigmoid", "Tanh", "LogSoftmax"])
    if last:
        n.then(str(last))
    return n.done(shape)


def sequence_network(seed: int) -> onnx.ModelProto:
    """A 1-D convolution, an LSTM or GRU, and a dense layer over its last step or all of them."""
    n, rng = Network(seed), np.random.default_rng(seed)
    m, steps, c, hidden = n.m, 10, 6, 8
    w, b = n.name(), n.name()
    m.weight(w, c, 4, 3, scale=0.3)
    m.weight(b, c, scale=0.2)
    n.then("Conv", w, b, pads=[1, 1])
    n.activation(str(rng.choice(ACTIVATIONS)))
    n.then("Transpose", perm=[2, 0, 1])
    op, gates = ("LSTM", 4) if rng.random() < 0.5 else ("GRU", 3)
    names = [n.name() for _ in range(3)]
    m.weight(names[0], 1, gates * hidden, c)
    m.weight(names[1], 1, gates * hidden, hidden)
    m.weight(names[2], 1, 2 * gates * hidden, scale=0.2)
    n.then(op, *names, hidden_size=hidden, **({"linear_before_reset": 1} if op == "GRU" else {}))
    axes, last = n.name(), n.name()
    m.constant(axes, [1])
    m.constant(last, -1, "int64")
    n.then("Squeeze", axes)
    if rng.random() < 0.7:
        n.then("Gather", last, axis=0)
        shape = n.name()
        m.constant(shape, [1, hidden])
        n.then("Reshape", shape)
    matrix, bias = n.name(), n.name()
    m.weight(matrix, hidden, 5)
    m.weight(bias, 5, scale=0.3)
    n.then("MatMul", matrix)
    n.then("Add", bias)
    if rng.random() < 0.5:
        n.activation(str(rng.choice(ACTIVATIONS)))
    return n.done([1, 4, steps])


def classifier(seed: int, normalized: bool = False) -> onnx.ModelProto:
    """Convolutions, a residual, perhaps a normalization, an average, a dense layer and a softmax."""
    n = Network(seed)
    n.conv(3, 8, 3, strides=2)
    n.activation("Relu")
    before = n.at
    n.conv(8, 8, 3, group=8)
    n.activation("HardSwish")
    n.then("Add", before)
    n.then("MaxPool", kernel_shape=[2, 2])
    if normalized:
        n.m.weight("factors", 8, scale=1)
        n.m.weight("shifts", 8, scale=1)
        n.then("InstanceNormalization", "factors", "shifts")
    n.then("GlobalAveragePool")
    n.then("Flatten")
    n.dense(8, 6)
    n.then("Tanh")
    n.dense(6, 4)
    n.then("Softmax")
    return n.done([1, 3, 8, 8])


def attention(seed: int, heads: int = 2, length: int = 9, size: int = 8) -> onnx.ModelProto:
    """Self-attention in the form of exporters, a residual connection, a normalization and a dense layer."""
    n, wide = Network(seed), heads * size
    source = n.at
    n.m.constant("apart", [length, heads, size])
    sides = {}
    for name, order in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        n.at = source
        n.dense(wide, wide)
        n.then("Reshape", "apart")
        sides[name] = n.then("Transpose", perm=order)
    n.at = sides["q"]
    n.then("MatMul", sides["k"])
    n.m.constant("scale", np.float32(size**-0.5))
    n.then("Mul", "scale")
    n.then("Softmax", axis=-1)
    n.then("MatMul", sides["v"])
    n.then("Transpose", perm=[1, 0, 2])
    n.m.constant("together", [length, wide])
    n.then("Reshape", "together")
    n.dense(wide, wide)
    n.then("Add", source)
    n.m.weight("g", wide, scale=1)
    n.m.weight("b", wide, scale=1)
    n.then("LayerNormalization", "g", "b")
    n.dense(wide, 4)
    return n.done([length, wide])
