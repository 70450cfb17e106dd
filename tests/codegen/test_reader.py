"""The parts of the reader on their own: names of modules, the order of nodes, the parser it chooses, frozen values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import dtypes
from emberlet.codegen import load
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.protobuf import TensorProto
from emberlet.codegen.reader import read_model
from emberlet.codegen.reader.freezing import frozen
from emberlet.codegen.reader.values import Values
from emberlet.errors import ModelError
from onnx import helper, numpy_helper
from support.onnx_models import parse

F, I64 = dtypes.float32, dtypes.int64


# -- modules ----------------------------------------------------------------------------------------------------------


# -- order ------------------------------------------------------------------------------------------------------------


# -- parsing ----------------------------------------------------------------------------------------------------------


# -- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (helper.make_tensor("v", onnx.TensorProto.STRING, [1], [b"a"]), "a sparse tensor of string is not supported"),
        (helper.make_tensor("v", onnx.TensorProto.INT4, [1], [1]), "a sparse tensor of int4 is not supported"),
    ],
)
def test_a_sparse_tensor_of_another_dtype_is_refused(values: Any, words: str) -> None:
    indices = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [3])
    with pytest.raises(Problem, match=words):
        Values(None).dense(helper.make_sparse_tensor(values, indices, [4]))


@pytest.mark.parametrize("rank", [64, 65])
def test_a_sparse_tensor_has_at_most_64_axes(rank: int) -> None:
    values = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [0])
    made = helper.make_sparse_tensor(values, indices, [1] * rank)
    if rank == 64:
        assert Values(None).dense(made).list() == [2.0]
        return
    with pytest.raises(Problem, match="of a sparse tensor is impossible"):
        Values(None).dense(made)


@pytest.mark.parametrize("code", [27, 28])
def test_6_bit_floats_lie_one_in_an_entry_or_packed(code: int) -> None:
    typed = TensorProto()
    typed.data_type = code
    typed.dims.extend([5])
    typed.int32_data.extend([1, 63, 0, 32, 17])
    packed = sum(v << 6 * i for i, v in enumerate([1, 63, 0, 32, 17])).to_bytes(4, "little")
    raw = TensorProto()
    raw.data_type = code
    raw.dims.extend([5])
    raw.raw_data = packed
    assert bytes(Values(None).value(typed).raw()) == bytes(Values(None).value(raw).raw()) == packed
    typed.dims[0] = 4
    with pytest.raises(Problem, match="holds 5 bytes"):
        Values(None).value(typed)


# -- graphs -----------------------------------------------------------------------------------------------------------


def test_an_input_is_called_once() -> None:
    model = parse("h (float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }")
    with pytest.raises(ModelError, match="graph 'h': two inputs are called 'x'"):
        load(model)


def test_an_input_without_a_type_is_refused() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.input[0].ClearField("type")
    with pytest.raises(ModelError, match="input 'x': 'x' has no type"):
        load(model)
    model.graph.input[0].type.SetInParent()
    with pytest.raises(ModelError, match="input 'x': 'x' has no type"):
        load(model)


def test_an_empty_optional_has_the_type_that_is_written() -> None:
    kind = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2])
    made = [helper.make_node("Optional", [], ["o"], type=kind), helper.make_node("OptionalHasElement", ["o"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, [])]
    model = helper.make_model(helper.make_graph(made, "g", [], outputs), opset_imports=[helper.make_opsetid("", 18)])
    assert load(model, "numpy")().tolist() is False


def test_one_shape_says_more_than_the_other() -> None:
    model = parse(
        "g (float[N, 3] x) => (float[batch, 3] y) <float[unit, 3] a> { a = Neg(x)  y = Compress<axis = 0>(a, c) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([True]), "c"))
    graph = read_model(model).graph
    assert [n.outputs[0].type.shape for n in graph.nodes] == [("N", 3), ("batch", 3)]  # type: ignore[union-attr]


# -- frozen inputs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "dtype", "shape", "words"),
    [
        (2, dtypes.bool, (), "its dtype is bool, found 2"),
        ([True, 3], dtypes.bool, (2,), "its dtype is bool, found 3"),
        ("a", dtypes.bool, (), "its dtype is bool, found 'a'"),
        (True, F, (), "its dtype is float32, found True"),
        ("a", F, (), "its dtype is float32, found 'a'"),
        (True, I64, (), "its dtype is int64, found True"),
        (1.0, I64, (), "its dtype is int64, found 1.0"),
        (1, dtypes.string, (), "its dtype is string, found 1"),
        ([1, 2], I64, (1,), r"its shape is \(1,\), but the given value has \(2,\)"),
        ([1, 2], I64, (1, 2), r"its shape is \(1, 2\), but the given value has \(2,\)"),
        ([1], I64, (1, 1), r"its shape is \(1, 1\), but the given value has \(1,\)"),
        ([[1, 2]], I64, ("n", "n"), r"its shape is \(1, 1\), but the given value has \(1, 2\)"),
        ([[1], [2]], I64, (None, 2), r"its shape is \(\?, 2\), but the given value has \(2, 1\)"),
        (1, I64, (2,), r"its shape is \(2,\), but the given value has \(\)"),
        (np.float64([1.0]), F, (1,), "its dtype is float32, but the given value has float64"),
    ],
)
def test_a_frozen_value_that_does_not_fit_is_refused(given: Any, dtype: Any, shape: Any, words: str) -> None:
    with pytest.raises(Problem, match=words):
        frozen(given, TensorType(dtype, shape), {})
