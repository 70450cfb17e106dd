"""float32 models in .tflite files, each of one operator, give LiteRT's results for all options of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph

from tools.microcontrollers import litert
from tools.microcontrollers.tflite_files import File

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)
X = "x"  # where the model's input stands among an operator's inputs
TANH = "tanh"  # where the hyperbolic tangent of the model's input stands

IMAGE = (1, 5, 6, 4)


class Operator(NamedTuple):
    """kind: the schema's; given: the inputs; outs: the outputs' shapes; shape: of the model's input."""

    kind: str
    outs: tuple[tuple[int, ...], ...]
    given: tuple[Any, ...] = (X,)
    table: str = ""
    options: Mapping[str, Any] = MappingProxyType({})
    shape: tuple[int, ...] = IMAGE
    dtype: str = "float32"


def _r(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def _i(*numbers: Any) -> Array:
    return np.array(numbers, np.int32)


def _conv(out: tuple[int, ...], weights: Array, bias: bool, same: bool, **more: int) -> Operator:
    given = (X, weights, _r(weights.shape[0])) if bias else (X, weights)
    how = {"Padding": 0 if same else 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, **more}
    return Operator("CONV_2D", (out,), given, "Conv2D", how)


def _depthwise(out: tuple[int, ...], weights: Array, same: bool, **more: int) -> Operator:
    how = {"Padding": 0 if same else 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, **more}
    given = (X, weights, _r(weights.shape[3]))
    return Operator("DEPTHWISE_CONV_2D", (out,), given, "DepthwiseConv2D", {"DepthMultiplier": 1, **how})


def _pool(kind: str, out: tuple[int, ...], same: bool, size: tuple[int, int], strides: tuple[int, int]) -> Operator:
    how = {"Padding": 0 if same else 1, "StrideH": strides[0], "StrideW": strides[1]}
    return Operator(kind, (out,), (X,), "Pool2D", {**how, "FilterHeight": size[0], "FilterWidth": size[1]})


def _transposed(out: tuple[int, ...], weights: Array, same: bool, strides: tuple[int, int], bias: bool) -> Operator:
    how = {"Padding": 0 if same else 1, "StrideH": strides[0], "StrideW": strides[1]}
    given = (_i(*out), weights, X, *([_r(out[3])] if bias else []))
    return Operator("TRANSPOSE_CONV", (out,), given, "TransposeConv", how)


def _slice(out: tuple[int, ...], begin: Array, end: Array, steps: Array, **masks: int) -> Operator:
    return Operator("STRIDED_SLICE", (out,), (X, begin, end, steps), "StridedSlice", masks)


def _resize(kind: str, size: tuple[int, int], **how: bool) -> Operator:
    name = "ResizeBilinear" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    return Operator(kind, ((1, *size, 4),), (X, _i(*size)), name, how)


def _plain(kind: str, given: tuple[Any, ...] = (X,), table: str = "", **how: Any) -> Operator:
    return Operator(kind, (IMAGE,), given, table, how)


POSITIVE = ("LOG", "SQRT", "RSQRT", "POW")

OPERATORS: dict[str, Operator] = {
    "a convolution": _conv((1, 3, 4, 3), _r(3, 3, 3, 4), True, False),
    "a convolution with strides": _conv((1, 3, 2, 3), _r(3, 3, 2, 4), True, True, StrideH=2, StrideW=3),
    "a convolution with dilations": _conv((1, 1, 5, 2), _r(2, 3, 2, 4), True, False, DilationHFactor=2),
    "a convolution with dilations and zeros": _conv((1, 5, 6, 2), _r(2, 3, 3, 4), True, True, DilationWFactor=2),
    "a convolution and relu": _conv((1, 5, 6, 2), _r(2, 1, 1, 4), True, True, FusedActivationFunction=1),
    "a convolution and relu to 1": _conv((1, 5, 6, 2), 3 * _r(2, 1, 1, 4), True, True, FusedActivationFunction=2),
    "a convolution and relu to 6": _conv((1, 5, 6, 2), 9 * _r(2, 1, 1, 4), True, True, FusedActivationFunction=3),
    "each channel": _depthwise((1, 3, 5, 4), _r(1, 3, 2, 4), False),
    "each channel with strides": _depthwise((1, 3, 3, 4), _r(1, 2, 3, 4), True, StrideH=2, StrideW=2),
    "each channel with dilations": _depthwise((1, 1, 6, 4), _r(1, 3, 1, 4), False, DilationHFactor=2),
    "each channel twice": _depthwise((1, 3, 4, 8), _r(1, 3, 3, 8), False, DepthMultiplier=2),
    "each channel and relu to 6": _depthwise((1, 5, 6, 4), 9 * _r(1, 1, 1, 4), True, FusedActivationFunction=3),
    "transposed": _transposed((1, 11, 8, 3), _r(3, 3, 3, 4), False, (2, 1), False),
    "transposed and cut": _transposed((1, 10, 12, 3), _r(3, 3, 3, 4), True, (2, 2), False),
    "transposed with bias": _transposed((1, 5, 18, 2), _r(2, 2, 4, 4), True, (1, 3), True),
    "dense": Operator("FULLY_CONNECTED", ((1, 3),), (X, _r(3, 7), _r(3)), "FullyConnected", shape=(1, 7)),
    "dense rows": Operator("FULLY_CONNECTED", ((6, 3),), (X, _r(3, 7)), "FullyConnected", shape=(2, 3, 7)),
    "dense rows that keep their axes": Operator(
        "FULLY_CONNECTED", ((2, 3, 4),), (X, _r(4, 7), _r(4)), "FullyConnected", {"KeepNumDims": True}, (2, 3, 7)
    ),
    "dense of an image": Operator(
        "FULLY_CONNECTED", ((1, 3),), (X, _r(3, 120)), "FullyConnected", {"FusedActivationFunction": 2}
    ),
    "a product": Operator("BATCH_MATMUL", ((3, 5),), (X, _r(4, 5)), "BatchMatMul", {}, (3, 4)),
    "a product, the first turned": Operator(
        "BATCH_MATMUL", ((2, 4, 4),), (X, TANH), "BatchMatMul", {"AdjX": True}, (2, 3, 4)
    ),
    "a product, the second turned": Operator(
        "BATCH_MATMUL", ((2, 3, 3),), (X, TANH), "BatchMatMul", {"AdjY": True}, (2, 3, 4)
    ),
    "maxima": _pool("MAX_POOL_2D", (1, 3, 5, 4), False, (3, 2), (1, 1)),
    "maxima with strides": _pool("MAX_POOL_2D", (1, 3, 2, 4), True, (2, 3), (2, 3)),
    "means": _pool("AVERAGE_POOL_2D", (1, 2, 2, 4), False, (2, 3), (2, 3)),
    "means with zeros": _pool("AVERAGE_POOL_2D", (1, 3, 6, 4), True, (3, 3), (2, 1)),
    "add": _plain("ADD", (X, _r(4)), "Add", FusedActivationFunction=3),
    "sub": _plain("SUB", (X, _r(4)), "Sub", FusedActivationFunction=1),
    "mul": _plain("MUL", (X, _r(4)), "Mul", FusedActivationFunction=2),
    "div": _plain("DIV", (X, _r(4) + 2), "Div"),
    "a constant minus": _plain("SUB", (_r(5, 6, 4), X), "Sub"),
    "minus another": _plain("SUB", (TANH, X), "Sub", FusedActivationFunction=1),
    **{
        k.lower(): _plain(k)
        for k in ("RELU", "LOGISTIC", "TANH", "HARD_SWISH", "EXP", "LOG", "SQRT", "ABS", "NEG", "SIN", "COS", "FLOOR")
    },
    **{k.lower(): _plain(k) for k in ("SIGN", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "RSQRT", "SQUARE")},
    "maximum": _plain("MAXIMUM", (X, _r(6, 1))),
    "minimum": _plain("MINIMUM", (X, TANH)),
    "pow": _plain("POW", (X, np.array(2.5, np.float32))),
    "squared difference": _plain("SQUARED_DIFFERENCE", (X, _r(4))),
    "leaky": _plain("LEAKY_RELU", (X,), "LeakyRelu", Alpha=0.25),
    "gelu": _plain("GELU", (X,), "Gelu", Approximate=False),
    "gelu by tanh": _plain("GELU", (X,), "Gelu", Approximate=True),
    "slopes": _plain("PRELU", (X, _r(1, 1, 4))),
    "softmax": _plain("SOFTMAX", (X,), "Softmax", Beta=1.0),
    "a softmax that is flatter": _plain("SOFTMAX", (X,), "Softmax", Beta=0.25),
    "log softmax": _plain("LOG_SOFTMAX"),
    "unit length": _plain("L2_NORMALIZATION", (X,), "L2Norm"),
    "mean": Operator("MEAN", ((1, 4),), (X, _i(1, 2)), "Reducer"),
    "mean of the last axis": Operator("MEAN", ((1, 5, 6, 1),), (X, _i(-1)), "Reducer", {"KeepDims": True}),
    "sum": Operator("SUM", ((1, 5, 4),), (X, _i(2)), "Reducer"),
    "greatest": Operator("REDUCE_MAX", ((1, 6, 4),), (X, _i(1)), "Reducer"),
    "least": Operator("REDUCE_MIN", ((1, 1, 6, 4),), (X, _i(1)), "Reducer", {"KeepDims": True}),
    "place of the greatest": Operator("ARG_MAX", ((1, 5, 6),), (X, _i(3)), "ArgMax", {"OutputType": 4}, dtype="int64"),
    "place of the least": Operator("ARG_MIN", ((1, 6, 4),), (X, _i(1)), "ArgMin", {"OutputType": 4}, dtype="int64"),
    "reshaped": Operator("RESHAPE", ((1, 30, 4),), (X, _i(1, 30, 4)), "Reshape", {"NewShape": (1, 30, 4)}),
    "squeezed": Operator("SQUEEZE", ((5, 6, 4),), (X,), "Squeeze", {"SqueezeDims": (0,)}),
    "an axis more": Operator("EXPAND_DIMS", ((1, 5, 1, 6, 4),), (X, np.array(2, np.int32))),
    "turned": Operator("TRANSPOSE", ((1, 4, 5, 6),), (X, _i(0, 3, 1, 2))),
    "joined": Operator("CONCATENATION", ((1, 5, 14, 4),), (X, _r(1, 5, 2, 4), TANH), "Concatenation", {"Axis": 2}),
    "packed": Operator("PACK", ((1, 5, 2, 6, 4),), (X, TANH), "Pack", {"ValuesCount": 2, "Axis": 2}),
    "unpacked": Operator("UNPACK", ((1, 5, 4),) * 6, (X,), "Unpack", {"Num": 6, "Axis": 2}),
    "split": Operator("SPLIT", ((1, 5, 2, 4),) * 3, (_i(2), X), "Split", {"NumSplits": 3}),
    "split by sizes": Operator(
        "SPLIT_V", ((1, 5, 1, 4), (1, 5, 3, 4), (1, 5, 2, 4)), (X, _i(1, -1, 2), _i(2)), "SplitV", {"NumSplits": 3}
    ),
    "split by known sizes": Operator(
        "SPLIT_V", ((1, 5, 6, 1), (1, 5, 6, 3)), (X, _i(1, 3), _i(-1)), "SplitV", {"NumSplits": 2}
    ),
    "cut": Operator("SLICE", ((1, 2, 5, 3),), (X, _i(0, 2, 1, 1), _i(1, 2, -1, 3))),
    "every second": _slice((1, 2, 2, 4), _i(0, 1, 5, 0), _i(1, 5, 1, 4), _i(1, 2, -2, 1)),
    "from the beginning": _slice((1, 3, 4, 4), _i(0, 2, 2, 0), _i(1, 3, 6, 4), _i(1, 1, 1, 1), BeginMask=2),
    "to the end": _slice((1, 3, 2, 4), _i(0, 2, 2, 0), _i(1, 3, 4, 1), _i(1, 1, 1, 1), EndMask=10),
    "all, backward": _slice((1, 5, 6, 4), _i(0, 2, 2, 0), _i(1, 3, 4, 4), _i(1, -1, -1, 1), BeginMask=6, EndMask=6),
    "one row": _slice((1, 6, 4), _i(0, 3, 0, 0), _i(1, 4, 6, 4), _i(1, 1, 1, 1), ShrinkAxisMask=2),
    "the last row": _slice((1, 6, 4), _i(0, -1, 0, 0), _i(1, 0, 6, 4), _i(1, 1, 1, 1), ShrinkAxisMask=2),
    "one column": _slice(
        (5, 4), _i(0, 1, -2, 0), _i(1, 4, 6, 4), _i(1, 1, 1, 1), ShrinkAxisMask=5, BeginMask=2, EndMask=2
    ),
    "of fewer axes": _slice((1, 3, 6, 4), _i(0, 1), _i(1, 4), _i(1, 1)),
    "padded": Operator("PAD", ((1, 8, 7, 4),), (X, _i((0, 0), (1, 2), (0, 1), (0, 0)))),
    "padded with a number": Operator(
        "PADV2", ((1, 5, 9, 5),), (X, _i((0, 0), (0, 0), (2, 1), (1, 0)), np.array(0.5, np.float32))
    ),
    "mirrored": Operator(
        "MIRROR_PAD", ((1, 8, 7, 4),), (X, _i((0, 0), (1, 2), (0, 1), (0, 0))), "MirrorPad", {"Mode": 0}
    ),
    "nearest": _resize("RESIZE_NEAREST_NEIGHBOR", (7, 4)),
    "nearest by centers": _resize("RESIZE_NEAREST_NEIGHBOR", (8, 9), HalfPixelCenters=True),
    "nearest by corners": _resize("RESIZE_NEAREST_NEIGHBOR", (9, 4), AlignCorners=True),
    "linear": _resize("RESIZE_BILINEAR", (7, 4)),
    "linear by centers": _resize("RESIZE_BILINEAR", (8, 9), HalfPixelCenters=True),
    "linear by corners": _resize("RESIZE_BILINEAR", (9, 4), AlignCorners=True),
    "depth to space": Operator("DEPTH_TO_SPACE", ((1, 10, 12, 1),), (X,), "DepthToSpace", {"BlockSize": 2}),
    "space to depth": Operator("SPACE_TO_DEPTH", ((1, 2, 3, 8),), (X,), "SpaceToDepth", {"BlockSize": 2}, (1, 4, 6, 2)),
    "places": Operator("GATHER", ((1, 5, 3, 4),), (X, _i(5, 0, 2)), "Gather", {"Axis": 2}),
    **{
        kind.lower(): Operator(kind, (IMAGE,), (X, _r(4)), dtype="bool")
        for kind in ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    },
    "equal": Operator("EQUAL", (IMAGE,), (X, X), dtype="bool"),
    "not equal": Operator("NOT_EQUAL", (IMAGE,), (X, TANH), dtype="bool"),
    "repeated": Operator("TILE", ((1, 10, 6, 12),), (X, _i(1, 2, 1, 3))),
}  # fmt: skip

JOINED = {"Axis": -1, "FusedActivationFunction": 1}
ELSEWHERE: dict[str, tuple[Operator, Callable[[Array], Array]]] = {
    "ceil": (_plain("CEIL"), np.ceil),
    "elu": (_plain("ELU"), lambda x: np.where(x > 0, x, np.expm1(x))),
    "expanded": (
        Operator("BROADCAST_TO", ((1, 5, 6, 4),), (X, _i(1, 5, 6, 4)), shape=(1, 5, 1, 4)),
        lambda x: np.broadcast_to(x, (1, 5, 6, 4)),
    ),
    "joined and rectified": (
        Operator("CONCATENATION", ((1, 5, 6, 8),), (X, TANH), "Concatenation", JOINED),
        lambda x: np.maximum(np.concatenate([x, np.tanh(x)], -1), 0),
    ),
    "a convolution without bias": (
        _conv((1, 5, 6, 2), np.ones((2, 1, 1, 4), np.float32), False, True),
        lambda x: np.repeat(x.sum(-1, keepdims=True), 2, -1),
    ),
}
"""Operators that LiteRT's reference kernels do not have, and what NumPy computes."""


def written(op: Operator, which: int) -> bytes:
    """A model of the operator whose output is output `which` of it."""
    file = File()
    x = file.tensor(op.shape, "float32")
    given = []
    for value in op.given:
        if isinstance(value, str) and value == TANH:
            given.append(file.tensor(op.shape, "float32"))
            file.operator("TANH", [x], [given[-1]])
        else:
            given.append(x if isinstance(value, str) else file.constant(value))
    outs = [file.tensor(shape, op.dtype) for shape in op.outs]
    file.operator(op.kind, given, outs, op.table, **op.options)
    file.inputs, file.outputs = [x], [outs[which]]
    return file.written()


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")
def test_float_operators_are_as_in_litert(tmp_path: Path) -> None:
    models = {f"{name} {k}": written(op, k) for name, op in OPERATORS.items() for k in range(len(op.outs))}
    inputs: dict[str, Array] = {}
    for key in models:
        op = OPERATORS[key.rpartition(" ")[0]]
        inputs[key] = RNG.uniform(0.1 if op.kind in POSITIVE else -3, 3, (2, *op.shape)).astype(np.float32)
    expected = litert.answers(models, inputs, tmp_path)
    for key, data in models.items():
        check(data, inputs[key], expected[key], key)


def check(data: bytes, inputs: Array, expected: Array, what: str = "") -> None:
    graph = build(read_graph(data, "m"), Options("m", floats=True)).graph
    (name,) = graph.inputs
    for x, y in zip(inputs, expected, strict=True):
        found = graph.run({name: x.reshape(graph.shapes[name])})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), y.reshape(-1), rtol=1e-5, atol=1e-5, err_msg=what)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_float_operators_are_as_in_numpy(name: str) -> None:
    op, wanted = ELSEWHERE[name]
    x = RNG.uniform(-3, 3, (2, *op.shape)).astype(np.float32)
    check(written(op, 0), x, np.array([wanted(row) for row in x]))
