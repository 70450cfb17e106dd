"""Small models with one thing changed: an attribute left out or one more, an input of another rank, size or dtype, a
constant near the model's own (support.changed_nodes). Each is refused with a reason, or computes what onnxruntime
does."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.judge import Runtime
from emberlet.errors import ModelError, UnsupportedError
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from onnx import numpy_helper
from support import changed_nodes
from support.judged_nodes import difference, there

from . import test_import_paths

CHANGES = 12  # of each model
IMAGE, ROW = [1, 3, 4, 5], [1, 6]
BOOL, INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64


def _r(*shape: int) -> Any:
    return np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _i(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


OTHERS: dict[str, test_import_paths.Case] = {
    **{op: (op, ROW, {}, {}) for op in ("Neg", "Identity", "Round", "Sigmoid", "Erf", "IsNaN", "Selu", "Celu")},
    "LeakyRelu": ("LeakyRelu", IMAGE, {}, {"alpha": 0.5}),
    "Elu": ("Elu", IMAGE, {}, {"alpha": 0.5}),
    "ThresholdedRelu": ("ThresholdedRelu", ROW, {}, {"alpha": 0.5}),
    "HardSigmoid": ("HardSigmoid", ROW, {}, {"alpha": 0.5, "beta": 0.25}),
    "Shrink": ("Shrink", ROW, {}, {"bias": 0.5, "lambd": 0.25}),
    "Swish": ("Swish", ROW, {}, {"alpha": 0.5, "opset": 24}),
    "Gelu": ("Gelu", ROW, {}, {"approximate": "tanh", "opset": 20}),
    "Dropout": ("Dropout", ROW, {"ratio": np.float32(0.5), "training": np.bool_(False)}, {}),
    "Not": ("Not", ROW, {}, {"dtype": BOOL}),
    "ArgMax": ("ArgMax", IMAGE, {}, {"axis": 1, "keepdims": 0}),
    "ArgMin": ("ArgMin", IMAGE, {}, {"axis": -1, "select_last_index": 1}),
    "Split": ("Split", IMAGE, {"s": _i(1, 2)}, {"axis": 1, "outputs": "y i"}),
    "Split in equal parts": ("Split", [1, 6, 2], {}, {"axis": 1, "num_outputs": 2, "outputs": "y i"}),
    "Squeeze": ("Squeeze", [1, 3, 1, 5], {"a": _i(2)}, {}),
    "Squeeze of all": ("Squeeze", [1, 3, 1, 5], {}, {}),
    "GatherND": ("GatherND", [2, 3, 4], {"at": _i(0, 2, 1, 1).reshape(2, 2)}, {}),
    "GatherElements": ("GatherElements", [2, 3], {"at": _i(0, 1, 1, 0).reshape(2, 2)}, {"axis": 1}),
    "GatherElements of a row": ("GatherElements", [1, 6], {"x": 0, "<int>": [1, 4]}, {"axis": 1}),
    "Gather of a row": ("Gather", [1, 6], {"x": 0, "<int>": [4]}, {"axis": 1}),
    "Gather of a constant": ("Gather", [1, 2], {"c": _r(3, 4), "x": 0}, {"dtype": INT64}),
    "OneHot": ("OneHot", [1, 2], {"d": np.int64(3), "v": _r(2)}, {"axis": 1, "dtype": INT64}),
    "CumSum": ("CumSum", ROW, {"axis": np.int64(1)}, {"exclusive": 1}),
    "SpaceToDepth": ("SpaceToDepth", [1, 2, 4, 6], {}, {"blocksize": 2}),
    "RMSNormalization": ("RMSNormalization", [2, 6], {"g": _r(6)}, {"opset": 23}),
    "GroupNormalization": ("GroupNormalization", [1, 4, 3], {"g": _r(4), "b": _r(4)}, {"num_groups": 2, "opset": 21}),
    **{f"Reduce{kind}": (f"Reduce{kind}", IMAGE, {"a": _i(2, 3)}, {"keepdims": 0})
       for kind in ("Sum", "Max", "Prod", "L1", "SumSquare", "LogSum", "LogSumExp")},
    **{f"{op} of two": (op, IMAGE, {"x": 0, "<z>": [4, 5]}, {})
       for op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Mean", "Sum", "Greater", "LessOrEqual", "Equal")},
    **{f"{op} with rows": (op, IMAGE, {"c": _r(4, 1)}, {}) for op in ("Max", "Min", "Mean", "Pow", "Less", "Equal")},
    **{f"{op} of a number": (op, IMAGE, {"c": np.float32(0.5), "x": 0}, {})
       for op in ("Sub", "Div", "Pow", "Greater", "LessOrEqual", "Min")},
    **{f"{op} of all": (op, IMAGE, {"x": 0, "<z>": [3, 4, 5], "c": np.float32(0.5), "d": np.float32(0.25)}, {})
       for op in ("Max", "Min", "Sum", "Mean")},
    **{op: (op, ROW, {"c": np.array([True, False] * 3)}, {"dtype": BOOL}) for op in ("And", "Or", "Xor")},
    "Div of whole numbers": ("Div", ROW, {"c": _i(3, 2, 1, 4, 5, 6)}, {"dtype": INT64}),
    "Where": ("Where", [1, 4, 5], {"x": 0, "<z>": [3, 4, 5], "c": np.float32(0.5)}, {"dtype": BOOL}),
    "Where of constants": ("Where", [1, 4, 5], {"c": _r(3, 4, 5), "d": np.float32(-np.inf)}, {"dtype": BOOL}),
    "Clip": ("Clip", ROW, {"low": np.float32(0.0), "high": np.float32(np.inf)}, {}),
    "Clip of before": ("Clip", ROW, {}, {"min": -0.5, "max": 2.0, "opset": 6}),
    "RNN": ("RNN", [4, 1, 3], {"w": _r(1, 2, 3), "r": _r(1, 2, 2), "b": _r(1, 4)}, {
        "hidden_size": 2, "outputs": "y i"}),
    "GRU": ("GRU", [4, 1, 3], {"w": _r(2, 6, 3), "r": _r(2, 6, 2), "b": _r(2, 12)}, {
        "hidden_size": 2, "direction": "bidirectional", "outputs": "_ i"}),
}  # fmt: skip


def ways() -> Iterator[tuple[str, onnx.ModelProto]]:
    for name, (op, shape, constants, how) in {
        **test_import_paths.COMPUTED,
        **test_import_paths.REFUSED,
        **OTHERS,
    }.items():
        more = dict(how)
        outputs = more.pop("outputs", "y i" if op == "TopK" or name in test_import_paths.TWO else "y")
        yield name, onnx.load_from_string(test_import_paths._model((op, shape, constants, more), outputs=outputs))


OTHERWISE = {
    "all elements, sorted=0": "any order is right",
    "known lengths, x.0=8": "the known lengths are those of all steps, and are not compared with them",
}


def opened(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[Any]]:
    """The model with its constants as inputs behind its own, and the constants."""
    made, arrays = changed_nodes.copied(model), [None] * len(model.graph.input)
    for constant in model.graph.initializer:
        kind = onnx.helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims)
        made.graph.input.append(kind)
        arrays.append(numpy_helper.to_array(constant))
    del made.graph.initializer[:]
    return made, arrays


def is_fixed(model: onnx.ModelProto) -> bool:
    """Whether every input has a number for every size."""
    types = [info.type.tensor_type for info in model.graph.input]
    return all(t.HasField("shape") and all(d.HasField("dim_value") for d in t.shape.dim) for t in types)


def some_changes(name: str, model: onnx.ModelProto) -> list[tuple[str, onnx.ModelProto]]:
    """The model itself and a sample of its changes, the same each time."""
    found = [*changed_nodes.changes(model, [None] * len(model.graph.input)), *changed_nodes.layers(*opened(model))]
    found = [(label, made) for label, made in found if is_fixed(made)]
    draw = random.Random(name)
    return [("as it is", model), *draw.sample(found, min(CHANGES, len(found)))]


def given_to(model: onnx.ModelProto, draw: np.random.Generator) -> dict[str, Any]:
    """Numbers for the inputs that a microcontroller has: floats, small integers, bools."""
    found = {}
    for info in model.graph.input:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        numbers = draw.uniform(-1, 1, shape) if dtype.kind == "f" else draw.integers(0, 2, shape)
        found[info.name] = numbers.astype(dtype)
    return found


def computed(model: onnx.ModelProto, given: dict[str, Any]) -> list[Any]:
    graph = fuse(read_graph(model.SerializeToString(), "m"))
    laid = {}
    for name in graph.inputs:
        x = given[name].astype(np.float32)
        dims, order = graph.layouts.get(name, (x.shape, tuple(range(x.ndim))))
        laid[name] = x.reshape(dims).transpose(order).reshape(graph.shapes[name])
    results = graph.run(laid)
    return [finite(results[name]) for name in graph.outputs]


def finite(x: Any) -> Any:
    """In a row, with the largest number for infinity, as masks are stored."""
    return np.nan_to_num(np.asarray(x, np.float32), nan=np.nan).reshape(-1)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    made = Runtime()
    yield made
    made.close()


MODELS = dict(ways())
PARTS = 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_model_with_one_thing_changed_is_refused_or_computes_what_onnxruntime_does(
    part: int, runtime: Runtime
) -> None:
    found: list[str] = []
    count = 0
    for name in [*MODELS][part::PARTS]:
        for output in MODELS[name].graph.output:
            output.type.tensor_type.ClearField("shape")
        for label, model in some_changes(name, MODELS[name]):
            given = given_to(model, np.random.default_rng(zlib.crc32(label.encode())))
            theirs = there(model, given, runtime)
            if theirs is None or f"{name}, {label}" in OTHERWISE:
                continue
            try:
                ours = computed(model, given)
            except (ModelError, UnsupportedError):
                continue
            count += 1
            if said := difference(ours, [finite(y) for y in theirs]):
                found.append(f"{name}, {label}: {said}")
    assert found == []
    assert count > 20
