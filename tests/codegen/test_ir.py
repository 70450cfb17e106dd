"""The parts of the intermediate representation on their own: constants, keys, symbolic sizes, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.codegen.ir import sizes
from emberlet.codegen.ir.argument import ABSENT, Argument, Constant
from emberlet.codegen.ir.keys import node_key
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import (
    SMALL,
    Fill,
    Inline,
    Stored,
    Transposed,
    Value,
    ints_value,
    text_value,
)
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops.attributes import Attributes
from support.rows import every

F, I64 = dtypes.float32, dtypes.int64


def held(array: Any, dtype: Any = F, origin: str | None = None) -> Value:
    return Value(dtype, array.shape, Inline(array.tobytes()), origin)


MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


# -- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [dtypes.uint2, dtypes.int4, dtypes.float6_e2m3fn, dtypes.uint8, dtypes.float16, dtypes.int64]
)
@every("count", [0, 1, 2, 3, 4, 5, 8, 9, 130])
def test_a_fill_has_the_bytes_of_its_elements(dtype: Any, count: int) -> None:
    from emberlet.backend import get_backend

    home = get_backend("python")
    want = bytes(home.to_bytes(home.full((count,), 1, dtype)))
    assert bytes(Value(dtype, (count,), Fill(1)).raw()) == want
    assert Value(dtype, (count,), Fill(1)).nbytes == len(want)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (5, 1), (257, 256)])
def test_a_transposed_matrix_has_its_elements_turned(dtype: str, shape: tuple[int, int]) -> None:
    """(257, 256) has more elements than are turned without a backend."""
    assert (shape[0] * shape[1] > SMALL) is (shape == (257, 256))
    matrix = (np.arange(shape[0] * shape[1]) % 251).astype(dtype).reshape(shape)
    turned = Value(getattr(dtypes, dtype), shape[::-1], Transposed(held(matrix, getattr(dtypes, dtype))))
    assert bytes(turned.raw()) == matrix.T.tobytes()


# -- keys -------------------------------------------------------------------------------------------------------------

INLINE = held(np.float32([[2.0]]))


@pytest.mark.parametrize(
    ("a", "b", "keys", "contents"),
    [
        (held(MATRIX), held(MATRIX), True, True),
        (held(MATRIX, origin="a"), held(MATRIX, origin="a"), True, True),
        (held(MATRIX, origin="a"), held(MATRIX, origin="b"), False, True),
        (held(MATRIX, origin="a"), held(MATRIX), False, True),
        (held(MATRIX), held(MATRIX.reshape(3, 2)), False, False),
        (held(MATRIX), held(MATRIX.view(np.int32), dtypes.int32), False, False),
        (Value(F, (1, 1), Fill(2.0)), INLINE, True, True),  # a number as files store it
        (Value(F, (1, 1), Fill(0.0)), Value(F, (1, 1), Fill(-0.0)), False, False),
        (Value(F, (2,), Fill(0.0)), Value(F, (2,), Fill(-0.0)), False, False),
        (Value(F, (2,), Fill(0.0)), Value(F, (2,), Fill(0.0)), True, True),
        (Value(dtypes.int4, (), Fill(1)), Value(dtypes.int4, (), Fill(1)), True, True),
        (text_value(("a",)), text_value(("b",)), False, False),
        (Value(F, (2,), Stored(bytes, 1)), Value(F, (2,), Stored(bytes, 1)), True, True),
        (Value(F, (2,), Stored(bytes, 1)), Value(F, (2,), Stored(bytes, 2)), False, False),
        (
            Value(F, (3, 2), Transposed(held(MATRIX, origin="a"))),
            Value(F, (3, 2), Transposed(held(MATRIX, origin="b"))),
            False,
            True,
        ),
        (
            Value(F, (3, 2), Transposed(held(MATRIX, origin="a")), "c"),
            Value(F, (3, 2), Transposed(held(MATRIX, origin="a")), "d"),
            True,
            True,
        ),
        (Value(F, (3, 2), Transposed(held(MATRIX))), held(MATRIX), False, False),
    ],
)
def test_two_constants_are_the_same_by_their_origin_and_by_their_content(
    a: Value, b: Value, keys: bool, contents: bool
) -> None:
    assert (a.key() == b.key()) is keys
    assert (a.content() == b.content()) is contents


def argument(name: str, value: Value | None = None, shape: Any = (2, 3)) -> Argument:
    if value is None:
        return Argument(name, TensorType(F, shape))
    return Argument(name, TensorType(value.dtype, value.shape), Constant(value))


def node(operator: str, *inputs: Argument, outputs: Any = None, opset: int = 21, **attributes: Any) -> Any:
    made = outputs or (Argument("y", TensorType(F)),)
    return REGISTRY["", operator].make("n", inputs, made, Attributes(attributes, opset, inputs, made))


X, W = argument("x"), held(np.ones((3, 4), np.float32))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (node("Relu", X), node("Relu", X), True),
        (node("Relu", X), node("Relu", argument("z")), False),
        (node("Relu", X), node("Neg", X), False),
        (node("Elu", X, alpha=1.0), node("Elu", X, alpha=1.0), True),
        (node("Elu", X, alpha=0.0), node("Elu", X, alpha=-0.0), False),
        # a weight that a node of the file made belongs to its layer; numbers are compared by value
        (node("MatMul", X, argument("w", W)), node("MatMul", X, argument("w", W)), True),
        (node("MatMul", X, argument("w", W)), node("MatMul", X, argument("v", W)), False),
        (node("Add", X, argument("w", W)), node("Add", X, argument("v", W)), True),
        (node("MatMul", X, argument("w", held(np.ones(3, np.float32)))),
         node("MatMul", X, argument("v", held(np.ones(3, np.float32)))), True),
        (node("MatMul", X, argument("w", held(np.ones((3, 4), np.float32), origin="o"))),
         node("MatMul", X, argument("v", held(np.ones((3, 4), np.float32), origin="o"))), True),
        (node("Add", X, argument("a", held(np.ones(3, np.float32), origin="o"))),
         node("Add", X, argument("b", held(np.ones(3, np.float32), origin="p"))), False),
        (node("Reshape", X, argument("a", Value(I64, (2,), Inline(bytes(16)), "o"))),
         node("Reshape", X, argument("b", Value(I64, (2,), Inline(bytes(16)), "p"))), True),
        (node("RandomNormalLike", X), node("RandomNormalLike", X), None),
    ],
)  # fmt: skip
def test_one_node_stands_for_another_if_it_computes_the_same(a: Any, b: Any, same: bool | None) -> None:
    if same is None:
        assert node_key(a) is None
    else:
        assert (node_key(a) == node_key(b)) is same


def test_an_output_that_is_left_out_makes_another_node() -> None:
    both = (Argument("y", TensorType(F)), Argument("i", TensorType(I64)))
    one = (both[0], ABSENT)
    k = argument("k", ints_value((1,)))
    assert node_key(node("TopK", X, k, outputs=both)) != node_key(node("TopK", X, k, outputs=one))


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_a_result_that_nobody_wants_may_be_one_too_many() -> None:
    y = Argument("y", TensorType(F))
    typed = node("Relu", X, outputs=(y, ABSENT)).typed()
    assert typed.outputs[0].type == TensorType(F, (2, 3))
    with pytest.raises(Problem, match="has 2 outputs, expected at most 1"):
        node("Relu", X, outputs=(y, y)).typed()
    with pytest.raises(Problem, match="has 3 outputs, expected at most 1"):
        node("Relu", X, outputs=(y, ABSENT, y)).typed()


@pytest.mark.parametrize(("rank", "fits"), [(64, True), (65, False)])
def test_a_result_has_at_most_64_axes(rank: int, fits: bool) -> None:
    made = node("Relu", argument("x", shape=(1,) * rank))
    if fits:
        assert made.typed().outputs[0].type.rank == rank
        return
    with pytest.raises(Problem, match="its result has 65 dimensions; at most 64 are supported"):
        made.typed()


# -- sizes ------------------------------------------------------------------------------------------------------------


@every(
    ("function", "arguments", "want"),
    [
        ("plus", ("a", 2), "a + 2"), ("plus", (2, "a"), "a + 2"), ("plus", ("a", "a"), "2*a"), ("plus", (1, 2), 3),
        ("plus", (None, 2), None), ("plus", (2, None), None), ("plus", ("a", "b-c + 1"), None),
        ("minus", ("a + 2", "a"), 2), ("minus", ("a + b", "b"), "a"), ("minus", ("a", 1), None),
        ("minus", (1, "a"), None),
        ("minus", (5, 2), 3), ("minus", (2, 5), None), ("minus", (None, 1), None), ("minus", ("a", None), None),
        ("minus", ("a", "a"), 0), ("scaled", ("a", 3), "3*a"), ("scaled", ("2*a + 4", 1, 2), "a + 2"),
        ("scaled", ("2*a + 3", 1, 2), None), ("scaled", ("a", 4, 2), "2*a"), ("scaled", ("a", 1, 0), None),
        ("scaled", ("a", 1, -1), None), ("scaled", (None, 2), None), ("scaled", ("a", 0), 0), ("scaled", (6, 2, 4), 3),
        ("scaled", ("a", -1), None), ("smaller", (5, 3), 3), ("smaller", (3, 5), 3), ("smaller", (5, "n"), "min(5, n)"),
        ("smaller", (5, None), None), ("smaller", (5, "a + 1"), None), ("ordered", ("b + a",), "a + b"),
        ("ordered", ("a",), "a"), ("ordered", ("2*a",), "2*a"), ("ordered", ("b-c + a",), "b-c + a"),
        ("ordered", ("1 + 2",), "1 + 2"), ("named", ("a",), "a"), ("named", ("?0f",), None),
        ("named", ("?0f + 1",), None),
        ("named", (3,), 3),
    ],
)  # fmt: skip
def test_arithmetic_of_symbols(function: str, arguments: Any, want: Any) -> None:
    assert getattr(sizes, function)(*arguments) == want
