"""Products of two tensors and normalization of rows equal onnxruntime's results in float32 and are close in int8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.micro.builder.build import Options, build, calibrated
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.reference import quantize
from onnx import TensorProto, helper, numpy_helper

from tools.micropython import Port

RNG = np.random.default_rng(0)


def number(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(0, 1, shape).astype(np.float32)


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op} {output}", **attributes)


def model(shape: list[int], nodes: list[onnx.NodeProto], **constants: np.ndarray[Any, Any]) -> bytes:
    given = [numpy_helper.from_array(c, n) for n, c in constants.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [
        helper.make_tensor_value_info(
            "y", TensorProto.INT64 if nodes[-1].op_type.startswith("Arg") else TensorProto.FLOAT, None
        )
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())


def attention() -> bytes:
    """A transformer block: normalization, two heads, and a residual connection."""
    nodes = [
        node("LayerNormalization", "x g b", "n"),
        node("MatMul", "n wq", "q"),
        node("MatMul", "n wk", "k"),
        node("MatMul", "n wv", "v"),
        node("Reshape", "q heads", "q4"),
        node("Reshape", "k heads", "k4"),
        node("Reshape", "v heads", "v4"),
        node("Transpose", "q4", "qh", perm=(0, 2, 1, 3)),
        node("Transpose", "k4", "kh", perm=(0, 2, 3, 1)),
        node("Transpose", "v4", "vh", perm=(0, 2, 1, 3)),
        node("MatMul", "qh kh", "scores"),
        node("Mul", "scores factor", "scaled"),
        node("Softmax", "scaled", "weights"),
        node("MatMul", "weights vh", "mixed"),
        node("Transpose", "mixed", "back", perm=(0, 2, 1, 3)),
        node("Reshape", "back flat", "joined"),
        node("MatMul", "joined wo", "out"),
        node("Add", "x out", "y"),
    ]
    weights = {name: number(8, 8) / 3 for name in ("wq", "wk", "wv", "wo")}
    shapes = {"heads": np.array([1, 6, 2, 4]), "flat": np.array([1, 6, 8])}
    return model([1, 6, 8], nodes, g=number(8), b=number(8), factor=np.float32(0.5).reshape(1), **shapes, **weights)


MODELS = {
    "attention": attention(),
    "layer norm": model([1, 5, 12], [node("LayerNormalization", "x g b", "y")], g=number(12), b=number(12)),
    "layer norm of two axes": model([1, 4, 6], [node("LayerNormalization", "x g", "y", axis=1)], g=number(4, 6)),
    "instance norm": model([1, 3, 6, 5], [node("InstanceNormalization", "x g b", "y")], g=number(3), b=number(3)),
    "index of the greatest": model([1, 4, 6], [node("ArgMax", "x", "y", axis=2, keepdims=0)]),
    "index of the least": model([1, 4, 6], [node("ArgMin", "x", "y", axis=1)]),
    "product": model([1, 5, 6], [node("Transpose", "x", "z", perm=(0, 2, 1)), node("MatMul", "x z", "y")]),
}


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_onnxruntime(name: str) -> None:
    data = MODELS[name]
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    samples = np.random.default_rng(1).normal(0.3, 1, (24, *session.get_inputs()[0].shape[1:])).astype(np.float32)
    graph = fuse(read_graph(data, "m"))
    laid = check_samples({"x": samples}, graph)["x"]
    for x, own in zip(samples[:4], laid[:4], strict=True):
        expected = session.run(None, {"x": x[None]})[0]
        found = graph.run({graph.inputs[0]: own})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), expected.reshape(-1), rtol=1e-4, atol=1e-5)
    # The index may differ where two elements have the same byte.
    assert calibrated(graph, {"x": samples}, Options("m"))[1].rms < (0.15 if name.startswith("index") else 0.012)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("as_float", [False, True])
def test_micropython_computes_the_same(name: str, as_float: bool, unix_port: Port, tmp_path: Any) -> None:
    graph = read_graph(MODELS[name], "m")
    samples = np.random.default_rng(2).normal(0, 1, (16, *graph.shapes[graph.inputs[0]])).astype(np.float32)
    result = build(graph, Options("m"), None if as_float else {"x": samples})
    for file, text in {**{k: v.encode() for k, v in result.sources.items()}, **result.extra}.items():
        (tmp_path / file).write_bytes(text)
    given = samples[0].reshape(-1).tolist()
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport m\nprint(*m.predict({given!r}))"
    found = [float(v) for v in unix_port.run(script, heap="16M", micropypath=[]).check().stdout.split()]
    expected = fuse(graph).run({graph.inputs[0]: samples[0]})[graph.outputs[0]].reshape(-1)
    if name.startswith("index") and not as_float:
        port, own = result.program.inputs[0], result.graph
        expected = own.run({own.inputs[0]: quantize(samples[0], port.scale, port.zero)})[own.outputs[0]].reshape(-1)
        assert found == expected.tolist()
    np.testing.assert_allclose(found, expected, atol=1e-4 if as_float else 0.08 * float(np.ptp(expected)))
