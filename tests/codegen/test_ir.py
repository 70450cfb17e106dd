"""The parts of the intermediate representation on their own: constants, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.codegen.ir.argument import ABSENT, Argument
from emberlet.codegen.ir.keys import node_key
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import (
    SMALL,
    Fill,
    Inline,
    Transposed,
    Value,
)
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops.attributes import Attributes
from support.rows import every

F, I64 = dtypes.float32, dtypes.int64


def held(array: Any, dtype: Any = F) -> Value:
    return Value(dtype, array.shape, Inline(array.tobytes()))


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


# -- nodes ------------------------------------------------------------------------------------------------------------


def argument(name: str, shape: Any = (2, 3)) -> Argument:
    return Argument(name, TensorType(F, shape))


def node(operator: str, *inputs: Argument, outputs: Any = None, opset: int = 21, **attributes: Any) -> Any:
    made = outputs or (Argument("y", TensorType(F)),)
    return REGISTRY["", operator].make("n", inputs, made, Attributes(attributes, opset, inputs, made))


X = argument("x")


def test_a_result_that_nobody_wants_may_be_one_too_many() -> None:
    y = Argument("y", TensorType(F))
    typed = node("Relu", X, outputs=(y, ABSENT)).typed()
    assert typed.outputs[0].type == TensorType(F, (2, 3))
    with pytest.raises(Problem, match="has 2 outputs, expected at most 1"):
        node("Relu", X, outputs=(y, y)).typed()
    with pytest.raises(Problem, match="has 3 outputs, expected at most 1"):
        node("Relu", X, outputs=(y, ABSENT, y)).typed()


def test_zeros_of_either_sign_and_outputs_that_are_left_out_make_other_nodes() -> None:
    for shape in ((1, 1), (2,)):
        assert Value(F, shape, Fill(0.0)).content() != Value(F, shape, Fill(-0.0)).content()
    assert node_key(node("Elu", X, alpha=1.0)) == node_key(node("Elu", X, alpha=1.0))
    assert node_key(node("Elu", X, alpha=0.0)) != node_key(node("Elu", X, alpha=-0.0))
    y, n = Argument("y", TensorType(F)), Argument("n", TensorType(I64))
    assert node_key(node("TopK", X, n, outputs=(y, n))) != node_key(node("TopK", X, n, outputs=(y, ABSENT)))


@pytest.mark.parametrize(("rank", "fits"), [(64, True), (65, False)])
def test_a_result_has_at_most_64_axes(rank: int, fits: bool) -> None:
    made = node("Relu", argument("x", shape=(1,) * rank))
    if fits:
        assert made.typed().outputs[0].type.rank == rank
        return
    with pytest.raises(Problem, match="its result has 65 dimensions; at most 64 are supported"):
        made.typed()
