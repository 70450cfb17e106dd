"""Small ONNX models with the operators that microcontrollers run, each named after its content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..onnx_models import parse

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


def _written(
    x: str, nodes: str, held: dict[str, npt.ArrayLike] | None = None, **weights: tuple[int, ...]
) -> onnx.ModelProto:
    """A model of x in ONNX's notation, with drawn weights of these shapes and other constants."""
    m = Maker()
    for name, shape in weights.items():
        m.weight(name, *shape, scale=0.2 if name.startswith("B") else 0.4)
    for name, value in (held or {}).items():
        m.constant(name, value)
    made = parse(f"g (float[{x}] x) => (float[] y) {{ {nodes} }}", 20)
    made.graph.initializer.extend(m.constants)
    return onnx.shape_inference.infer_shapes(made)


def _gates(n: int, gates: int, h: int, k: int) -> dict[str, tuple[int, ...]]:
    return {"W": (n, gates * h, k), "R": (n, gates * h, h), "B": (n, 2 * gates * h)}


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "convolutions": lambda: _written(
        "n, 3, 10, 12",
        """a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w1, b1)  b = Relu(a)
        c = Conv<group = 8, auto_pad = "SAME_UPPER", kernel_shape = [3, 3]>(b, w2)  d = HardSwish(c)
        e = Conv<group = 2>(d, w3)  f = GlobalAveragePool(e)  g = Flatten(f)  h = MatMul(g, w4)  i = Add(h, b4)
        y = Softmax(i)""",
        w1=(8, 3, 3, 3), b1=(8,), w2=(8, 1, 3, 3), w3=(12, 4, 1, 1), w4=(12, 5), b4=(5,),
    ),
    "flattened_image_to_dense": lambda: _written(
        "1, 2, 8, 7",
        """a = Conv(x, w1)  b = LeakyRelu<alpha = 0.2>(a)  c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
        d = Reshape(c, s)  e = Tanh(d)  y = Gemm<transB = 1>(e, w2, b2)""",
        {"s": [0, -1]}, w1=(6, 2, 3, 3), w2=(7, 6 * 3 * 2), b2=(7,),
    ),
    "batch_norm_and_residual": lambda: _written(
        "1, 3, 6, 6",
        """a = Conv<pads = [1, 1, 1, 1]>(x, w1)  b = BatchNormalization(a, gamma, beta, mean, var)  c = Relu(b)
        d = Conv<pads = [1, 1, 1, 1]>(c, w2)  e = Add(c, d)  f = Relu(e)
        g = AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(f)
        y = BatchNormalization(g, gamma, beta, mean, var)""",
        {"var": np.random.default_rng(0).uniform(0.5, 2, 4)},
        w1=(4, 3, 3, 3), gamma=(4,), beta=(4,), mean=(4,), w2=(4, 4, 3, 3),
    ),
    "silu_and_squeeze_excitation": lambda: _written(
        "1, 2, 5, 5",
        """a = Conv(x, w1)  s = Sigmoid(a)  b = Mul(a, s)  p = ReduceMean<keepdims = 1>(b, axes)  q = Conv(p, w2)
        r = HardSigmoid(q)  c = Mul(b, r)  y = GlobalMaxPool(c)""",
        {"axes": [2, 3]}, w1=(6, 2, 1, 1), w2=(6, 6, 1, 1),
    ),
    "upsampling_and_concatenation": lambda: _written(
        "1, 3, 6, 6",
        """a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w1)
        b = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(a, , scales)
        c = Concat<axis = 1>(b, x)  d = ConvTranspose<strides = [2, 2]>(c, w2)  e = Pad(d, pads)
        y = Slice(e, st, en, ax)""",
        {"scales": [1.0, 1.0, 2.0, 2.0], "pads": [0, 0, 1, 0, 0, 0, 0, 2], "st": [1], "en": [9], "ax": [3]},
        w1=(4, 3, 3, 3), w2=(7, 2, 2, 2),
    ),
    "temporal_convolution": lambda: _written(
        "1, 3, 40",
        """a = Conv<pads = [2, 2], strides = [2]>(x, w1, b1)  b = Elu(a)  c = Conv<group = 8, dilations = [2]>(b, w2)
        d = MaxPool<kernel_shape = [2], strides = [2]>(c)  e = GlobalAveragePool(d)  f = Squeeze(e, ax)
        g = Gemm(f, w3)  y = LogSoftmax(g)""",
        {"ax": [2]}, w1=(8, 3, 5), b1=(8,), w2=(8, 1, 3), w3=(8, 4),
    ),
    "lstm_sequence": lambda: _written(
        "1, 12, 5",
        """t = Transpose<perm = [1, 0, 2]>(x)  a, ah = LSTM<hidden_size = 8>(t, W, R, B)  b = Squeeze(a, ax)
        c = Gather<axis = 0>(b, last)  y = MatMul(c, w)""",
        {"ax": [1], "last": -1}, **_gates(1, 4, 8, 5), w=(8, 3),
    ),
    "bidirectional_gru": lambda: _written(
        "9, 1, 4",
        """a, ah = GRU<hidden_size = 6, direction = "bidirectional", linear_before_reset = 1>(x, W, R, B)
        b = Transpose<perm = [0, 2, 1, 3]>(a)  c = Reshape(b, s)  y = MatMul(c, w)""",
        {"s": [0, 0, -1]}, **_gates(2, 3, 6, 4), w=(12, 2),
    ),
    "last_state_of_an_lstm": lambda: _written(
        "7, 1, 3",
        """, h = LSTM<hidden_size = 6, direction = "reverse">(x, W, R)  y = Squeeze(h, ax)""",
        {"ax": [0]}, W=(1, 24, 3), R=(1, 24, 6),
    ),
    "gelu_by_hand": lambda: _written(
        "1, 4, 6",
        """a = MatMul(x, w)  b = Div(a, root)  c = Erf(b)  d = Add(c, one)  e = Mul(a, d)  y = Mul(e, half)""",
        {"root": 2**0.5, "one": 1.0, "half": 0.5}, w=(6, 10),
    ),
    "arithmetic": lambda: _written(
        "1, 3, 8",
        """a = Mul(x, c1)  b = Sub(c2, a)  top = ReduceMax<keepdims = 1>(b, ax)  d = Sub(b, top)  e = Exp(d)
        f = Clip(e, low, high)  g, h = Split<axis = 2, num_outputs = 2>(f)  i = Add(g, h)  j = Unsqueeze(i, ax0)
        y = Flatten(j)""",
        {"c1": [[0.5], [1.5], [2.0]], "c2": 3.0, "ax": [-1], "low": 0.05, "high": 0.9, "ax0": [0]},
    ),
    "depth_to_space": lambda: _written(
        "1, 2, 4, 3",
        """a = Conv<pads = [1, 1, 1, 1]>(x, w)  b = DepthToSpace<blocksize = 2, mode = "CRD">(a)
        c = Transpose<perm = [0, 2, 3, 1]>(b)  y = Softmax<axis = -1>(c)""",
        w=(12, 2, 3, 3),
    ),
}  # fmt: skip
