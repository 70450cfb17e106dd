"""Random networks of blocks as people write them: blocks of one kind differ in numbers and in optional parts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTHS = (4, 6, 8)


class DrawnNetwork:
    """Convolutions with shortcuts and gates (odd seeds), or layers of products on tokens (even seeds). The node names
    hold the modules, only the weights' names do, or nothing does."""

    def __init__(self, seed: int, form: str | None = None) -> None:
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        drawn = self.random.choice(["nodes", "weights", "nothing"])
        self.form = form or drawn
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        self.images = bool(seed % 2)
        self.act = self.random.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
        self.outputs: list[str] = []
        x, width = "x", WIDTHS[0]
        for stage in range(self.random.randint(1, 3)):
            # A stage has the same width or another one; its first block may have parts that the others lack.
            new = self.random.choice(WIDTHS)
            parts = {p for p in ("gate", "norm", "wide", "scale", "merge", "clip") if self.random.random() < 0.4}
            size = self.random.choice((1, 3))
            for n in range(self.random.randint(2, 4)):
                path = (
                    ("stages", str(stage), "blocks", str(n)) if self.random.random() < 0.95 else (f"extra{stage}{n}",)
                )
                mine = parts ^ (
                    {self.random.choice(["gate", "norm", "scale"])} if self.random.random() < 0.2 else set()
                )
                block = self.image_block if self.images else self.token_block
                x = block(x, width, new, mine, size, path, n)
                width = new
            if self.random.random() < 0.3:
                self.outputs.append(x)
        if self.images:
            x = self.node("Flatten", [self.node("GlobalAveragePool", [x], ("pool",))], ())
        weight, bias = self.weight(("head",), "weight", width, 5), self.weight(("head",), "bias", 5)
        x = self.node("Add", [self.node("MatMul", [x, weight], ("head",)), bias], ("head",))
        self.outputs.insert(0, x)

    def image_block(self, x: str, width: int, new: int, parts: set[str], size: int, path: Any, n: int) -> str:
        inner = 2 * new if "wide" in parts else new
        y = self.conv(x, width, inner, size, (*path, "conv1"))
        if "norm" in parts:
            norm = [self.weight((*path, "bn"), p, inner) for p in ("weight", "bias", "running_mean")]
            y = self.node("BatchNormalization", [y, *norm, self.weight((*path, "bn"), "running_var", inner)], path)
        y = self.node(self.act, [y], path)
        y = self.conv(y, inner, new, 1, (*path, "conv2"))
        if "gate" in parts:
            mean = self.node("ReduceMean", [y, self.ints(2, 3)], (*path, "se"))
            gate = self.node("Relu", [self.conv(mean, new, 2, 1, (*path, "se", "fc1"))], (*path, "se"))
            gate = self.node("Sigmoid", [self.conv(gate, 2, new, 1, (*path, "se", "fc2"))], (*path, "se"))
            y = self.node("Mul", [y, gate], (*path, "se"))
        if "scale" in parts:
            y = self.node("Mul", [y, self.number(0.1 * (n + 1))], path)
        short = x if width == new else self.conv(x, width, new, 1, (*path, "shortcut"))
        y = self.node("Add", [y, short] if n % 2 else [short, y], path)
        return self.node("Clip", [y, self.number(-n - 1.0), self.number(6.0)], path) if "clip" in parts else y

    def token_block(self, x: str, width: int, new: int, parts: set[str], size: int, path: Any, n: int) -> str:
        y = x
        if "norm" in parts:
            norm = [self.weight((*path, "norm"), p, width) for p in ("weight", "bias")]
            y = self.node("LayerNormalization", [y, *norm], (*path, "norm"), epsilon=10.0 ** -(5 + n % 2))
        inner = 2 * new if "wide" in parts else new
        y = self.linear(y, width, inner, (*path, "fc1"))
        if "merge" in parts:
            y = self.node("Reshape", [y, self.ints(0, 0, 2, inner // 2)], path)
            y = self.node("Softmax", [self.node("Transpose", [y], path, perm=[0, 2, 1, 3])], path)
            y = self.node(
                "Reshape", [self.node("Transpose", [y], path, perm=[0, 2, 1, 3]), self.ints(0, 0, inner)], path
            )
        y = self.node(self.act, [y], path)
        if "gate" in parts:
            y = self.node("Mul", [y, self.linear(x, width, inner, (*path, "gate"))], path)
        y = self.linear(y, inner, new, (*path, "fc2"))
        if "scale" in parts:
            y = self.node("Mul", [y, self.weight(path, "gamma", new)], path)
        if "clip" in parts:
            y = self.node("Div", [y, self.number(2.0 + size)], path)
        return self.node("Add", [x, y], path) if width == new else y

    def conv(self, x: str, width: int, new: int, size: int, path: Any) -> str:
        given = [self.weight(path, "weight", new, width, size, size)]
        if self.random.random() < 0.8:
            given.append(self.weight(path, "bias", new))
        return self.node("Conv", [x, *given], path, pads=[size // 2] * 4, kernel_shape=[size, size])

    def linear(self, x: str, width: int, new: int, path: Any) -> str:
        made = self.node("MatMul", [x, self.weight(path, "weight", width, new)], path)
        return self.node("Add", [made, self.weight(path, "bias", new)], path)

    def node(self, op: str, inputs: list[str], path: Any, **attributes: Any) -> str:
        n = len(self.nodes)
        name = f"/{'/'.join([*path, op])}_{n}" if self.form == "nodes" else f"{op}_{n}"
        self.nodes.append(helper.make_node(op, inputs, [f"v{n}"], name, **attributes))
        return f"v{n}"

    def weight(self, path: Any, word: str, *shape: int) -> str:
        name = f"w{len(self.held)}" if self.form == "nothing" else ".".join([*path, word])
        array = np.abs(self.values.standard_normal(shape)).astype(np.float32) / 2
        self.held.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        self.held.append(numpy_helper.from_array(np.array(value, np.float32), f"n{len(self.held)}"))
        return str(self.held[-1].name)

    def ints(self, *values: int) -> str:
        self.held.append(numpy_helper.from_array(np.array(values, np.int64), f"n{len(self.held)}"))
        return str(self.held[-1].name)

    def model(self) -> onnx.ModelProto:
        shape: list[Any] = ["batch", WIDTHS[0], 8, 8] if self.images else ["batch", 3, WIDTHS[0]]
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        made = [onnx.ValueInfoProto(name=o) for o in dict.fromkeys(self.outputs)]
        graph = helper.make_graph(self.nodes, "g", [given], made, self.held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def input(self) -> np.ndarray:
        shape = (2, WIDTHS[0], 8, 8) if self.images else (2, 3, WIDTHS[0])
        return self.values.standard_normal(shape).astype(np.float32)
