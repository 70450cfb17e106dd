"""Loops over the distances from constant rows, as skl2onnx writes them, compute what onnxruntime computes; other loops
are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Nodes = Sequence[tuple[str, str, str, dict[str, Any]]]

ROWS, FEATURES = 5, 3
TABLE = np.random.default_rng(3).normal(0, 1, (ROWS, FEATURES)).astype(np.float32)
CONSTANTS: dict[str, Array] = {
    "two": np.array([2], np.float32), "three": np.array([3], np.float32), "third": np.array([1 / 3], np.float32),
    "powers": np.array([1, 2, 3], np.float32), "one": np.array([1]), "last": np.array([-1]), "zero": np.array([0]),
}  # fmt: skip


def loop(
    nodes: Nodes,
    outs: str = "after distance",
    table: Array | None = TABLE,
    x: tuple[int, ...] = (1, FEATURES),
    outputs: str = "y",
    scans: int = 1,
    **attributes: Any,
) -> bytes:
    """A model whose loop reads the row x ("before") and the rows of a table ("row"). table: None for an input."""
    body_nodes = [helper.make_node(op, a.split(), b.split(), **how) for op, a, b, how in nodes]
    used = {n for node in body_nodes for n in node.input}
    constants = [numpy_helper.from_array(v, k) for k, v in CONSTANTS.items() if k in used]
    states = ["before"] if scans == 1 else []
    given = [*states, "row"] if scans == 1 else ["before", "row"]
    shapes = {"before": x if scans == 1 else x[1:], "row": (FEATURES,)}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shapes[n]) for n in given]
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outs.split()]
    body = helper.make_graph(body_nodes, "body", values, kinds, constants)
    targets = ["state", "y"] if scans == 1 else ["y"]
    node = helper.make_node("Scan", ["x", "table"], targets, "loop", body=body, num_scan_inputs=scans, **attributes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    if table is None:
        inputs.append(helper.make_tensor_value_info("table", TensorProto.FLOAT, TABLE.shape))
    initial = [] if table is None else [numpy_helper.from_array(table, "table")]
    ys = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs.split()]
    graph = helper.make_graph([node], "g", inputs, ys, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


COPY = ("Identity", "before", "after", {})
SUB = ("Sub", "before row", "apart", {})
SQUARES = ("ReduceSumSquare", "apart one", "distance", {"keepdims": 0})
LOOPS: dict[str, Nodes] = {
    "squared": (COPY, SUB, SQUARES),
    "the other way round": (COPY, ("Sub", "row before", "apart", {}), ("Pow", "apart three", "cube", {}),
                            ("ReduceSum", "cube one", "distance", {"keepdims": 0})),
    "of a copy": (COPY, ("Identity", "after", "again", {}), SUB, SQUARES),
    "euclidean": (COPY, SUB, ("ReduceSumSquare", "apart one", "sum", {"keepdims": 0}), ("Sqrt", "sum", "distance", {})),
    "of cities": (COPY, SUB, ("Abs", "apart", "far", {}), ("ReduceSum", "far one", "distance", {"keepdims": 0})),
    "by powers": (
        COPY, SUB, ("Abs", "apart", "far", {}), ("Pow", "far three", "cube", {}),
        ("ReduceSum", "cube one", "sum", {"keepdims": 0}), ("Pow", "sum third", "distance", {}),
    ),
    "through a copy": (COPY, SUB, ("Identity", "apart", "same", {}),
                       ("ReduceSumSquare", "same one", "sum", {"keepdims": 0}), ("Identity", "sum", "distance", {})),
    "of roots": (
        COPY, SUB, ("Abs", "apart", "far", {}), ("Sqrt", "far", "root", {}),
        ("ReduceSum", "root one", "distance", {"keepdims": 0}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_distances_are_onnxruntimes(name: str) -> None:
    data = loop(LOOPS[name])
    graph = build(read_graph(data, "m"), Options("m", floats=True)).graph
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for seed in range(3):
        x = np.random.default_rng(seed).normal(0, 1, (1, FEATURES)).astype(np.float32)
        found = graph.run({"x": x.reshape(graph.shapes["x"])})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(-1), session.run(["y"], {"x": x})[0].reshape(-1), rtol=1e-5, atol=1e-5)


def test_the_row_itself_may_be_read_behind_the_loop() -> None:
    data = loop(LOOPS["squared"], outputs="y state")
    graph = read_graph(data, "m")
    x = np.random.default_rng(0).normal(0, 1, (1, FEATURES)).astype(np.float32)
    values = graph.run({"x": x.reshape(graph.shapes["x"])})
    np.testing.assert_array_equal(values[graph.outputs[1]].reshape(-1), x.reshape(-1))


SHIFTED = ("Add", "apart apart", "distance", {})
OTHER: dict[str, Callable[[], bytes]] = {
    "rows from behind": lambda: loop(LOOPS["squared"], scan_input_directions=[1]),
    "rows along another axis": lambda: loop(LOOPS["squared"], table=TABLE.T.copy(), scan_input_axes=[1]),
    "results from behind": lambda: loop(LOOPS["squared"], scan_output_directions=[1]),
    "results along another axis": lambda: loop(LOOPS["squared"], scan_output_axes=[1]),
    "computed rows": lambda: loop(LOOPS["squared"], table=None),
    "a state that changes": lambda: loop((("Neg", "before", "after", {}), SUB, SQUARES)),
    "a state that is the row": lambda: loop((("Identity", "row", "after", {}), SUB, SQUARES)),
    "a state that is computed": lambda: loop(LOOPS["squared"], "apart distance"),
    "a result on the way": lambda: loop(LOOPS["squared"], "after apart"),
    "no sum": lambda: loop((COPY, ("Sub", "before row", "distance", {}))),
    "another operator": lambda: loop((COPY, SUB, ("Exp", "apart", "e", {}), ("ReduceSum", "e one", "distance", {}))),
    "two sums": lambda: loop(
        (COPY, SUB, ("ReduceSum", "apart one", "sum", {"keepdims": 1}), ("ReduceSum", "sum one", "distance", {}))
    ),
    "a sum over rows": lambda: loop((COPY, SUB, ("ReduceSumSquare", "apart zero", "distance", {"keepdims": 0}))),
    "a sum that is not the result": lambda: loop((COPY, SUB, ("ReduceSum", "apart one", "sum", {}), SHIFTED)),
    "a difference from itself": lambda: loop((COPY, ("Sub", "before before", "apart", {}), SQUARES)),
    "a difference from a constant": lambda: loop((COPY, ("Sub", "before two", "apart", {}), SQUARES)),
    "a difference of a difference": lambda: loop(
        (COPY, SUB, ("Sub", "apart row", "more", {}), ("ReduceSum", "more one", "distance", {"keepdims": 0}))
    ),
    "several exponents": lambda: loop(
        (COPY, SUB, ("Pow", "apart powers", "p", {}), ("ReduceSum", "p one", "distance", {"keepdims": 0}))
    ),
    "a computed exponent": lambda: loop(
        (COPY, SUB, ("Pow", "apart row", "p", {}), ("ReduceSum", "p one", "distance", {"keepdims": 0}))
    ),
    "a function of another tensor": lambda: loop(
        (COPY, SUB, ("Abs", "before", "far", {}), ("ReduceSum", "far one", "distance", {"keepdims": 0}))
    ),
    "a sum before the difference": lambda: loop(
        (COPY, ("ReduceSum", "before one", "sum", {}), ("Sub", "sum row", "apart", {}), SQUARES)
    ),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_loop_is_refused(what: str) -> None:
    with pytest.raises(ModelError, match=r"'loop' .*only loops over the distances from constant rows are supported"):
        read_graph(OTHER[what](), "m")


@pytest.mark.parametrize(
    ("table", "x"), [(TABLE, (2, FEATURES)), (TABLE[None], (1, FEATURES)), (TABLE[:, :1], (1, FEATURES))]
)
def test_rows_of_other_shapes_are_refused(table: Array, x: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"the rows have shapes \(.*\); one row beside several is supported"):
        read_graph(loop(LOOPS["squared"], table=table, x=x), "m")
