"""Small ONNX models with the operators that microcontrollers run, each named after its content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
Nodes = list[tuple[str, str, str, dict[str, Any]]]


class Maker:
    """Collects nodes and constants: `m("Conv", "x w b", "y", pads=…)`."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, op: str, inputs: str, outputs: str, **attributes: Any) -> None:
        names = [n if n != "_" else "" for n in inputs.split()]
        self.nodes.append(helper.make_node(op, names, outputs.split(), **attributes))

    def weight(self, name: str, *shape: int, scale: float = 0.4) -> None:
        self.constant(name, (self.rng.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name: str, value: npt.ArrayLike, dtype: str = "") -> None:
        x = np.asarray(value)
        x = x.astype(dtype or (np.float32 if x.dtype == np.float64 else x.dtype))
        self.constants.append(numpy_helper.from_array(x, name))

    def model(self, shape: list[int | str], outputs: str = "y", opset: int = 20, ir: int = 10) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        ys = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs.split()]
        graph = helper.make_graph(self.nodes, "g", [x], ys, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
        return onnx.shape_inference.infer_shapes(made)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {}


def model(function: Callable[[], onnx.ModelProto]) -> Callable[[], onnx.ModelProto]:
    MODELS[function.__name__] = function
    return function


@model
def convolutions() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 8, 3, 3, 3)
    m.weight("b1", 8)
    m("Conv", "x w1 b1", "a", pads=[1, 1, 1, 1], strides=[2, 2])
    m("Relu", "a", "b")
    m.weight("w2", 8, 1, 3, 3)
    m("Conv", "b w2", "c", group=8, auto_pad="SAME_UPPER", kernel_shape=[3, 3])
    m("HardSwish", "c", "d")
    m.weight("w3", 12, 4, 1, 1)
    m("Conv", "d w3", "e", group=2)
    m("GlobalAveragePool", "e", "f")
    m("Flatten", "f", "g")
    m.weight("w4", 12, 5)
    m("MatMul", "g w4", "h")
    m.weight("b4", 5)
    m("Add", "h b4", "i")
    m("Softmax", "i", "y")
    return m.model(["n", 3, 10, 12])


@model
def flattened_image_to_dense() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 6, 2, 3, 3)
    m("Conv", "x w1", "a")
    m("LeakyRelu", "a", "b", alpha=0.2)
    m("MaxPool", "b", "c", kernel_shape=[2, 2], strides=[2, 2])
    m.constant("s", [0, -1])
    m("Reshape", "c s", "d")
    m("Tanh", "d", "e")
    m.weight("w2", 7, 6 * 3 * 2)
    m.weight("b2", 7)
    m("Gemm", "e w2 b2", "y", transB=1)
    return m.model([1, 2, 8, 7])


@model
def batch_norm_and_residual() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 4, 3, 3, 3)
    m("Conv", "x w1", "a", pads=[1, 1, 1, 1])
    for name in ("gamma", "beta", "mean"):
        m.weight(name, 4)
    m.constant("var", m.rng.uniform(0.5, 2, 4))
    m("BatchNormalization", "a gamma beta mean var", "b")
    m("Relu", "b", "c")
    m.weight("w2", 4, 4, 3, 3)
    m("Conv", "c w2", "d", pads=[1, 1, 1, 1])
    m("Add", "c d", "e")
    m("Relu", "e", "f")
    m("AveragePool", "f", "g", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    m("BatchNormalization", "g gamma beta mean var", "y")
    return m.model([1, 3, 6, 6])


@model
def silu_and_squeeze_excitation() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 6, 2, 1, 1)
    m("Conv", "x w1", "a")
    m("Sigmoid", "a", "s")
    m("Mul", "a s", "b")
    m("ReduceMean", "b axes", "p", keepdims=1)
    m.constant("axes", [2, 3])
    m.weight("w2", 6, 6, 1, 1)
    m("Conv", "p w2", "q")
    m("HardSigmoid", "q", "r")
    m("Mul", "b r", "c")
    m("GlobalMaxPool", "c", "y")
    return m.model([1, 2, 5, 5])


