"""Tensors of a file, in every encoding, have the values that onnx's own library reads; inconsistent ones are
refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.reader import read_model
from emberlet.errors import ModelError
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import parse
from support.rows import every

DTYPES = (
    "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool bfloat16 float8_e4m3fn float8_e5m2"
    " int4 uint4"
).split()


def holding(tensor: Any, sparse: bool = False) -> onnx.ModelProto:
    """A model that returns a constant of the file."""
    model = parse("g () => (float y) { y = Identity(t) }")
    values = tensor.values if sparse else tensor
    values.name = "t"
    (model.graph.sparse_initializer if sparse else model.graph.initializer).append(tensor)
    model.graph.output[0].type.Clear()
    return model


def bits(dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of every dtype that onnx's helper writes, with its ends."""
    kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, names(dtype)))
    count = int(np.prod(shape))
    numbers = np.arange(count) % 7 - (0 if dtype.startswith(("u", "bool")) else 3)
    return (numbers % 2 if dtype == "bool" else numbers).astype(kind).reshape(shape)


def names(dtype: str) -> str:
    word = dtype.upper()
    return {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "FLOAT8_E4M3FN": "FLOAT8E4M3FN", "FLOAT8_E5M2": "FLOAT8E5M2"}.get(
        word, word
    )


@every("shape", [(), (0,), (1,), (3,), (2, 4), (5, 13), (65,), (64,)])
@pytest.mark.parametrize("raw", [False, True])
@every("dtype", DTYPES)
def test_a_tensor_is_read_as_by_the_library(dtype: str, raw: bool, shape: tuple[int, ...]) -> None:
    array = bits(dtype, shape)
    if raw:
        tensor = numpy_helper.from_array(array, "t")
    else:
        values = array.astype(np.float32).reshape(-1).tolist()
        tensor = helper.make_tensor("t", getattr(TensorProto, names(dtype)), list(shape), values)
    want = numpy_helper.to_array(tensor)
    got = load(holding(tensor), "numpy")()
    assert (got.dtype.name, got.shape) == (dtype, shape)
    assert np.asarray(got.tolist(), np.float64).tolist() == want.astype(np.float64).tolist()


