"""What is computed while a model is read, and the names that weights have in checkpoints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.codegen.checkpoint_names import Folded, is_parameter_name, metadata_entry
from emberlet.codegen.evaluation import SMALL, known, uniform
from emberlet.codegen.ir.argument import Argument, Constant
from emberlet.codegen.ir.types import ScalarType, ShapeType, TensorType
from emberlet.codegen.ir.value import Fill, Inline, Transposed, Value
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops.attributes import Attributes

F, I64 = dtypes.float32, dtypes.int64


def held(array: Any, dtype: Any = F, origin: Any = None) -> Value:
    return Value(dtype, array.shape, Inline(array.tobytes()), origin)


@pytest.mark.parametrize(
    ("array", "dtype", "fill"),
    [
        (np.float32([2, 2, 2]), F, 2.0),
        (np.float32([2, 2, 3]), F, None),
        (np.float32([2]), F, None),
        (np.float32([0.0, -0.0]), F, None),
        (np.int64([7, 7]), I64, 7),
        (np.array([True, True]), dtypes.bool, True),
    ],
)
def test_equal_elements_become_a_fill(array: Any, dtype: Any, fill: Any) -> None:
    found = uniform(array.tobytes(), dtype, array.size)
    assert found == (Inline(array.tobytes()) if fill is None else Fill(fill))


def made(operator: str, *inputs: Argument, outputs: int = 1, **attributes: Any) -> Any:
    results = tuple(Argument(f"y{k}", TensorType(F)) for k in range(outputs))
    node = REGISTRY["", operator].make("n", inputs, results, Attributes(attributes, 21, inputs, results))
    return known(node.typed())


def constant(array: Any, dtype: Any = F) -> Argument:
    return Argument("c", TensorType(dtype, array.shape), Constant(held(array, dtype)))


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (made("Neg", constant(np.ones(SMALL, np.float32))), [-1.0] * SMALL),
        (made("Neg", constant(np.ones(SMALL + 1, np.float32))), None),  # left to be computed at run time
        (made("Expand", constant(np.ones(1, np.float32)), constant(np.array([SMALL]), I64)), [1.0] * SMALL),
        (made("Neg", Argument("x", TensorType(F, (2,)))), None),
        (made("RandomNormal", shape=(2,)), None),
        (made("RandomNormalLike", constant(np.ones(2, np.float32))), None),
        (made("Shape", Argument("x", TensorType(F, (2, 3)))), [2, 3]),
        (made("Shape", Argument("x", TensorType(F, (2, "n")))), None),
        (made("Size", Argument("x", TensorType(F, (2, 3)))), [6]),
        (made("Size", Argument("x", TensorType(F, (2, "n")))), None),
    ],
)
def test_what_depends_on_small_constants_is_computed_when_read(node: Any, value: Any) -> None:
    found = node.outputs[0].value
    assert (found is None) if value is None else found.list() == value
    if value is None:
        assert isinstance(node.outputs[0].type, TensorType | ScalarType | ShapeType)


# -- names in checkpoints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("layer.0.weight", True), ("w", True), ("_w", True), ("0.weight", False), ("a.", False), ("", False),
        ("onnx::MatMul_12", False), ("val_12", False), ("_val_1", False), ("value", True), ("Constant_3", False),
        ("lifted_tensor_0", False), ("c_lifted_tensor_0", False), ("onnx_3", False), ("a/b", False),
    ],
)  # fmt: skip
def test_a_parameters_name_is_not_one_that_an_exporter_made(name: str, is_one: bool) -> None:
    assert is_parameter_name(name) is is_one


W, B = np.ones((2, 3), np.float32), np.ones(3, np.float32)
NORM = ("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")


def folded(part: str, **more: Any) -> Folded:
    fields = {"part": part, "weight": "conv.weight", "bias": "conv.bias", "norm": NORM, "epsilon": 1e-5, "axis": 0}
    return Folded(**{**fields, "groups": 1, **more})  # type: ignore[arg-type]


K = np.ones((2, 3, 1, 1), np.float32)


@pytest.mark.parametrize(
    ("record", "entries"),
    [
        ({"fc.weight": Value(F, (3, 2), Transposed(held(W, origin="fc.weight")))}, {}),
        ({"fc.weight": held(W, origin="fc.weight")}, {"fc.weight": {"turned": False}}),
        ({"fc.weight": held(W, origin="other.weight")}, {"fc.weight": {"name": "other.weight", "turned": False}}),
        ({"fc.table": held(W, origin="fc.table")}, {}),
        ({"fc.table": Value(F, (3, 2), Transposed(held(W, origin="fc.table")))}, {"fc.table": {"turned": True}}),
        ({"fc.weight": held(W, origin="onnx::MatMul_1")}, {"fc.weight": {"name": ""}}),
        ({"fc.weight": held(W, origin="onnx::MatMul_1"), "fc.bias": held(B, origin="up.bias")},
         {"fc.weight": {"name": "up.weight"}, "fc.bias": {"name": "up.bias"}}),
        ({"fc.weight": held(W, origin="onnx::MatMul_1"), "fc.bias": held(B, origin="up.shift")},
         {"fc.weight": {"name": ""}, "fc.bias": {"name": "up.shift"}}),
        ({"fc.bias": held(B)}, {"fc.bias": {"name": None}}),
        ({"fc.bias": Value(F, (3,), Fill(0.0))}, {}),
        ({"fc.bias": held(B, origin=("gru.bias", 0))}, {}),
        ({"conv.weight": held(K, origin=folded("weight"))}, {"conv.weight": {"norm": "bn", "epsilon": 1e-5}}),
        ({"c.weight": held(K, origin=folded("weight"))},
         {"c.weight": {"norm": "bn", "epsilon": 1e-5, "name": "conv.weight"}}),
        ({"conv.weight": held(K, origin=folded("weight", axis=1))},
         {"conv.weight": {"norm": "bn", "epsilon": 1e-5, "axis": 1, "groups": 1}}),
        ({"conv.weight": held(K, origin=folded("weight", groups=2))},
         {"conv.weight": {"norm": "bn", "epsilon": 1e-5, "axis": 0, "groups": 2}}),
        ({"conv.bias": held(B, origin=folded("bias", groups=2))}, {"conv.bias": {"norm": "bn", "epsilon": 1e-5}}),
        ({"conv.bias": held(B, origin=folded("bias", bias=None))},
         {"conv.bias": {"norm": "bn", "epsilon": 1e-5, "name": None}}),
        ({"conv.bias": held(B, origin=folded("bias", norm=("a", "b", "c", "d")))},
         {"conv.bias": {"norm": ["a", "b", "c", "d"], "epsilon": 1e-5}}),
    ],
)  # fmt: skip
def test_what_a_checkpoint_calls_a_weight(record: dict[str, Value], entries: dict[str, Any]) -> None:
    (text,) = metadata_entry(record).values()
    assert json.loads(text) == entries
