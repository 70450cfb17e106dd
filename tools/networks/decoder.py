"""A language model in the shape of Llama with weights drawn at random, as an ONNX model with a cache.

Inputs: tokens (batch, new), past_key_values.N.key and .value (batch, heads, past, size). Outputs: logits, and
present.N.key and .value. Layers as in stories15M (github.com/karpathy/llama2.c); 15 million parameters in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32


@dataclass(frozen=True)
class Sizes:
    """width: of the embeddings, a multiple of heads and of 32, as hidden is."""

    words: int = 16000
    width: int = 288
    hidden: int = 768
    heads: int = 6
    layers: int = 6


class _Writer:
    def __init__(self, sizes: Sizes, bits: int | None, seed: int) -> None:
        self.sizes = sizes
        self.bits = bits
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.count = 0

    def constant(self, value: Any, name: str = "") -> str:
        self.count += 1
        name = name or f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *given: str, name: str = "", domain: str = "", **attributes: Any) -> str:
        self.count += 1
        name = name or f"v{self.count}"
        self.nodes.append(helper.make_node(kind, given, [name], domain=domain, **attributes))
        return name

    def drawn(self, *shape: int) -> np.ndarray[Any, Any]:
        return (self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def product(self, x: str, k: int, n: int) -> str:
        """x times a matrix (k, n), in 4 bits in blocks of 32 rows if the model is quantized."""
        weight = self.drawn(k, n)
        if self.bits is None:
            return self.node("MatMul", x, self.constant(weight))
        blocks = weight.T.reshape(n, k // BLOCK, BLOCK)
        scales = np.abs(blocks).max(-1) / 7
        levels = np.clip(np.round(blocks / scales[..., None]) + 8, 0, 15).astype(np.uint8)
        packed = levels[..., 0::2] | levels[..., 1::2] << 4
        given = (x, self.constant(packed), self.constant(scales.astype(np.float32).reshape(-1)))
        return self.node("MatMulNBits", *given, domain="com.microsoft", K=k, N=n, bits=4, block_size=BLOCK)

    def norm(self, x: str) -> str:
        square = self.node("Mul", x, x)
        mean = self.node("ReduceMean", square, self.constant(np.array([-1])))
        root = self.node("Sqrt", self.node("Add", mean, self.constant(np.float32(1e-5))))
        weight = 1 + 0.1 * self.random.standard_normal(self.sizes.width)
        return self.node("Mul", self.node("Div", x, root), self.constant(weight.astype(np.float32)))

    def heads(self, x: str) -> str:
        s = self.sizes
        shape = self.constant(np.array([0, 0, s.heads, s.width // s.heads]))
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def turned(self, x: str, cos: str, sin: str) -> str:
        """Rotary positions, with the halves of each head as pairs."""
        half = self.sizes.width // self.sizes.heads // 2
        axes = self.constant(np.array([3]))
        ends = [self.constant(np.array([n])) for n in (0, half, 2 * half)]
        low = self.node("Slice", x, ends[0], ends[1], axes)
        high = self.node("Slice", x, ends[1], ends[2], axes)
        other = self.node("Concat", self.node("Neg", high), low, axis=3)
        return self.node("Add", self.node("Mul", x, cos), self.node("Mul", other, sin))


def decoder(sizes: Sizes = Sizes(), bits: int | None = None, seed: int = 0) -> onnx.ModelProto:
    """The model; bits=4 stores the matrices of its layers and the last one as `MatMulNBits` of com.microsoft."""
    w = _Writer(sizes, bits, seed)
    size = sizes.width // sizes.heads
    zero, one = w.constant(np.array(0)), w.constant(np.array(1))
    # The positions of the new tokens, after the past.
    past = w.node("Gather", w.node("Shape", "past_key_values.0.key"), w.constant(np.array(2)))
    new = w.node("Gather", w.node("Shape", "tokens"), one)
    total = w.node("Add", past, new)
    at = w.node("Range", past, total, one)
    column = w.node("Cast", w.node("Unsqueeze", at, w.constant(np.array([1]))), to=TensorProto.FLOAT)
    frequencies = (10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)[None]
    angles = w.node("Mul", column, w.constant(frequencies))
    both = w.node("Concat", angles, angles, axis=1)
    cos, sin = w.node("Cos", both), w.node("Sin", both)
    seen = w.node("LessOrEqual", w.node("Range", zero, total, one), w.node("Unsqueeze", at, w.constant(np.array([1]))))
    mask = w.node("Where", seen, w.constant(np.float32(0)), w.constant(np.float32(-np.inf)))

    x = w.node(
        "Gather", w.constant(w.drawn(sizes.words, sizes.width) * np.float32(sizes.words**0.5), "embedding"), "tokens"
    )
    for n in range(sizes.layers):
        y = w.norm(x)
        q, k, v = (w.heads(w.product(y, sizes.width, sizes.width)) for _ in range(3))
        q, k = w.turned(q, cos, sin), w.turned(k, cos, sin)
        keys = w.node("Concat", f"past_key_values.{n}.key", k, axis=2, name=f"present.{n}.key")
        values = w.node("Concat", f"past_key_values.{n}.value", v, axis=2, name=f"present.{n}.value")
        scores = w.node("MatMul", q, w.node("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = w.node("Mul", scores, w.constant(np.float32(size**-0.5)))
        shares = w.node("Softmax", w.node("Add", scores, mask), axis=-1)
        y = w.node("Transpose", w.node("MatMul", shares, values), perm=[0, 2, 1, 3])
        y = w.node("Reshape", y, w.constant(np.array([0, 0, sizes.width])))
        x = w.node("Add", x, w.product(y, sizes.width, sizes.width))
        y = w.norm(x)
        gate = w.product(y, sizes.width, sizes.hidden)
        gate = w.node("Mul", gate, w.node("Sigmoid", gate))
        y = w.node("Mul", gate, w.product(y, sizes.width, sizes.hidden))
        x = w.node("Add", x, w.product(y, sizes.hidden, sizes.width))
    x = w.norm(x)
    logits = w.node("Identity", w.product(x, sizes.width, sizes.words), name="logits")
    shape: list[str | int | None] = ["batch", sizes.heads, "past", size]
    longer: list[str | int | None] = ["batch", sizes.heads, "past + new", size]
    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "new"])]
    outputs = [helper.make_tensor_value_info(logits, TensorProto.FLOAT, ["batch", "new", sizes.words])]
    for n in range(sizes.layers):
        for what in ("key", "value"):
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{n}.{what}", TensorProto.FLOAT, shape))
            outputs.append(helper.make_tensor_value_info(f"present.{n}.{what}", TensorProto.FLOAT, longer))
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def parameters(model: onnx.ModelProto) -> int:
    """The number of weights, counting two per byte if they are packed."""
    count = 0
    for t in model.graph.initializer:
        count += int(np.prod(t.dims)) * (2 if t.data_type == TensorProto.UINT8 else 1)
    return count


class Reference:
    """onnxruntime on the CPU, decoding greedily with its caches passed on."""

    def __init__(self, model: onnx.ModelProto, threads: int = 0) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        self.run = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self.run.get_outputs()]
        self.reset()

    def reset(self) -> None:
        self.caches = {}
        for i in self.run.get_inputs():
            if i.name != "tokens":
                self.caches[i.name] = np.zeros([{"batch": 1, "past": 0}.get(d, d) for d in i.shape], np.float32)

    def step(self, tokens: Any) -> Any:
        """The logits of (1, new) tokens."""
        found = dict(zip(self.outputs, self.run.run(None, {"tokens": np.array(tokens), **self.caches}), strict=True))
        self.caches = {name: found[name.replace("past_key_values", "present")] for name in self.caches}
        return found["logits"]


def greedy(step: Any, prompt: list[int], count: int) -> list[int]:
    """The `count` tokens after a prompt, each the most likely."""
    logits = np.asarray(step([prompt]))
    tokens = []
    for _ in range(count):
        tokens.append(int(logits[0, -1].argmax()))
        logits = np.asarray(step([tokens[-1:]]))
    return tokens