def sparse(values: Any, indices: Any, dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(numpy_helper.from_array(values), numpy_helper.from_array(indices), dims)


def row(*numbers: float, dtype: Any = np.float32) -> Any:
    return np.array(numbers, dtype)


@every("dtype", ["float32", "float64", "int8", "int64", "float16"])
@pytest.mark.parametrize(
    ("indices", "dims"),
    [
        (row(1, 4, 5, dtype=np.int64), [6]),
        (row(1, 4, 5, dtype=np.int64), [2, 3]),
        (np.array([[0, 1], [1, 1], [1, 2]]), [2, 3]),
        (np.array([[0, 0, 1], [1, 1, 0], [1, 2, 1]]), [2, 3, 2]),
        (np.array([[0, 0], [8, 0], [9, 8]]), [10, 9]),
    ],
)
def test_a_sparse_tensor_is_a_dense_one(indices: Any, dims: list[int], dtype: str) -> None:
    want = np.zeros(dims, dtype)
    values = row(1.5, -2, 3).astype(dtype)
    if indices.ndim == 1:
        want.reshape(-1)[indices] = values
    else:
        want[tuple(indices.T)] = values
    got = load(holding(sparse(values, indices, dims), True), "numpy")()
    assert (got.dtype.name, got.shape, got.tolist()) == (dtype, tuple(dims), want.tolist())


def test_a_sparse_tensor_without_elements_is_zeros() -> None:
    found = load(holding(sparse(row(), row(dtype=np.int64), [2, 2]), True), "numpy")()
    assert found.tolist() == [[0, 0], [0, 0]]


def shaped(tensor: TensorProto, *dims: int) -> TensorProto:
    del tensor.dims[:]
    tensor.dims.extend(dims)
    return tensor


def segmented() -> TensorProto:
    tensor = numpy_helper.from_array(row(1, 2))
    tensor.segment.begin, tensor.segment.end = 0, 1
    return tensor


LIES = [
    (segmented(), False, "a tensor in segments is not supported"),
    (shaped(helper.make_tensor("t", TensorProto.STRING, [2], [b"a", b"b"]), 3), False, "holds 2 strings"),
    (helper.make_tensor("t", TensorProto.STRING, [1], [b"\xff"]), False, "is not UTF-8"),
    (shaped(numpy_helper.from_array(row(1, 2)), -2), False, "the shape (-2,) is impossible"),
    (shaped(numpy_helper.from_array(row(1)), *(1,) * 65), False, "is impossible"),
    (shaped(numpy_helper.from_array(row(1, 2)), 3), False, "holds 8 bytes"),
    (shaped(numpy_helper.from_array(row(1, 2)), 1), False, "holds 8 bytes"),
    (shaped(helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0]), 3), False, "holds 8 bytes"),
    (shaped(helper.make_tensor("t", TensorProto.INT8, [2], [1, 2]), 1), False, "holds 2 bytes"),
    (TensorProto(data_type=99, dims=[4], raw_data=bytes(16)), False, "element type 99 is not supported"),
    (TensorProto(data_type=14, dims=[4], raw_data=bytes(32)), False, "element type COMPLEX64 is not supported"),
    (TensorProto(data_type=1, dims=[1 << 40, 1 << 40], raw_data=bytes(16)), False, "holds 16 bytes"),
    (sparse(row(1, 2), row(0, dtype=np.int64), [4]), True, "has 2 values and 1 indices"),
    (sparse(row(1, 2), row(0, 4, dtype=np.int64), [4]), True, "has the index 4, outside its shape (4,)"),
    (sparse(row(1, 2), row(0, -1, dtype=np.int64), [4]), True, "has the index -1, outside its shape (4,)"),
    (sparse(row(1, 2), np.array([[0, 0], [2, 0]]), [2, 2]), True, "has the index 4, outside its shape (2, 2)"),
    (sparse(row(1, 2), row(0, 1, dtype=np.int64), [-4]), True, "the shape (-4,) of a sparse tensor is impossible"),
    (sparse(row(1, 2), row(0, 1, dtype=np.int64), [1 << 40]), True, "too large to be made dense"),
]


@pytest.mark.parametrize(("tensor", "in_parts", "words"), LIES, ids=[str(i) for i in range(len(LIES))])
def test_a_lie_about_a_constant_is_refused(tensor: Any, in_parts: bool, words: str) -> None:
    with pytest.raises(ModelError, match=re.escape(words)):
        load(holding(tensor, in_parts), "numpy")


def test_a_last_index_of_a_sparse_tensor_is_inside() -> None:
    found = load(holding(sparse(row(1, 2), row(0, 3, dtype=np.int64), [2, 2]), True), "numpy")()
    assert found.tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda t: t.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(65)), "has 65 dim"),
        (lambda t: setattr(t.sparse_tensor_type, "elem_type", 1), "sparse_tensor_type are not supported"),
        (
            lambda t: t.map_type.value_type.sequence_type.elem_type.tensor_type.__setattr__("elem_type", 1),
            "whose values are not ten",
        ),
    ],
)
def test_an_input_of_another_kind_is_refused(make: Any, words: str) -> None:
    model = parse("g (float x) => (float y) { y = Neg(x) }")
    kind = model.graph.input[0].type
    kind.Clear()
    kind.tensor_type.elem_type = 1
    make(kind)
    if kind.WhichOneof("value") == "map_type":
        kind.map_type.key_type = 7
    with pytest.raises(ModelError, match=words):
        load(model, "numpy")


@pytest.mark.parametrize(
    ("dim", "want"), [(3, 3), (0, 0), (-1, None), ("N", "N"), ("past + 1", "past + 1"), ("a" * 41, None), ("?", None)]
)
def test_a_size_is_a_number_or_a_name(dim: int | str, want: Any) -> None:
    model = parse("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    place = model.graph.input[0].type.tensor_type.shape.dim[0]
    if isinstance(dim, int):
        place.dim_value = dim
    else:
        place.dim_param = dim
    (found,) = read_model(model).graph.inputs[0].type.shape  # type: ignore[union-attr]
    assert found == want or (want is None and not isinstance(found, int))
