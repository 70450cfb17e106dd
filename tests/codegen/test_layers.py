"""The fields of a generated class: one layer per initializer, without duplicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.burnpack import Burnpack
from emberlet.codegen import generate, load
from emberlet.codegen.generation import translate
from onnx import helper, numpy_helper
from support.onnx_models import assert_same, expected, generated, parse

RANDOM = np.random.default_rng(3)


def with_weights(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    """A model in ONNX's notation with these initializers; `a_b` in Python is `a.b` in the file."""
    model = parse(text, opset)
    for node in model.graph.node:
        node.input[:] = [i.replace("__", ".") for i in node.input]
    model.graph.initializer.extend(numpy_helper.from_array(v, k.replace("__", ".")) for k, v in weights.items())
    return model


def fields(model: onnx.ModelProto) -> list[str]:
    """The names of the generated class's parameters."""
    return sorted(translate(model, "net")[1].record)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


HEADS = {
    "transposed": "t = Transpose<perm = [1, 0]>(wte__weight)  y = MatMul(e, t)",
    "gemm": "y = Gemm<transB = 1>(e, wte__weight)",
    "gemm with bias": "y = Gemm<transB = 1>(e, wte__weight, head__bias)",
    "bias": "t = Transpose<perm = [1, 0]>(wte__weight)  p = MatMul(e, t)  y = Add(p, head__bias)",
}


@pytest.mark.parametrize("rows", [7, 400])
@pytest.mark.parametrize("head", sorted(HEADS))
def test_a_tied_embedding_is_stored_once(head: str, rows: int, tmp_path: Path) -> None:
    text = f"g (int64[N] ids) => (float[N, {rows}] y) {{ e = Gather(wte__weight, ids) {HEADS[head]} }}"
    weights = {"wte__weight": normal(rows, 12)} | ({"head__bias": normal(rows)} if "bias" in head else {})
    model = with_weights(text, **weights)

    made = generate(model, tmp_path, name="tied")

    assert "@ self.wte.weight.val().T" in made.module.read_text(encoding="utf-8")
    assert made.weights is not None
    pack = Burnpack.from_file(made.weights)
    assert sorted(pack.tensors) == ["head.bias", "wte.weight"][-len(weights) :]
    ids = np.array([3, 0, 6], np.int64)
    assert_same(generated(model, [ids]), expected(model, {"ids": ids}))


def test_the_embedding_may_come_after_the_layer_that_shares_its_table(tmp_path: Path) -> None:
    text = (
        "g (float[N, 12] x) => (float[N, 12] y) { p = Gemm<transB = 1>(x, wte__weight)"
        " a = ArgMax<axis = 1, keepdims = 0>(p) y = Gather(wte__weight, a) }"
    )
    model = with_weights(text, wte__weight=normal(9, 12))
    assert fields(model) == ["wte.weight"]
    x = normal(4, 12)
    assert_same(generated(model, [x]), expected(model, {"x": x}))