@model
def upsampling_and_concatenation() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 4, 3, 3, 3)
    m("Conv", "x w1", "a", pads=[1, 1, 1, 1], strides=[2, 2])
    m.constant("scales", np.array([1, 1, 2, 2], np.float32))
    m("Resize", "a _ scales", "b", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    m("Concat", "b x", "c", axis=1)
    m.weight("w2", 7, 2, 2, 2)
    m("ConvTranspose", "c w2", "d", strides=[2, 2])
    m.constant("pads", [0, 0, 1, 0, 0, 0, 0, 2])
    m("Pad", "d pads", "e")
    m.constant("st", [1])
    m.constant("en", [9])
    m.constant("ax", [3])
    m("Slice", "e st en ax", "y")
    return m.model([1, 3, 6, 6])


@model
def temporal_convolution() -> onnx.ModelProto:
    m = Maker()
    m.weight("w1", 8, 3, 5)
    m.weight("b1", 8)
    m("Conv", "x w1 b1", "a", pads=[2, 2], strides=[2])
    m("Elu", "a", "b")
    m.weight("w2", 8, 1, 3)
    m("Conv", "b w2", "c", group=8, dilations=[2])
    m("MaxPool", "c", "d", kernel_shape=[2], strides=[2])
    m("GlobalAveragePool", "d", "e")
    m("Squeeze", "e ax", "f")
    m.constant("ax", [2])
    m.weight("w3", 8, 4)
    m("Gemm", "f w3", "g")
    m("LogSoftmax", "g", "y")
    return m.model([1, 3, 40])


def _lstm(m: Maker, op: str, x: str, y: str, k: int, h: int, gates: int, n: int = 1, **attributes: Any) -> None:
    m.weight(f"W{y}", n, gates * h, k)
    m.weight(f"R{y}", n, gates * h, h)
    m.weight(f"B{y}", n, 2 * gates * h, scale=0.2)
    m(op, f"{x} W{y} R{y} B{y}", f"{y} {y}h", hidden_size=h, **attributes)


@model
def lstm_sequence() -> onnx.ModelProto:
    m = Maker()
    m("Transpose", "x", "t", perm=[1, 0, 2])
    _lstm(m, "LSTM", "t", "a", 5, 8, 4)
    m("Squeeze", "a ax", "b")
    m.constant("ax", [1])
    m("Gather", "b last", "c", axis=0)
    m.constant("last", -1, "int64")
    m.weight("w", 8, 3)
    m("MatMul", "c w", "y")
    return m.model([1, 12, 5])


@model
def bidirectional_gru() -> onnx.ModelProto:
    m = Maker()
    _lstm(m, "GRU", "x", "a", 4, 6, 3, 2, direction="bidirectional", linear_before_reset=1)
    m("Transpose", "a", "b", perm=[0, 2, 1, 3])
    m("Reshape", "b s", "c")
    m.constant("s", [0, 0, -1])
    m.weight("w", 12, 2)
    m("MatMul", "c w", "y")
    return m.model([9, 1, 4])


@model
def last_state_of_an_lstm() -> onnx.ModelProto:
    m = Maker()
    m.weight("W", 1, 24, 3)
    m.weight("R", 1, 24, 6)
    m("LSTM", "x W R", "_ h", hidden_size=6, direction="reverse")
    m("Squeeze", "h ax", "y")
    m.constant("ax", [0])
    return m.model([7, 1, 3])


@model
def gelu_by_hand() -> onnx.ModelProto:
    m = Maker()
    m.weight("w", 6, 10)
    m("MatMul", "x w", "a")
    m.constant("root", np.float32(2**0.5))
    m("Div", "a root", "b")
    m("Erf", "b", "c")
    m.constant("one", np.float32(1))
    m("Add", "c one", "d")
    m("Mul", "a d", "e")
    m.constant("half", np.float32(0.5))
    m("Mul", "e half", "y")
    return m.model([1, 4, 6])


@model
def arithmetic() -> onnx.ModelProto:
    m = Maker()
    m.constant("c1", np.array([[0.5], [1.5], [2.0]], np.float32))
    m("Mul", "x c1", "a")
    m("Sub", "c2 a", "b")
    m.constant("c2", np.float32(3))
    m("ReduceMax", "b ax", "top", keepdims=1)
    m.constant("ax", [-1])
    m("Sub", "b top", "d")
    m("Exp", "d", "e")
    m("Clip", "e low high", "f")
    m.constant("low", np.float32(0.05))
    m.constant("high", np.float32(0.9))
    m("Split", "f", "g h", axis=2, num_outputs=2)
    m("Add", "g h", "i")
    m("Unsqueeze", "i ax0", "j")
    m.constant("ax0", [0])
    m("Flatten", "j", "y")
    return m.model([1, 3, 8])


@model
def depth_to_space() -> onnx.ModelProto:
    m = Maker()
    m.weight("w", 12, 2, 3, 3)
    m("Conv", "x w", "a", pads=[1, 1, 1, 1])
    m("DepthToSpace", "a", "b", blocksize=2, mode="CRD")
    m("Transpose", "b", "c", perm=[0, 2, 3, 1])
    m("Softmax", "c", "y", axis=-1)
    return m.model([1, 2, 4, 3])
