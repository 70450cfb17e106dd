"""Modules that have a name, in files that name none: inverted residuals, squeeze-and-excitations and the embedding of
patches are found from structure, whatever their sizes and weights, and equal to the flat code bit for bit. `--flat`
leaves them out."""

from __future__ import annotations

import gzip
import random

import numpy as np
import onnx
import pytest
from emberlet.codegen import weights
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.emit.module import Written
from emberlet.codegen.generation import translate
from models.index import HERE
from onnx import TensorProto, helper, numpy_helper
from support.nameless import stripped
from support.rows import every


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
@every("seed", range(6), share=2)
def test_inverted_residuals_are_a_class_with_or_without_excitation(seed: int, gate: str | None) -> None:
    drawn = _Images(seed)
    kernel = drawn.random.choice((3, 5))
    for _ in range(drawn.random.randint(2, 3)):
        drawn.change()
        for _ in range(drawn.random.randint(3, 4)):
            drawn.inverted(gate, kernel)
    classes = _classes(drawn)
    assert "InvertedResidual" in classes and ("SqueezeExcitation" in classes) is (gate is not None)


@every("seed", range(6), share=2)
def test_squeeze_and_excitations_are_a_class_wherever_they_are(seed: int) -> None:
    """In blocks of a kind, and beside them."""
    drawn = _Images(seed)
    gate = drawn.random.choice(("Sigmoid", "HardSigmoid"))
    for _ in range(drawn.random.randint(2, 4)):
        drawn.change()
        if drawn.random.random() < 0.5:
            drawn.x = drawn.node("Relu", drawn.x)
        drawn.x = drawn.excited(drawn.x, drawn.width, gate)
    for _ in range(3):
        drawn.inverted(gate, 3)
    assert _classes(drawn).count("SqueezeExcitation") == 1


def test_a_gate_of_another_value_is_no_squeeze_and_excitation() -> None:
    """The mean of one value gates another."""
    drawn = _Images(0)
    for _ in range(6):
        before = drawn.x
        drawn.x = drawn.node("Relu", drawn.conv(drawn.x, drawn.width, drawn.width, 3))
        hidden = drawn.node("Relu", drawn.conv(drawn.node("GlobalAveragePool", before), drawn.width, 2))
        drawn.x = drawn.node("Mul", drawn.x, drawn.node("Sigmoid", drawn.conv(hidden, 2, drawn.width)))
    assert "SqueezeExcitation" not in _classes(drawn)


@pytest.mark.parametrize("patch", [1, 2, 3, 4])
def test_the_embedding_of_patches_is_a_class(patch: int) -> None:
    drawn = _Images(patch)
    wide, rows = 8, (12 // patch) ** 2
    weights = drawn.weight(wide, drawn.width, patch, patch), drawn.weight(wide)
    x = drawn.node("Conv", "x", *weights, strides=[patch, patch], kernel_shape=[patch, patch])
    drawn.weights.append(numpy_helper.from_array(np.array([0, wide, rows]), "rows"))
    drawn.x = drawn.node("Transpose", drawn.node("Reshape", x, "rows"), perm=[0, 2, 1])
    for _ in range(4):
        y = drawn.node("LayerNormalization", drawn.x, drawn.weight(wide), drawn.weight(wide))
        y = drawn.node("Relu", drawn.node("Add", drawn.node("MatMul", y, drawn.weight(wide, 16)), drawn.weight(16)))
        y = drawn.node("Add", drawn.node("MatMul", y, drawn.weight(16, wide)), drawn.weight(wide))
        drawn.x = drawn.node("Add", drawn.x, y)
    assert ("PatchEmbedding" in _classes(drawn)) is (patch > 1)


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("timm_regnety", {"Bottleneck", "SqueezeExcitation"}),
        ("timm_efficientnet", {"InvertedResidual", "SqueezeExcitation"}),
        ("timm_mobilenetv3_traced", {"InvertedResidual", "SqueezeExcitation"}),
        ("timm_vit", {"EncoderLayer", "PatchEmbedding"}),
        ("segformer_traced", {"PatchEmbedding"}),
    ],
)
def test_architectures_without_names_have_them(name: str, classes: set[str]) -> None:
    data = gzip.decompress((HERE / "architectures" / f"{name}.onnx.gz").read_bytes())
    model = stripped(onnx.load_from_string(data), seed=1)
    lines = translate(model, "net", weights_name="net.bpk")[1].source.splitlines()
    found = {line.removeprefix("class ").partition("(")[0] for line in lines if line.startswith("class")}
    assert classes <= found and "ConvBlock" not in found