def with_a_folded_head(copy: str, table: np.ndarray, matrix: np.ndarray, bias: bool = False) -> onnx.ModelProto:
    """An embedding and a last layer whose weight is `matrix`, under the name `copy`."""
    rows = len(table)
    kind = {"float32": "float", "float16": "float16"}[table.dtype.name]
    head = "p = MatMul(e, head)  y = Add(p, b)" if bias else "y = MatMul(e, head)"
    text = f"g (int64[N] ids) => ({kind}[N, {rows}] y) {{ e = Gather(wte__weight, ids) {head} }}"
    model = with_weights(
        text, wte__weight=table, **({"b": RANDOM.integers(-4, 5, rows).astype(table.dtype)} if bias else {})
    )
    model.graph.initializer.append(numpy_helper.from_array(matrix, copy))
    for node in model.graph.node:
        node.input[:] = [copy if i == "head" else i for i in node.input]
    return model


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("copy", ["onnx::MatMul_12", "val_2"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rows", [12, 400])
def test_a_table_that_an_exporter_stored_again_transposed_is_stored_once(
    rows: int, dtype: str, copy: str, bias: bool, tmp_path: Path
) -> None:
    table = RANDOM.integers(-4, 5, (rows, 12)).astype(dtype)  # products of small integers are exact in float16
    model = with_a_folded_head(copy, table, np.ascontiguousarray(table.T), bias)
    made = generate(model, tmp_path, name="tied")
    assert "@ self.wte.weight.val().T" in made.module.read_text(encoding="utf-8")
    assert made.weights is not None
    stored = Burnpack.from_file(made.weights).tensors
    assert sum(t.nbytes for t in stored.values()) == table.nbytes + (rows * table.itemsize if bias else 0)
    ids = np.array([3, 0, 6], np.int64)
    assert_same(generated(model, [ids]), expected(model, {"ids": ids}))


@pytest.mark.parametrize("rows", [12, 400])
@pytest.mark.parametrize("case", ["a name of its own", "one bit", "not transposed", "one number"])
def test_a_head_of_its_own_stays_apart_from_the_embedding(case: str, rows: int) -> None:
    table = np.ones((rows, 12), np.float32) if case == "one number" else normal(rows, 12)
    matrix = np.ascontiguousarray(table.T)
    if case == "one bit":
        matrix.view("uint32")[-1, -1] ^= 1
    elif case == "not transposed":
        matrix = table.reshape(12, rows)
    model = with_a_folded_head("lm_head.weight" if case == "a name of its own" else "onnx::MatMul_12", table, matrix)
    assert len(fields(model)) == 2
    ids = np.array([3, 0, 6], np.int64)
    assert_same(generated(model, [ids]), expected(model, {"ids": ids}))


NORMS = "a = LayerNormalization(x, one__weight, one__bias) b = LayerNormalization(a, two__weight, two__bias)"


@pytest.mark.parametrize("size", [6, 200])
def test_layers_of_equal_values_stay_apart(size: int) -> None:
    ones, zeros = np.ones(size, np.float32), np.zeros(size, np.float32)
    text = f"g (float[N, {size}] x) => (float[N, {size}] b) {{ {NORMS} }}"
    model = with_weights(text, one__weight=ones, one__bias=zeros, two__weight=ones, two__bias=zeros)
    assert fields(model) == ["one.bias", "one.weight", "two.bias", "two.weight"]


@pytest.mark.parametrize("width", [3, 60])
def test_a_student_and_a_teacher_of_equal_weights_stay_apart(width: int) -> None:
    text = (
        f"g (float[N, {width}] x) => (float[N, {width}] y) {{ s = Gemm<transB = 1>(x, student__weight, student__bias)"
        " t = Gemm<transB = 1>(x, teacher__weight, teacher__bias) y = Sub(s, t) }"
    )
    weight, bias = normal(width, width), normal(width)
    model = with_weights(text, student__weight=weight, student__bias=bias, teacher__weight=weight, teacher__bias=bias)
    assert fields(model) == ["student.bias", "student.weight", "teacher.bias", "teacher.weight"]


@pytest.mark.parametrize("width", [3, 60])
def test_a_layer_that_is_called_twice_is_one_field(width: int) -> None:
    calls = "a = Gemm<transB = 1>(x, fc__weight) y = Gemm<transB = 1>(a, fc__weight)"
    text = f"g (float[N, {width}] x) => (float[N, {width}] y) {{ {calls} }}"
    model = with_weights(text, fc__weight=normal(width, width))
    assert fields(model) == ["fc.weight"]


def test_a_module_that_is_called_twice_through_two_transpositions_is_one_field() -> None:
    text = (
        "g (float[N, 5] x) => (float[N, 5] y) { t = Transpose(fc__weight) a = MatMul(x, t)"
        " u = Transpose(fc__weight) y = MatMul(a, u) }"
    )
    assert fields(with_weights(text, fc__weight=normal(5, 5))) == ["fc.weight"]


def test_equal_numbers_are_still_one() -> None:
    """Nodes that differ only in equal constants are merged."""
    nodes = [
        helper.make_node("Constant", [], ["half"], value_float=0.5),
        helper.make_node("Constant", [], ["too"], value_float=0.5),
        helper.make_node("Mul", ["x", "half"], ["a"]),
        helper.make_node("Mul", ["x", "too"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), ir_version=10)
    assert translate(model, "net")[1].source.count("x * 0.5") == 1


def test_a_checkpoint_of_the_architecture_loads() -> None:
    """Layers that were equal at export accept different weights."""
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    text = f"g (float[N, 6] x) => (float[N, 6] b) {{ {NORMS} }}"
    model = load(with_weights(text, one__weight=ones, one__bias=zeros, two__weight=ones, two__bias=zeros), "numpy")
    assert len({id(p) for p in model.params()}) == 4
