"""Operators that move elements by a map select onnxruntime's elements, in float32 and in int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, calibrated
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.quantization.calibrate import check_samples
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

Rng = np.random.Generator
Array = npt.NDArray[Any]


def model(op: str, shape: Sequence[int], constants: Sequence[Array | None], **attributes: Any) -> onnx.ModelProto:
    names = ["" if c is None else f"c{i}" for i, c in enumerate(constants)]
    given = [numpy_helper.from_array(c, n) for c, n in zip(constants, names, strict=True) if c is not None]
    node = helper.make_node(op, ["x", *names], ["y"], name="node", **attributes)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def image(rng: Rng) -> list[int]:
    return [1, *(int(v) for v in rng.integers(2, 7, 3))]


def tile(rng: Rng) -> onnx.ModelProto:
    return model("Tile", image(rng), [np.array([1, *rng.integers(1, 3, 3)])])


def expand(rng: Rng) -> onnx.ModelProto:
    shape = image(rng)
    wide = list(shape)
    axis = int(rng.integers(1, 4))
    shape[axis], wide[axis] = 1, int(rng.integers(2, 5))
    return model("Expand", shape, [np.array(wide)])


def pad(rng: Rng) -> onnx.ModelProto:
    pads = np.zeros((2, 4), np.int64)
    pads[:, 2:] = rng.integers(0, 2, (2, 2))
    return model("Pad", image(rng), [pads.reshape(-1)], mode=str(rng.choice(["reflect", "edge", "wrap"])))


def space_to_depth(rng: Rng) -> onnx.ModelProto:
    h, w = (2 * int(v) for v in rng.integers(1, 4, 2))
    return model("SpaceToDepth", [1, int(rng.integers(1, 5)), h, w], [], blocksize=2)


def gather(rng: Rng) -> onnx.ModelProto:
    shape, axis = image(rng), int(rng.integers(1, 4))
    return model("Gather", shape, [rng.integers(0, shape[axis], int(rng.integers(1, 6)))], axis=axis)


def nearest(rng: Rng) -> onnx.ModelProto:
    shape = image(rng)
    sizes = np.array([*shape[:2], *(int(n * rng.uniform(0.5, 1.7)) + 1 for n in shape[2:])])
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return model("Resize", shape, [None, None, sizes], **how)


DRAWS: tuple[Callable[[Rng], onnx.ModelProto], ...] = (tile, expand, pad, space_to_depth, gather, nearest)


@pytest.mark.parametrize("draw", DRAWS)
@every("seed", range(12))
def test_elements_go_where_onnxruntime_puts_them(draw: Callable[[Rng], onnx.ModelProto], seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = draw(rng).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    dims = session.get_inputs()[0].shape
    samples = rng.standard_normal((6, *dims[1:])).astype(np.float32)
    graph = fuse(read_graph(data, "m"))
    laid = check_samples({"x": samples}, graph)["x"]
    for x, own in zip(samples, laid, strict=True):
        expected = session.run(None, {"x": x[None]})[0]
        found = graph.run({graph.inputs[0]: own})[graph.outputs[0]]
        assert np.array_equal(found.reshape(-1), expected.reshape(-1))
    quantized, agreement, _ = calibrated(graph, {"x": samples}, Options("m"))
    assert agreement.rms < 0.004
    assert plan(quantized).arena > 0


def test_a_map_without_order_is_refused() -> None:
    places = np.random.default_rng(0).permutation(500)
    with pytest.raises(ModelError, match="separate places; at most 64 are supported"):
        read_graph(model("Gather", [1, 500], [places], axis=1).SerializeToString(), "m")
