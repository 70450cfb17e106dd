"""The module that a node came from, as each exporter writes it into the node's metadata or name."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.codegen.reader.modules import MAX_DEPTH, MOST_PARTS, named_scope, written_scopes
from onnx import helper
from support.rows import every

NAMES, CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"


@every(
    ("name", "scope"),
    [
        # PyTorch's older exporter
        ("/layer1/layer1.0/conv1/Conv", ("layer1", "0", "conv1")),
        ("/layer1/layer1.0/layer1.0.2/conv1/Conv", ("layer1", "0", "2", "conv1")),
        ("/a/b/a.b.c/Conv", ("a", "b", "c")),
        ("/a.b/a.b.c/Conv", ("a", "b", "c")),
        ("/a/b.c/Conv", ("a", "b", "c")),
        ("/encoder/layers.3/attention/MatMul_1", ("encoder", "layers", "3", "attention")),
        ("/Conv", ()),
        ("/conv1/Conv", ("conv1",)),
        ("/conv1/Conv_12/Mul", ("conv1",)),  # of a fused node
        ("/conv1/Conv/Relu/Mul", ("conv1",)),
        ("/Mul/conv1/Add", ("Mul", "conv1")),
        ("/layer1/layer2.0/conv1/Conv", ("layer1", "layer2", "0", "conv1")),
        ("/a/x/a.b.0/Conv", ("a", "x", "a", "b", "0")),
        ("/a/a/Conv", ("a", "a")),
        ("/a/Adder/x", ("a", "Adder")),
        # no module
        ("Conv_12", None),
        ("layer1.0.conv1", None),
        ("", None),
        # onnxruntime's optimizer
        ("fused /mlp/fc1/Gemm", ("mlp", "fc1")),
        ("/mlp/act/Mul/QuickGeluFusion", ("mlp", "act")),
        ("/mlp/act/Mul/QuickGeluFusion/", ("mlp", "act")),
        ("/a/b/Add//MatMulFusion/AddFusion", ("a", "b")),
        ("/a/MyFusion_2/x", ("a",)),
        ("Gemm_3/GeluFusion", None),
        # Keras and TensorFlow Lite
        ("model/dense_1/MatMul", ("model", "dense_1")),
        ("m/conv2d_4/BiasAdd;m/conv2d_4/Conv2D;m/conv2d_2/Conv2D", ("m", "conv2d_4")),
        ("m/a/Relu;m/b/Add", ("m", "a")),  # as often: the first
        ("d/E;a/b;a/c", ("a",)),
        ("model/Relu/x;plain", ("model",)),
        ("Relu;Add/Sub", None),
        ("m/Relu/Deep;m/Add", ("m",)),
        # names that are too long
        ("/" + "/".join(["a"] * MAX_DEPTH) + "/Conv", ("a",) * MAX_DEPTH),
        ("/" + "/".join(["a"] * (MAX_DEPTH + 1)) + "/Conv", None),
        ("a." * MOST_PARTS + "/Conv", None),
        ("/conv" + "/Conv" * (MOST_PARTS - 1), ("conv",)),
        ("/conv" + "/Conv" * MOST_PARTS, None),
    ],
)
def test_the_module_in_a_nodes_name(name: str, scope: Any) -> None:
    assert named_scope(name) == scope


def noted(**metadata: str) -> tuple[Any, dict[Any, str]]:
    node = helper.make_node("Relu", ["x"], ["y"])
    for key, value in metadata.items():
        entry = node.metadata_props.add()
        entry.key, entry.value = {"names": NAMES, "classes": CLASSES}.get(key, key), value
    kinds: dict[Any, str] = {}
    return written_scopes(node, kinds), kinds


def test_the_modules_in_a_nodes_metadata_and_their_classes() -> None:
    path, kinds = noted(
        names="['', 'encoder', 'encoder.layers.0', 'relu']",
        classes="['net.Net', 'transformers.Encoder', 'transformers.Layer', 'aten.relu']",
    )
    assert path == ("encoder", "layers", "0")
    assert kinds == {(): "Net", ("encoder",): "Encoder", ("encoder", "layers", "0"): "Layer"}


def test_the_modules_in_a_namespace() -> None:
    text = ": net.Net/encoder: transformers.Encoder/encoder.0: Linear/relu: aten.relu"
    for key in ("namespace", "pkg.torch.onnx.namespace"):
        path, kinds = noted(**{key: text})
        assert path == ("encoder", "0")
        assert kinds == {(): "Net", ("encoder",): "Encoder", ("encoder", "0"): "Linear"}
    path, _ = noted(**{"namespace": "b: B/relu: R", "pkg.torch.onnx.namespace": "a: A/relu: R"})
    assert path == ("a",)
    path, _ = noted(names="['a', 'relu']", namespace="b: B/relu: R")
    assert path == ("a",)


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({}, None),
        ({"other": "['a', 'relu']"}, None),
        ({"namespace": ""}, None),
        ({"pkg.torch.onnx.namespace": "", "namespace": ": p.Model/b: p.B/x: y"}, None),
        ({"names": "['', 'fc', 'add']"}, ("fc",)),
        ({"names": "[]"}, ()),
        ({"names": "['', 'relu']"}, ()),
        ({"names": "['_empty_nn_module_stack_from_metadata_hook', 'relu']"}, None),
        ({"names": "['a', 'a@1', 'relu']"}, ("a",)),  # the second call of a module
        ({"names": "['a@b', 'relu']"}, ("a@b",)),
        ({"names": repr([".".join("a" * MAX_DEPTH), "relu"])}, ("a",) * MAX_DEPTH),
        ({"names": repr([".".join("a" * (MAX_DEPTH + 1)), "relu"])}, None),
    ],
)
def test_metadata_without_a_module(metadata: dict[str, str], path: Any) -> None:
    assert noted(**metadata)[0] == path


def test_the_first_class_of_a_module_stays() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    for key, value in ((NAMES, "['a', 'b', 'relu']"), (CLASSES, "['x.A', 'relu']")):
        entry = node.metadata_props.add()
        entry.key, entry.value = key, value
    kinds: dict[Any, str] = {("a",): "Before"}
    assert written_scopes(node, kinds) == ("b",)
    assert kinds == {("a",): "Before"}
