"""Slices of slices and exchanged parts: the pass `slices` finds them, and the results stay the same bits."""

from __future__ import annotations

import random

import emberlet
import numpy as np
import onnx
import onnxruntime
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state
from support.rows import every

SHAPE = (2, 6, 5, 4)


class _Slices:
    """A graph of slices and concatenations over x (2, 6, 5, 4), drawn with a seed."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def ints(self, *values: int) -> str:
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def cut(self, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
        return self.node("Slice", x, *(self.ints(n) for n in (start, end, axis, step)))

    def exchanged(self, x: str, axis: int, at: int, other: int | None = None) -> str:
        parts = self.cut(x, axis, at, 1 << 40), self.cut(x, axis, 0, at if other is None else other)
        return self.node("Concat", *parts, axis=axis)

    def model(self, y: str) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)]
        outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _source(model: onnx.ModelProto) -> str:
    """The code, once it gives the same bits as without passes."""
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    want, got = (load(model, "numpy", passes=passes)(x) for passes in ([], None))
    assert got.shape == want.shape
    assert bytes(got.backend.to_bytes(got)) == bytes(want.backend.to_bytes(want))
    return translate(model, "net")[1].source


@every("seed", range(20), share=3)
def test_slices_along_several_axes_are_one(seed: int) -> None:
    draw, s = random.Random(seed), _Slices()
    x = "x"
    for axis in draw.sample(range(4), 3):
        step = draw.choice((1, 2, 3, -1, -2))
        start, end = draw.randint(0, 1), draw.randint(3, SHAPE[axis] + 2)
        x = s.cut(x, axis, start, end, step) if step > 0 else s.cut(x, axis, end, -(1 << 40), step)
    assert _source(s.model(x)).rpartition(":\n")[2].count("[") <= 1


@every("seed", range(20), share=3)
def test_exchanged_parts_are_a_roll(seed: int) -> None:
    draw, s = random.Random(seed), _Slices()
    axes = draw.sample(range(4), draw.randint(1, 3))
    x = "x"
    for axis in axes:
        at = draw.randint(1, SHAPE[axis] - 1)
        x = s.exchanged(x, axis, at - draw.choice((0, SHAPE[axis])))
    source = _source(s.model(x))
    assert source.count("F.roll(x, ") == 1 and "concat" not in source


@pytest.mark.parametrize("other", [1, 3])
def test_parts_that_overlap_or_leave_something_out_are_no_roll(other: int) -> None:
    s = _Slices()
    assert "F.roll" not in _source(s.model(s.exchanged("x", 1, 2, other)))


def test_a_slice_that_cuts_an_axis_again_stays() -> None:
    s = _Slices()
    source = _source(s.model(s.cut(s.cut("x", 1, 1, 99), 1, 0, 99, 2)))
    assert "x[:, 1:]" in source and "x[:, ::2]" in source


def test_what_a_slice_was_cut_from_stays_for_its_other_readers() -> None:
    s = _Slices()
    whole = s.cut("x", 1, 1, 5)
    assert _source(s.model(s.node("Add", whole, s.cut(whole, 2, 0, 1)))).count("[:, 1:5") == 2


OF_ANY_RANK = {
    "Slice": ("y = Slice<starts = [0], ends = [2], axes = [0]>(s)", 9),
    "Slice from the end": ("y = Slice<starts = [1], ends = [99], axes = [-1]>(s)", 9),
    "Slice of the first axes": ("y = Slice<starts = [0], ends = [2]>(s)", 9),
    **{f"Flatten {axis}": (f"y = Flatten<axis = {axis}>(s)", 17) for axis in range(-2, 3)},
}


@every("op", OF_ANY_RANK)
@pytest.mark.parametrize("sizes", [("n", 1, 4), ("n", 4), (1, "n"), ("n", 1, "m")])
def test_the_rank_may_depend_on_open_lengths(op: str, sizes: tuple[int | str, ...]) -> None:
    text, opset = OF_ANY_RANK[op]
    given = ", ".join(map(str, sizes))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[{given}] x) => (float y) {{ s = Squeeze(x) {text} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    loaded = load(model, "numpy")
    for n in (3, 1):
        x = np.random.default_rng(n).standard_normal([{"n": n, "m": 2}.get(str(d), d) for d in sizes]).astype("float32")
        try:
            (want,) = session.run(None, {"x": x})
        except (state.Fail, state.InvalidArgument):
            with pytest.raises(EmberletError):
                loaded(emberlet.asarray(x, backend="numpy"))
            continue
        np.testing.assert_array_equal(np.asarray(loaded(emberlet.asarray(x, backend="numpy"))), want)
