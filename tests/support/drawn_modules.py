"""Graphs of random nodes in random modules."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 4
FORMS = {  # of a module path: how exporters write it
    "slashes": lambda path, op, n: f"/{'/'.join(path)}/{op}_{n}" if path else f"/{op}_{n}",
    "weights": lambda path, op, n: f"{op}_{n}",  # only in the names of weights
}


class Drawn:
    """A graph of random nodes in random modules: lists of layers that pass on one value or several, layers that read
    results of earlier ones, constants of all layers, inner modules, and results of every module."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.form = self.random.choice(sorted(FORMS))
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        self.shared = [self.node("Sin", ["a"], ())]
        flow = [self.node("Tanh", ["x"], ())] * self.random.randint(1, 2)
        made = []
        for name in self.random.sample(["layers", "stages", "blocks"], self.random.randint(1, 2)):
            plan = self.plan()
            for n in range(self.random.randint(3, 5)):
                # Most items of a list are alike; now and then one differs.
                steps = plan if self.random.random() < 0.85 else self.plan()
                flow = self.layer(steps, flow, (name, str(n)))
                made += flow
            if self.random.random() < 0.3:  # read out of order
                flow[0] = self.node("Add", [flow[0], self.random.choice(made)], ())
        results = self.random.sample(made, min(len(made), self.random.randint(0, 3)))
        self.outputs = list(dict.fromkeys([flow[0], *results]))

    def plan(self) -> list[tuple[str, int, tuple[str, ...]]]:
        """(operator, what it reads beside the flow, the module within the layer)."""
        inner: list[tuple[str, ...]] = [(), (), ("mlp",), ("mlp", "fc"), ("attn",)]
        ops = ["MatMul", "MatMul", "Add", "Mul", "Relu", "Tanh", "Shape", "Shared", "Weight", "Earlier"]
        return [
            (self.random.choice(ops), self.random.randrange(3), self.random.choice(inner))
            for _ in range(self.random.randint(4, 9))
        ]

    def layer(self, plan: Any, flow: list[str], path: tuple[str, ...]) -> list[str]:
        x, start, inside = flow[0], list(flow), list(flow)
        for at, (op, which, inner) in enumerate(plan):
            here = (*path, *inner)
            if op == "MatMul":
                x = self.node("MatMul", [x, self.weight(here, at, SIZE, SIZE)], here)
            elif op == "Weight":
                x = self.node("Mul", [x, self.weight(here, at, SIZE)], here)
            elif op == "Shared":
                x = self.node("Add", [x, self.shared[0]], here)
            elif op == "Shape":
                x = self.node("Reshape", [x, self.node("Shape", [start[-1]], here)], here)
            elif op == "Earlier":
                x = self.node("Sub", [x, start[which % len(start)]], here)
            elif op in ("Add", "Mul"):
                x = self.node(op, [x, inside[which % len(inside)]], here)
            else:
                x = self.node(op, [x], here)
            inside.append(x)
        return [x, *inside[len(start) : len(start) + len(flow) - 1]][: len(flow)] if len(inside) > len(start) else start

    def node(self, op: str, inputs: list[str], path: tuple[str, ...]) -> str:
        n = len(self.nodes)
        name = FORMS[self.form](path, op, n)
        self.nodes.append(helper.make_node(op, inputs, [f"v{n}"], name))
        return f"v{n}"

    def weight(self, path: tuple[str, ...], at: int, *shape: int) -> str:
        name = ".".join([*path, f"scale{at}" if len(shape) == 1 else f"fc{at}.weight"])
        array = (self.values.standard_normal(shape) / 2).astype(np.float32)
        self.held.append(numpy_helper.from_array(array, name))
        return name

    def model(self) -> onnx.ModelProto:
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", SIZE])  # noqa: E731
        graph = helper.make_graph(
            self.nodes, "g", [value("x"), value("a")], [value(o) for o in self.outputs], self.held
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        return model
