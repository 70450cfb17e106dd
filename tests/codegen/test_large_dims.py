"""Declared lengths whose sums and products exceed int64 are refused with a clear message."""

from __future__ import annotations

import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError
from onnx import TensorProto, helper

LARGE = 2**62


def model(nodes: list[onnx.NodeProto], dims: list[int], result: int = TensorProto.INT64) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = helper.make_tensor_value_info("y", result, None)
    return helper.make_model(helper.make_graph(nodes, "large", [x], [y])).SerializeToString()


@pytest.mark.parametrize(
    ("nodes", "dims"),
    [
        ([helper.make_node("Size", ["x"], ["y"])], [LARGE, LARGE]),
        ([helper.make_node("Concat", ["x"] * 3, ["z"], axis=0), helper.make_node("Shape", ["z"], ["y"])], [LARGE, 2]),
        ([helper.make_node("Flatten", ["x"], ["z"], axis=0), helper.make_node("Shape", ["z"], ["y"])], [LARGE, 8]),
        ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Mul", ["s", "s"], ["y"])], [LARGE, 3]),
        ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ReduceProd", ["s"], ["y"])], [LARGE, 8]),
        ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["z"]),
          helper.make_node("Size", ["z"], ["y"])], [LARGE, 8]),
        ([helper.make_node("Conv", ["x", "x"], ["z"], pads=[LARGE] * 4), helper.make_node("Shape", ["z"], ["y"])],
         [1, 1, LARGE, 1]),
        ([helper.make_node("ConvTranspose", ["x", "x"], ["z"], strides=[LARGE, 1]),
          helper.make_node("Shape", ["z"], ["y"])], [1, 1, 8, 8]),
        ([helper.make_node("DepthToSpace", ["x"], ["z"], blocksize=LARGE), helper.make_node("Size", ["z"], ["y"])],
         [1, LARGE, LARGE, 1]),
    ],
    ids=lambda value: "-".join(n.op_type for n in value) if isinstance(value[0], onnx.NodeProto) else "",
)  # fmt: skip
def test_lengths_beyond_int64_end_in_an_error_on_purpose(nodes: list[onnx.NodeProto], dims: list[int]) -> None:
    try:
        compile(translate(model(nodes, dims))[1].source, "generated", "exec")
    except EmberletError as error:
        assert error.__cause__ is None or isinstance(error.__cause__, EmberletError), repr(error.__cause__)
