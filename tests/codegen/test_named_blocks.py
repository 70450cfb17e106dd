"""Inverted residuals in files that name no modules: found from structure, whatever their sizes and weights, and equal
to the flat code bit for bit. `--flat` leaves them out."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from emberlet.codegen import weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.emit.module import Written
from emberlet.codegen.generation import translate
from onnx import TensorProto, helper, numpy_helper
from support.nameless import stripped


class _Images:
    """A network over images (batch, channels, 12, 12), drawn with a seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.draw = random.Random(seed), np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.x = "x"
        self.width = self.first = self.random.choice((4, 6, 8))

    def weight(self, *shape: int) -> str:
        scale = float(np.prod(shape[1:])) ** 0.5
        array = (self.draw.standard_normal(shape) / scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def conv(self, x: str, width: int, out: int, kernel: int = 1, groups: int = 1) -> str:
        pads = [kernel // 2] * 4
        given = self.weight(out, width // groups, kernel, kernel), self.weight(out)
        return self.node("Conv", x, *given, pads=pads, group=groups, kernel_shape=[kernel, kernel])

    def excited(self, x: str, width: int, gate: str) -> str:
        small = max(1, width // self.random.choice((2, 4)))
        mean = self.node("GlobalAveragePool", x)
        hidden = self.node("Relu", self.conv(mean, width, small))
        return self.node("Mul", x, self.node(gate, self.conv(hidden, small, width)))

    def inverted(self, gate: str | None, kernel: int) -> None:
        wide = self.width * self.random.choice((2, 3, 4))
        x = self.node("Relu", self.conv(self.x, self.width, wide))
        x = self.node("Relu", self.conv(x, wide, wide, kernel, wide))
        x = self.excited(x, wide, gate) if gate else x
        self.x = self.node("Add", self.conv(x, wide, self.width), self.x)

    def change(self) -> None:
        """A convolution to another width."""
        out = self.random.choice((4, 6, 8, 10))
        self.x, self.width = self.conv(self.x, self.width, out, 3), out

    def model(self) -> onnx.ModelProto:
        nodes = [*self.nodes, helper.make_node("Identity", [self.x], ["y"])]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", self.first, 12, 12])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "g", [x], [y], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return stripped(made, self.random.randrange(1000))


def _classes(drawn: _Images) -> list[str]:
    """The names of the classes, after checking that they compute the flat code's results."""
    model = drawn.model()
    written, flat = (translate(model, "net", weights_name="net.bpk", flat=f)[1] for f in (False, True))
    x = drawn.draw.standard_normal((2, drawn.first, 12, 12)).astype(np.float32)
    assert _result(written, x) == _result(flat, x)
    assert [line for line in flat.source.splitlines() if line.startswith("class")] == ["class Net(Model):"]
    lines = written.source.splitlines()
    return [line.removeprefix("class ").partition("(")[0] for line in lines if line.startswith("class")]


def _result(written: Written, x: np.ndarray) -> bytes:
    model = instantiate(written, "net", "numpy")
    model.load_record(weights.tensors(written.record, "numpy"), layout="burn")
    y = model(x)
    return bytes(y.backend.to_bytes(y))


@pytest.mark.parametrize("gate", [None, "Sigmoid", "HardSigmoid"])
@pytest.mark.parametrize("seed", range(6))
def test_inverted_residuals_are_a_class_with_or_without_excitation(seed: int, gate: str | None) -> None:
    drawn = _Images(seed)
    kernel = drawn.random.choice((3, 5))
    for _ in range(drawn.random.randint(2, 3)):
        drawn.change()
        for _ in range(drawn.random.randint(3, 4)):
            drawn.inverted(gate, kernel)
    assert "InvertedResidual" in _classes(drawn)
