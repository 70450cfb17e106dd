"""Each way of importing an operator gives onnxruntime's results in floats; operators and forms that are not imported
are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.errors import EmberletError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto, helper, numpy_helper
from support.microcontrollers.words import inferred
from support.rows import every

Array = np.ndarray[Any, Any]
# A case: operator, shape of x, constants, attributes; "x" among the constants' names says where x stands.
Case = tuple[str, list[int], dict[str, Any], dict[str, Any]]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(11)


def _r(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def _i(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _f(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def _model(case: Case, behind: str = "", outputs: str = "y") -> bytes:
    """One node. Constants: arrays; None for an absent input; a name in angle brackets for another model input of the
    given shape. behind: an operator that x passes first, which may leave its elements in another order."""
    op, shape, constants, how = case
    how = dict(how)
    opset, dtype, domain = how.pop("opset", 18), how.pop("dtype", FLOAT), how.pop("domain", "")
    names, inputs, weights = [], [helper.make_tensor_value_info("x", dtype, shape)], []
    for name, value in constants.items() if "x" in constants else {"x": 0, **constants}.items():
        if name.startswith("<"):
            kind = INT64 if "int" in name else FLOAT
            inputs.append(helper.make_tensor_value_info(name.strip("<>"), kind, value))
            names.append(name.strip("<>"))
        elif name == "x":
            names.append("x2" if behind else "x")
        elif value is None:
            names.append("")
        else:
            weights.append(numpy_helper.from_array(np.asarray(value), name))
            names.append(name)
    nodes = [helper.make_node(op, names, outputs.split(), name="layer", domain=domain, **how)]
    if behind == "Conv":  # leaves channels last
        weights.append(numpy_helper.from_array(_r(shape[1], shape[1], *[1] * (len(shape) - 2)), "kernel"))
        nodes.insert(0, helper.make_node("Conv", ["x", "kernel"], ["x2"]))
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    ys = [onnx.ValueInfoProto(name=n) for n in outputs.split() if n != "_"]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, ys, weights), opset_imports=imports, ir_version=9)
    return bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())


IMAGE = [1, 4, 5, 6]
COMPUTED: dict[str, Case] = {
    "a slope for each channel": ("PRelu", IMAGE, {"s": _r(4, 1, 1)}, {}),
    "a slope for each column": ("PRelu", IMAGE, {"s": _r(6)}, {}),
    "one slope in many numbers": ("PRelu", IMAGE, {"s": np.full((4, 1, 1), 0.3, np.float32)}, {}),
    "one slope": ("PRelu", IMAGE, {"s": _f(-0.4)}, {}),
    "depth to space": ("DepthToSpace", [1, 8, 3, 5], {}, {"blocksize": 2}),
    "depth to space by columns": ("DepthToSpace", [1, 18, 2, 3], {}, {"blocksize": 3, "mode": "CRD"}),
    "space to depth": ("SpaceToDepth", [1, 3, 4, 6], {}, {"blocksize": 2}),
    "a constant minus": ("Sub", IMAGE, {"c": _r(4, 1, 1), "x": 0}, {}),
    "a constant by": ("Div", IMAGE, {"c": _r(4, 1, 1), "x": 0}, {}),
    "by a constant for each column": ("Div", IMAGE, {"c": _r(6) + 2}, {}),
    "a constant for each row": ("Add", IMAGE, {"c": _r(5, 1)}, {}),
    "a constant of more axes": ("Mul", [4, 6], {"c": _r(1, 3, 4, 6)}, {}),
    "a constant that repeats x": ("Add", [1, 4, 1, 6], {"c": _r(1, 1, 5, 1)}, {}),
    "bounds": ("Clip", IMAGE, {"low": np.float32(-0.3), "high": np.float32(0.2)}, {}),
    "a lower bound": ("Clip", IMAGE, {"low": np.float32(-0.3)}, {}),
    "an upper bound": ("Clip", IMAGE, {"low": None, "high": np.float32(0.2)}, {}),
    "softmax of channels": ("Softmax", IMAGE, {}, {"axis": 1}),
    "softmax of rows": ("LogSoftmax", IMAGE, {}, {"axis": 2}),
    "softmax of one": ("Softmax", [1, 4, 1, 1], {}, {"axis": -1}),
    "flattened softmax of one axis": ("Softmax", [1, 4, 1, 1], {}, {"axis": 1, "opset": 11}),
    "gemm": ("Gemm", [1, 5], {"w": _r(5, 3), "b": _r(3)}, {"alpha": 0.5, "beta": -2.0}),
    "gemm, turned": ("Gemm", [1, 5], {"w": _r(3, 5), "b": _r(1, 3)}, {"transB": 1, "alpha": 0.5, "beta": 3.0}),
    "gemm with one offset": ("Gemm", [1, 5], {"w": _r(5, 3), "b": _r(1)}, {}),
    "gemm without offsets": ("Gemm", [1, 5], {"w": _r(5, 3)}, {"alpha": 0.25}),
    "rows of a product": ("MatMul", [1, 4, 5], {"w": _r(5, 3)}, {}),
    "every second": ("Slice", IMAGE, {"b": _i(1), "e": _i(6), "a": _i(-1), "s": _i(2)}, {}),
    "backward": ("Slice", IMAGE, {"b": _i(4, 3), "e": _i(-99, 0), "a": _i(2, 1), "s": _i(-2, -1)}, {}),
    "all of it": ("Slice", IMAGE, {"b": _i(0), "e": _i(99), "a": _i(1), "s": _i(1)}, {}),
    "places at one distance": ("Gather", IMAGE, {"at": _i(5, 3, 1)}, {"axis": 3}),
    "places at any distance": ("Gather", IMAGE, {"at": _i(0, 3, 1, 1)}, {"axis": 1}),
    "one place": ("Gather", IMAGE, {"at": np.int64(-2)}, {"axis": 1}),
    "one place twice": ("Gather", IMAGE, {"at": _i(2, 2)}, {"axis": 2}),
    "places of two axes": ("Gather", IMAGE, {"at": _i(0, 1, 2, 3).reshape(2, 2)}, {"axis": 1}),
    "padding of two axes": ("Pad", IMAGE, {"p": _i(0, 1, 2, 0, 0, 0, 3, 1), "v": np.float32(-2)}, {}),
    "mirrored": ("Pad", IMAGE, {"p": _i(0, 0, 2, 1, 0, 0, 1, 2)}, {"mode": "reflect"}),
    "nearest by factors": ("Resize", IMAGE, {"r": None, "s": _f(1, 1, 2, 3)}, {"mode": "nearest"}),
    "nearest, not by factors": ("Resize", IMAGE, {"r": None, "n": None, "s": _i(1, 4, 7, 4)}, {"mode": "nearest"}),
    "nearest, up": (
        "Resize",
        IMAGE,
        {"r": None, "s": _f(1, 1, 2, 2)},
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"},
    ),
    "nearest, down": (
        "Resize",
        IMAGE,
        {"r": None, "s": _f(1, 1, 2, 2)},
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "linear along one axis": ("Resize", IMAGE, {"r": None, "n": None, "s": _i(1, 4, 5, 9)}, {"mode": "linear"}),
    "linear along two": (
        "Resize", IMAGE, {"r": None, "n": None, "s": _i(1, 4, 9, 4)},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "linear to the same size": ("Resize", IMAGE, {"r": None, "n": None, "s": _i(*IMAGE)}, {"mode": "linear"}),
    "sums along an axis": ("CumSum", IMAGE, {"axis": np.int64(1)}, {}),
    "sums before, from the end": ("CumSum", IMAGE, {"axis": np.int64(-1)}, {"exclusive": 1, "reverse": 1}),
    "greatest": ("TopK", IMAGE, {"k": _i(3)}, {"axis": 1}),
    "least": ("TopK", IMAGE, {"k": _i(4)}, {"axis": 1, "largest": 0}),
    "mean of channels": ("ReduceMean", IMAGE, {"axes": _i(1)}, {}),
    "mean of axes apart": ("ReduceMean", IMAGE, {"axes": _i(1, 3)}, {"keepdims": 0}),
    "mean of everything": ("ReduceMean", IMAGE, {}, {}),
    "least of rows": ("ReduceMin", IMAGE, {"axes": _i(2)}, {"keepdims": 0}),
    "lengths": ("ReduceL2", IMAGE, {"axes": _i(2, 3)}, {}),
    "a mean with padding": (
        "AveragePool", IMAGE, {},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    "a mean beyond the edge": (
        "AveragePool", IMAGE, {}, {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
    ),
    "a maximum beyond the edge": ("MaxPool", IMAGE, {}, {"kernel_shape": [3, 2], "strides": [3, 4], "ceil_mode": 1}),
    "a maximum of places apart": ("MaxPool", IMAGE, {}, {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    "statistics": (
        "BatchNormalization", IMAGE, {"g": _r(4), "b": _r(4), "m": _r(4), "v": _r(4) ** 2 + 0.1}, {"epsilon": 0.2},
    ),
    "instances": ("InstanceNormalization", IMAGE, {"g": _r(4), "b": _r(4)}, {"epsilon": 0.3}),
    "layers": ("LayerNormalization", IMAGE, {"g": _r(5, 6), "b": _r(5, 6)}, {"axis": 2, "epsilon": 0.3}),
    "layers without shifts": ("LayerNormalization", IMAGE, {"g": _r(6)}, {"axis": -1}),
    "unit length": ("LpNormalization", IMAGE, {}, {"axis": 1, "p": 2}),
    "unit sum": ("LpNormalization", IMAGE, {}, {"axis": -1, "p": 1}),
    "turned axes": ("Transpose", IMAGE, {}, {"perm": [0, 3, 1, 2]}),
    "repeated": ("Tile", IMAGE, {"n": _i(1, 2, 1, 3)}, {}),
    "expanded": ("Expand", [1, 4, 1, 6], {"n": _i(1, 4, 5, 6)}, {}),
    "flattened": ("Flatten", IMAGE, {}, {"axis": 1}),
    "reshaped": ("Reshape", IMAGE, {"n": _i(1, 10, -1)}, {}),
    "an axis more": ("Unsqueeze", IMAGE, {"n": _i(1)}, {}),
    "a power": ("Pow", IMAGE, {"e": np.float32(3)}, {}),
    "the least of x and a number": ("Min", IMAGE, {"c": np.float32(0.1)}, {}),
    "the least of x": ("Min", IMAGE, {}, {}),
    "the sum of x": ("Sum", IMAGE, {}, {}),
    "the mean of x": ("Mean", IMAGE, {}, {}),
    "transposed convolution": (
        "ConvTranspose", IMAGE, {"w": _r(4, 3, 3, 3), "b": _r(3)},
        {"strides": [2, 2], "pads": [1, 0, 1, 2], "output_padding": [1, 0]},
    ),
    "groups": ("Conv", IMAGE, {"w": _r(6, 2, 3, 2), "b": _r(6)}, {"group": 2, "pads": [0, 1, 2, 0]}),
    "each channel": ("Conv", IMAGE, {"w": _r(8, 1, 2, 3)}, {"group": 4, "strides": [1, 2], "dilations": [2, 1]}),
}  # fmt: skip


# -- what is not imported ---------------------------------------------------------------------------------------------

LSTM = {"w": _r(1, 8, 3), "r": _r(1, 8, 2)}
SEQUENCE = [4, 1, 3]
TWO = ("indices of the maxima", "(TopK.): the result is empty")  # have two outputs
REFUSED: dict[str, Case] = {
    "a transposed first operand": ("Gemm", [5, 1], {"w": _r(5, 3)}, {"transA": 1}),
    r"the third operand has shape \(4, 1\)": ("Gemm", [4, 5], {"w": _r(5, 3), "b": _r(4, 1)}, {}),
    r"shape \(2, 5, 3\), expected a matrix": ("MatMul", [1, 4, 5], {"w": _r(2, 5, 3)}, {}),
    "a product with a vector": ("MatMul", [4, 5], {"x": 0, "<v>": [5]}, {}),
    "padding is wider than its kernel": ("ConvTranspose", IMAGE, {"w": _r(4, 3, 2, 2)}, {"pads": [2, 0, 0, 0]}),
    "training mode": (
        "BatchNormalization", IMAGE, {"g": _r(4), "b": _r(4), "m": _r(4), "v": _r(4) ** 2}, {"training_mode": 1},
    ),
    "one or two spatial axes": ("Conv", [1, 2, 3, 3, 3], {"w": _r(2, 2, 1, 1, 1)}, {}),
    "operands aligned along an axis": ("Add", IMAGE, {"c": _r(4)}, {"opset": 6, "axis": 1, "broadcast": 1}),
    "softmax over several axes": ("Softmax", IMAGE, {}, {"axis": 1, "opset": 11}),
    "must be one positive number": ("Pow", IMAGE, {"base": np.float32(-2), "x": 0}, {}),
    "base must be one positive": ("Pow", IMAGE, {"base": _r(6) + 2, "x": 0}, {}),
    "(TopK.): the result is empty": ("TopK", IMAGE, {"k": _i(0)}, {}),
    "the result is empty": ("Slice", IMAGE, {"b": _i(3), "e": _i(3), "a": _i(1)}, {}),
    "tf_crop_and_resize is not supported": (
        "Resize", IMAGE, {"r": _f(0, 0, 0, 0, 1, 1, 1, 1), "n": None, "s": _i(1, 4, 7, 7)},
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    "the activations": ("LSTM", SEQUENCE, LSTM, {"hidden_size": 2, "activations": ["Tanh", "Tanh", "Tanh"]}),
    "clip and parameters": ("LSTM", SEQUENCE, LSTM, {"hidden_size": 2, "clip": 3.0}),
    "coupled gates": ("LSTM", SEQUENCE, LSTM, {"hidden_size": 2, "input_forget": 1}),
    "peepholes": (
        "LSTM", SEQUENCE, {**LSTM, "b": None, "n": None, "h": None, "c": None, "p": _r(1, 6)}, {"hidden_size": 2},
    ),
    "an? .*initial state.* other than zeros": (
        "LSTM", SEQUENCE, {**LSTM, "b": None, "n": None, "h": _r(1, 1, 2)}, {"hidden_size": 2},
    ),
    "sequence lengths that the model computes": (
        "GRU", SEQUENCE, {"x": 0, "w": _r(1, 6, 3), "r": _r(1, 6, 2), "b": None, "<int>": [1]}, {"hidden_size": 2},
    ),
    "padding that the model computes|must be constant": ("Pad", IMAGE, {"x": 0, "<int>": [8]}, {}),
}  # fmt: skip


@every("reason", REFUSED)
def test_what_is_not_imported_is_refused_with_a_reason(reason: str) -> None:
    with pytest.raises(EmberletError, match=reason) as raised:
        read_graph(_model(REFUSED[reason], outputs="y i" if reason in TWO else "y"), "m")
    assert "layer" in str(raised.value)  # names the node


NEARLY: dict[str, Case] = {
    "a transposed weight": ("Gemm", [1, 5], {"w": _r(3, 5)}, {"transB": 1}),
    "padding as wide as its kernel allows": (
        "ConvTranspose", IMAGE, {"w": _r(4, 3, 2, 2)}, {"pads": [1, 1, 1, 1], "dilations": [1, 1]},
    ),
    "all elements": ("TopK", IMAGE, {"k": _i(6)}, {}),
    "activations by name": (
        "LSTM", SEQUENCE, LSTM, {"hidden_size": 2, "activations": ["Sigmoid", "Tanh", "Tanh"]},
    ),
    "a state of zeros": (
        "LSTM", SEQUENCE, {**LSTM, "b": None, "n": None, "h": np.zeros((1, 1, 2), np.float32)}, {"hidden_size": 2},
    ),
    "known lengths": (
        "GRU", SEQUENCE, {"w": _r(1, 6, 3), "r": _r(1, 6, 2), "b": None, "n": np.array([4], np.int32)},
        {"hidden_size": 2, "linear_before_reset": 1},
    ),
    "a gate that is applied before": (
        "GRU", SEQUENCE, {"w": _r(1, 6, 3), "r": _r(1, 6, 2), "b": _r(1, 12)},
        {"hidden_size": 2, "direction": "reverse"},
    ),
    "both directions": (
        "LSTM", SEQUENCE, {"w": _r(2, 8, 3), "r": _r(2, 8, 2), "b": _r(2, 16)},
        {"hidden_size": 2, "direction": "bidirectional"},
    ),
    "rectified": (
        "RNN", SEQUENCE, {"w": _r(1, 2, 3), "r": _r(1, 2, 2), "b": _r(1, 4)},
        {"hidden_size": 2, "activations": ["Relu"]},
    ),
    "one positive base": ("Pow", IMAGE, {"base": np.float32(2), "x": 0}, {}),
    "one element": ("Slice", IMAGE, {"b": _i(3), "e": _i(4), "a": _i(2)}, {}),
}  # fmt: skip

COMPUTED |= NEARLY


@every(
    ("what", "behind"),
    [(n, b) for n, c in COMPUTED.items() for b in ("", "Conv") if not b or (c[1][0] == 1 and len(c[1]) > 2)],
)
def test_floats_are_onnxruntimes(what: str, behind: str) -> None:
    case = COMPUTED[what]
    data = _model(case, behind, "y i" if case[0] == "TopK" else "y")
    graph = read_graph(data, "m")
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    built = build(graph, Options("m", floats=True))
    for seed in range(2):
        x = np.random.default_rng(seed).uniform(-1, 1, case[1]).astype(np.float32)
        wanted = session.run(None, {"x": x})[0]
        np.testing.assert_allclose(inferred(built, x), wanted.reshape(-1), rtol=1e-4, atol=1e-5)


# Samples are batches of one; the reciprocal of numbers around 0 has no range.
BYTES = [n for n, c in COMPUTED.items() if c[1][0] == 1 and n != "a constant by"]


@every("what", BYTES)
def test_bytes_are_close_to_onnxruntimes(what: str) -> None:
    """Within 4 of the 255 steps of the output's range (or of 1), since the inputs are rounded as well."""
    case = COMPUTED[what]
    data = _model(case, outputs="y i" if case[0] == "TopK" else "y")
    samples = np.random.default_rng(7).uniform(-1, 1, (16, *case[1])).astype(np.float32)
    built = build(read_graph(data, "m"), Options("m"), {"x": samples[:, 0]})
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted = np.array([session.run(None, {"x": x})[0].reshape(-1) for x in samples])
    for x, y in zip(samples, wanted, strict=True):
        assert np.abs(inferred(built, x) - y).max() <= 4 * max(wanted.max() - wanted.min(), 1) / 255
