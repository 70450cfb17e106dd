"""Small models with one thing changed are refused with a reason, or become the layers that are recorded.

The changes are those of `support.changed_nodes`: an attribute left out or one more, an input of another rank, size or
dtype, a constant near the model's own. So the ends of what is imported, its defaults and its messages do not move
unseen. Other tests compare results. `UPDATE_SNAPSHOTS=1 pytest` on this file records them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.micro.builder import from_ir
from emberlet.micro.builder.importer.translation import translate
from onnx import numpy_helper
from support import changed_nodes
from support.microcontrollers.outcomes import lines_of, of_its_own, outcome
from support.microcontrollers.quantized_nodes import KINDS, node_of
from support.recorded import assert_recorded

from . import test_import_paths, test_import_refusals, test_machine_learning_nodes

RECORDED = Path(__file__).with_name("recorded_changes.txt")

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
    "LSTM of states": ("LSTM", [4, 1, 3], {
        "x": 0, "w": _r(1, 8, 3), "r": _r(1, 8, 2), "b": _r(1, 16), "n": None, "<h>": [1, 1, 2], "<c>": [1, 1, 2]}, {
        "hidden_size": 2, "outputs": "y i j"}),
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


def neighbors() -> Iterator[tuple[str, onnx.ModelProto]]:
    for name, make in {**test_import_refusals.ACCEPTED, **test_import_refusals.REFUSED}.items():
        yield name, onnx.load_from_string(make())


def machine_learning() -> Iterator[tuple[str, onnx.ModelProto]]:
    for name in [*test_machine_learning_nodes.COMPUTED][::2]:
        yield name, test_machine_learning_nodes.COMPUTED[name]()


def quantized() -> Iterator[tuple[str, onnx.ModelProto]]:
    for seed in range(1200, 1200 + 2 * len(KINDS)):
        node = node_of(seed)
        yield f"{node.op} {seed}", node.model()


def opened(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[Any]]:
    """The model with its constants as inputs behind its own, and the constants."""
    made, arrays = changed_nodes.copied(model), [None] * len(model.graph.input)
    for constant in model.graph.initializer:
        kind = onnx.helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims)
        made.graph.input.append(kind)
        arrays.append(numpy_helper.to_array(constant))
    del made.graph.initializer[:]
    return made, arrays


def all_changes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    yield from changed_nodes.changes(model, [None] * len(model.graph.input))
    yield from changed_nodes.layers(*opened(model))


def outcome_of(model: onnx.ModelProto) -> str:
    # Logarithms and the numbers of trained models depend on the platform.
    exact = all(node.domain != "ai.onnx.ml" and node.op_type != "Pow" for node in model.graph.node)
    return outcome(lambda: from_ir.read_graph(model.SerializeToString(), "m"), exact)


MODELS = {name: model for models in (ways, neighbors, machine_learning, quantized) for name, model in models()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_one_thing_changed_becomes_what_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_ir, "translate", of_its_own(translate))
    model = MODELS[name]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    lines = lines_of(RECORDED, name, {"as it is": model, **dict(all_changes(model))}, outcome_of)
    assert lines
    assert_recorded(RECORDED, name, lines)
