"""Single operators of .tflite files on int8 and uint8, compared with LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph

from tools.microcontrollers import litert
from tools.microcontrollers.tflite_files import File

pytestmark = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")

Rng = np.random.Generator

IMAGE = (1, 4, 5, 6)
BOTH = ("int8", "uint8")


class Operator(NamedTuple):
    """more: what writes the other inputs, of a file, a generator and the first input's number; same: the output is on
    the input's grid; grid: the output's, its zero point as of int8; positive: the input holds no negative numbers."""

    out: tuple[int, ...] = IMAGE
    shape: tuple[int, ...] = IMAGE
    more: Callable[[File, Rng, int], list[int]] = lambda f, rng, x: []
    same: bool = False
    grid: tuple[float, int] | None = None
    positive: bool = False
    dtypes: tuple[str, ...] = BOTH
    table: str = ""
    options: Mapping[str, Any] = MappingProxyType({})


def integers(*rows: Any) -> Callable[[File, Rng, int], list[int]]:
    return lambda f, rng, x: [f.constant(np.array(row, np.int32)) for row in rows]


def slopes(f: File, rng: Rng, x: int) -> list[int]:
    """One for each channel."""
    dtype = f.tensors[x].dtype
    data = rng.integers(0, 256, (IMAGE[3],)) - (128 if dtype == "int8" else 0)
    zero = int(rng.integers(0, 256)) - (128 if dtype == "int8" else 0)
    return [f.constant(data.astype(dtype), [float(10 ** rng.uniform(-2.3, -1))], [zero])]


def another(f: File, rng: Rng, x: int) -> list[int]:
    own = f.tensors[x]
    data = rng.integers(0, 256, own.shape) - (128 if own.dtype == "int8" else 0)
    return [f.constant(data.astype(own.dtype), own.scales, own.zeros)]


REDUCED = Operator((1, 1, 1, 6), more=integers((1, 2)), same=True, table="Reducer", options={"KeepDims": True})
RESIZED = Operator((1, 7, 9, 6), more=integers((7, 9)), same=True)
OPERATORS: dict[str, Operator] = {
    "ABS": Operator(dtypes=("int8",)),
    "EXP": Operator(dtypes=("int8",)),
    "GELU": Operator(),
    "HARD_SWISH": Operator(),
    "LOG": Operator(dtypes=("int8",), positive=True),
    "PRELU": Operator(more=slopes),
    "RELU_0_TO_1": Operator(),
    "RELU_N1_TO_1": Operator(),
    "RSQRT": Operator(dtypes=("int8",), positive=True),
    "SQRT": Operator(dtypes=("int8",), positive=True),
    "MAXIMUM": Operator(more=another, same=True),
    "MINIMUM": Operator(more=another, same=True),
    "REDUCE_MAX": REDUCED,
    "REDUCE_MIN": REDUCED,
    "RESIZE_NEAREST_NEIGHBOR": RESIZED._replace(table="ResizeNearestNeighbor", options={"HalfPixelCenters": True}),
    "TRANSPOSE": Operator((1, 5, 6, 4), more=integers((0, 2, 3, 1)), same=True),
    "TILE": Operator((1, 8, 5, 18), more=integers((1, 2, 1, 3)), same=True),
    "MIRROR_PAD": Operator(
        (1, 7, 8, 6), more=integers(((0, 0), (1, 2), (2, 1), (0, 0))), same=True, table="MirrorPad", options={"Mode": 0}
    ),
    "SPACE_TO_DEPTH": Operator((1, 2, 3, 12), (1, 4, 6, 3), same=True, table="SpaceToDepth", options={"BlockSize": 2}),
    "DEPTH_TO_SPACE": Operator((1, 4, 6, 3), (1, 2, 3, 12), same=True, table="DepthToSpace", options={"BlockSize": 2}),
    "SLICE": Operator((1, 2, 5, 3), more=integers((0, 1, 0, 2), (1, 2, 5, 3)), same=True),
    "GATHER": Operator((1, 3, 5, 6), more=integers((3, 0, 1)), same=True, table="Gather", options={"Axis": 1}),
}

NEAR: dict[str, Operator] = {
    "L2_NORMALIZATION": Operator((1, 8, 9), (1, 8, 9), grid=(1 / 128, 0), table="L2Norm"),
    "LOG_SOFTMAX": Operator((6, 20), (6, 20), grid=(16 / 256, 127)),
    "RESIZE_BILINEAR": RESIZED._replace(table="ResizeBilinear", options={"HalfPixelCenters": True}),
}
"""Operators that are at most a step off."""


def written(kind: str, op: Operator, dtype: str, rng: Rng) -> bytes:
    file, low = File(), -128 if dtype == "int8" else 0
    (scale, zero), (scale_out, zero_out) = ((float(10 ** rng.uniform(-2.3, -1)), int(rng.integers(256))) for _ in "xy")
    x = file.tensor(op.shape, dtype, scale, low if op.positive else zero + low)
    if op.same:
        scale_out, zero_out = scale, zero
    elif op.grid:
        scale_out, zero_out = op.grid[0], op.grid[1] + 128
    y = file.tensor(op.out, dtype, scale_out, zero_out + low)
    file.inputs, file.outputs = [x], [y]
    file.operator(kind, [x, *op.more(file, rng, x)], [y], op.table, **op.options)
    return file.written()


@pytest.mark.parametrize(("operators", "off"), [(OPERATORS, 0), (NEAR, 1)], ids=["exact", "near"])
def test_operators_are_as_in_litert(operators: dict[str, Operator], off: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(len(operators))
    models: dict[str, bytes] = {}
    inputs: dict[str, Any] = {}
    for kind, op in operators.items():
        for dtype in op.dtypes:
            for turn in range(5):
                key = f"{kind} {dtype} {turn}"
                models[key] = written(kind, op, dtype, rng)
                inputs[key] = rng.integers(0, 256, (4, *op.shape)) - (128 if dtype == "int8" else 0)
    expected = litert.answers(models, inputs, tmp_path)
    for key, data in models.items():
        graph, low = build(read_graph(data, "m"), Options("m")).graph, 128 if " int8" in key else 0
        (name,), target = graph.inputs, graph.outputs[0]
        found = [graph.run({name: (x + low).astype(np.uint8)})[target].reshape(-1) for x in inputs[key]]
        distance = np.abs(np.array(found).astype(int) - low - expected[key].astype(int))
        assert distance.max() <= off, (key, int((distance > off).sum()))


@pytest.mark.parametrize("dtype", BOTH)
def test_comparisons_on_one_grid_are_as_in_litert(dtype: str, tmp_path: Path) -> None:
    rng, low = np.random.default_rng(5), -128 if dtype == "int8" else 0
    models: dict[str, bytes] = {}
    inputs: dict[str, Any] = {}
    for kind in ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "EQUAL", "NOT_EQUAL"):
        file = File()
        x = file.tensor(IMAGE, dtype, float(10 ** rng.uniform(-2.3, -1)), int(rng.integers(256)) + low)
        (other,) = another(file, rng, x)
        file.inputs, file.outputs = [x], [file.tensor(IMAGE, "bool")]
        file.operator(kind, [x, other], file.outputs)
        models[kind] = file.written()
        inputs[kind] = rng.integers(0, 256, (4, *IMAGE)) + low
        inputs[kind][0] = np.frombuffer(file.tensors[other].data, dtype).reshape(IMAGE)  # equal everywhere
    expected = litert.answers(models, inputs, tmp_path)
    for kind, data in models.items():
        graph = build(read_graph(data, "m"), Options("m")).graph
        (name,) = graph.inputs
        found = [graph.run({name: (x - low).astype(np.uint8)})[graph.outputs[0]].reshape(-1) for x in inputs[kind]]
        np.testing.assert_array_equal(found, expected[kind], err_msg=kind)
