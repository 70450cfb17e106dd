"""Models whose operators cannot be imported are refused with the reason; their neighbors that can be are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

Array = np.ndarray[Any, Any]

FLOAT, INT8, UINT8, INT32, INT64 = (getattr(TensorProto, name) for name in ("FLOAT", "INT8", "UINT8", "INT32", "INT64"))


def model(
    nodes: list[tuple[str, str, str, dict[str, Any]]],
    shape: list[int],
    constants: dict[str, Any] | None = None,
    outputs: str = "y",
    dtype: int = FLOAT,
    more: dict[str, tuple[int, list[int]]] | None = None,
    opset: int = 21,
) -> bytes:
    """A model of x and of the inputs in `more`. A node: operator, perhaps behind its domain and a colon; inputs,
    outputs and attributes."""
    made = []
    for op, given, results, how in nodes:
        domain, _, kind = op.rpartition(":")
        names = [n if n != "_" else "" for n in given.split()]
        made.append(helper.make_node(kind, names, results.split(), f"node {kind}", domain=domain, **how))
    inputs = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in {"x": (dtype, shape), **(more or {})}.items()]
    given = [numpy_helper.from_array(np.asarray(c), n) for n, c in (constants or {}).items()]
    ys = [onnx.ValueInfoProto(name=n) for n in outputs.split()]
    imports = [
        helper.make_opsetid("", opset),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 3),
    ]
    graph = helper.make_graph(made, "g", inputs, ys, given)
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def _r(*shape: int) -> Array:
    return np.random.default_rng(4).uniform(0.1, 1, shape).astype(np.float32)


def _f(value: Any) -> Array:
    return np.array(value, np.float32)


def _i(*values: int) -> Array:
    return np.array(values, np.int64)


S, Z = _f(0.1), np.uint8(3)
MICROSOFT = "com.microsoft:"
DYNAMIC = ("DynamicQuantizeLinear", "x", "q s z", {})


def quantizer(scale: Any = S, zero: Any = Z, again: Any = S) -> bytes:
    nodes = [("QuantizeLinear", "x s z", "q", {}), ("DequantizeLinear", "q t z", "y", {})]
    return model(nodes, [1, 4], {"s": scale, "t": again, "z": zero})


def integers(weights: str = "w", zero: str = "", **more: Any) -> bytes:
    """A product of integers that are quantized by their current range, with weights of a scale."""
    inputs = f"q {weights} z {zero}".strip()
    nodes = [
        DYNAMIC,
        ("MatMulInteger", inputs, "p", {}),
        ("Cast", "p", "f", {"to": FLOAT}),
        ("Mul", "s c", "t", {}),
        ("Mul", "f t", "y", {}),
    ]
    constants = {"w": np.ones((4, 2), np.int8), "c": _f(0.1)}
    return model(nodes, [1, 4], {n: v for n, v in (constants | more).items() if n != "more"}, more=more.get("more"))


def lstm(
    inputs: str = "x W R", outputs: str = "y", nodes: Any = (), steps: int = 3, batch: int = 1, **how: Any
) -> bytes:
    constants = {"W": _r(1, 8, 3), "R": _r(1, 8, 2)}
    return model(
        [*nodes, ("LSTM", inputs, outputs, {"hidden_size": 2, **how})], [steps, batch, 3], constants, outputs.split()[0]
    )


def normalized(op: str, shape: list[int], given: dict[str, Any], outputs: str = "y", **how: Any) -> bytes:
    return model([(op, "x " + " ".join(given), outputs, how)], shape, given, outputs.replace("_ ", ""))


def one(op: str, shape: list[int], given: dict[str, Any] | None = None, dtype: int = FLOAT, **how: Any) -> bytes:
    return model([(op, " ".join(["x", *(given or {})]), "y", how)], shape, given, dtype=dtype)


def computed(op: str, shape: list[int], other: tuple[int, list[int]], given: str = "x i", **how: Any) -> bytes:
    """An operator with a second input of the model, i."""
    constants = how.pop("constants", {})
    return model([(op, given, "y", how)], shape, constants, more={"i": other})


def block_weights(rows: int = 32, computed_weights: bool = False) -> bytes:
    how = {"K": rows, "N": 4, "bits": 4, "block_size": 16}
    blocks = -(-rows // 16)
    weights: dict[str, Any] = {"w": np.zeros((4, blocks, 8), np.uint8), "s": _r(4 * blocks)}
    more = {"w": (UINT8, [4, blocks, 8])} if computed_weights else None
    if computed_weights:
        del weights["w"]
    return model([(MICROSOFT + "MatMulNBits", "x w s", "y", how)], [1, rows], weights, more=more)


ACCEPTED: dict[str, Callable[[], bytes]] = {
    "a layer normalization of one factor": lambda: normalized("LayerNormalization", [2, 4], {"g": _r(1)}),
    "the longest rows": lambda: normalized("LayerNormalization", [1, 4096], {"g": _r(1)}),
    "groups with factors each": lambda: model(
        [("GroupNormalization", "x g b", "y", {"num_groups": 2})], [1, 4, 5], {"g": _r(2), "b": _r(2)}, opset=18
    ),
    "weights in blocks": block_weights,
}  # fmt: skip

REFUSED: dict[str, Callable[[], bytes]] = {
    "a cast from float32 to int8 is not supported": lambda: one("Cast", [1, 4], to=INT8),
    "a cast from float32 to int16 is not supported": lambda: one("Cast", [1, 4], to=TensorProto.INT16),
    "a cast from int16 to float32 is not supported": lambda: one("Cast", [1, 4], dtype=TensorProto.INT16, to=FLOAT),
    "dequantized with a scale other than 1": lambda: model(
        [("DequantizeLinear", "x s z", "a", {}), ("Cast", "x", "b", {"to": FLOAT}), ("Add", "a b", "y", {})],
        [1, 4], {"s": S, "z": Z}, dtype=UINT8,
    ),
    "quantized and dequantized with different scales": lambda: quantizer(again=_f(0.2)),
    "an activation with a scale for each channel": lambda: quantizer(_r(4), np.zeros(4, np.uint8), _r(4)),
    "the scale is 0.0, expected a positive number": lambda: quantizer(_f(0), again=_f(0)),
    "the scale is -0.5, expected a positive": lambda: quantizer(_f(-0.5), again=_f(-0.5)),
    "the scale 's' is infinite, so every number": lambda: quantizer(_f(np.inf), again=_f(np.inf)),
    "the zero point has dtype int32": lambda: model(
        [("DequantizeLinear", "x s z", "y", {})], [1, 4], {"s": S, "z": np.int32(0)}, dtype=INT32
    ),
    "weights that the model computes are not supported; they must": lambda: integers("i", more={"i": (INT8, [4, 2])}),
    "(MatMulInteger): weights that the model computes are": lambda: integers(
        zero="i", more={"i": (INT8, [])}
    ),
    "its integers must come from a DynamicQuantizeLinear": lambda: one(
        "MatMulInteger", [1, 4], {"w": np.ones((4, 2), np.uint8)}, UINT8
    ),
    "got 3 scales for weights of shape (4, 2)": lambda: model(
        [(MICROSOFT + "DynamicQuantizeMatMul", "x w s", "y", {})], [1, 4], {"w": np.ones((4, 2), np.int8), "s": _r(3)}
    ),
    "(DynamicQuantizeMatMul): weights that the model computes": lambda: model(
        [(MICROSOFT + "DynamicQuantizeMatMul", "x i s", "y", {})], [1, 4], {"s": S}, more={"i": (INT8, [4, 2])}
    ),
    "(DynamicQuantizeLSTM): weights that the model computes": lambda: model(
        [(MICROSOFT + "DynamicQuantizeLSTM", "x i r _ _ _ _ _ s z s z", "y", {"hidden_size": 2})], [3, 1, 3],
        {"r": np.zeros((1, 2, 8), np.int8), "s": _r(1), "z": np.zeros(1, np.int8)}, more={"i": (INT8, [1, 3, 8])},
    ),
    "a weight of 16400 rows; at most 16384": lambda: block_weights(16400),
    "(MatMulNBits): weights, scales or a bias that the model computes": lambda: block_weights(computed_weights=True),
    "a computed table is not supported": lambda: model(
        [(MICROSOFT + "GatherBlockQuantized", "x i s", "y", {"block_size": 16})], [4, 32], {"s": _r(4, 2)},
        dtype=UINT8, more={"i": (INT64, [1])},
    ),
    "k is 5, but there are only 4 elements": lambda: model(
        [("TopK", "x k", "y i", {})], [1, 4], {"k": _i(5)}
    ),
    "the batch size is 2; only 1 is supported": lambda: normalized(
        "InstanceNormalization", [2, 4, 5], {"g": _r(4), "b": _r(4)}
    ),
    "(GroupNormalization): the batch size is 2; only 1": lambda: normalized(
        "GroupNormalization", [2, 4, 5], {"g": _r(4), "b": _r(4)}, num_groups=2
    ),
    "(GlobalMaxPool): the batch size is 2; only 1": lambda: one("GlobalMaxPool", [2, 4, 5]),
    "(LSTM): the batch size is 2; only 1": lambda: lstm(batch=2),
    "the outputs mean and standard deviation are not": lambda: normalized(
        "LayerNormalization", [2, 4], {"g": _r(4)}, "y mean"
    ),
    "got 3 factors for 4 elements": lambda: normalized("LayerNormalization", [2, 4], {"g": _r(3)}),
    "rows have 40000 elements; at most": lambda: normalized("LayerNormalization", [1, 40000], {"g": _r(1)}),
    "axes that the model computes are not supported": lambda: computed("ReduceSum", [1, 4], (INT64, [1])),
    "(ReduceMean): integers are not supported": lambda: one("ReduceMean", [1, 4], {"a": _i(1)}, INT32),
    "the indices of the maxima are not supported": lambda: model(
        [("MaxPool", "x", "y i", {"kernel_shape": [2]})], [1, 2, 6], outputs="y i"
    ),
    "an initial state that the model computes is not supported": lambda: lstm(
        "x W R _ _ h", nodes=[("ReduceSum", "x", "sum", {}), ("Concat", "sum sum", "h", {"axis": 2})]
    ),
    "a bound must be constant": lambda: computed("Clip", [1, 4], (FLOAT, [])),
    "the slope must be constant": lambda: computed("PRelu", [1, 4], (FLOAT, [4])),
    "integers without a QuantizeLinear are not supported": lambda: one("Add", [1, 4], {"c": np.int8(1)}, INT8),
    "a constant of dtype uint64 is not supported": lambda: one("Add", [1, 4], {"c": np.uint64(1)}, TensorProto.UINT64),
    "numbers and booleans are supported": lambda: one(
        "Equal", [1, 4], {"c": np.array(["a"], object)}, TensorProto.STRING
    ),
    "the elements that it moves depend on|indices or sizes that the model computes": lambda: computed(
        "GatherElements", [2, 4], (INT64, [2, 2]), axis=1
    ),
    "expanding shape (1, 4) to (1200000, 4) is not supported": lambda: one("Expand", [1, 4], {"s": _i(1200000, 4)}),
    "input 'x' has shape (1, 0), which holds no elements": lambda: one("Relu", [1, 0]),
    "the weights (24,) should be (1, 8, 3)": lambda: model(
        [("LSTM", "x W R", "y", {"hidden_size": 2})], [3, 1, 3], {"W": _r(24), "R": _r(1, 8, 2)}
    ),
    "(AveragePool): the result is empty": lambda: one("AveragePool", [1, 2, 3], kernel_shape=[4]),
    "the input has shape (1, 2, 2, 2, 2); one or two spatial axes": lambda: one("GlobalMaxPool", [1, 2, 2, 2, 2]),
}  # fmt: skip


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_borders_on_a_refusal_is_imported(what: str) -> None:
    assert read_graph(ACCEPTED[what](), "m").outputs


@every("reason", REFUSED)
def test_what_is_not_imported_is_refused_with_a_reason(reason: str) -> None:
    with pytest.raises(ModelError) as raised:
        read_graph(REFUSED[reason](), "m")
    assert re.search("|".join(map(re.escape, reason.split("|"))), str(raised.value)), raised.value


@pytest.mark.parametrize(("dtype", "numbers"), [(UINT8, [0, 3, 200, 255]), (INT8, [-128, -1, 0, 127])])
def test_bytes_that_are_cast_and_given_out_are_the_same_numbers(dtype: int, numbers: list[int]) -> None:
    graph = build(read_graph(one("Cast", [1, 4], dtype=dtype, to=FLOAT), "m"), Options("m", floats=True)).graph
    found = graph.run({"x": np.array(numbers, np.float32)})[graph.outputs[0]]
    assert found.reshape(-1).tolist() == numbers
