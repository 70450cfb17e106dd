"""ONNX's own cases of the operators for microcontrollers: a float32 build gives the expected results, or says what is
not supported."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet.errors import EmberletError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.importer.table import TRANSLATORS
from onnx import numpy_helper
from support.rows import every

Array = np.ndarray[Any, Any]
KINDS = {kind.__name__ for kind in TRANSLATORS}


def frozen(model: onnx.ModelProto, inputs: list[Array], kept: int, outputs: int) -> onnx.ModelProto:
    """The model with all but its first `kept` inputs constant, and its first `outputs` outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(x), i.name) for i, x in zip(graph.input[kept:], inputs[kept:], strict=True)
    )
    del graph.input[kept:]
    del graph.output[outputs:]
    return made


def computed(model: onnx.ModelProto, inputs: list[Array]) -> list[Array]:
    """The built graph's outputs. Raises EmberletError."""
    graph = build(read_graph(model.SerializeToString(), "m"), Options("m", floats=True)).graph
    given = {}
    for info, x in zip(model.graph.input, inputs, strict=False):
        dims, order = graph.layouts[info.name]
        given[info.name] = x.astype(np.float32).reshape(dims).transpose(order).reshape(graph.shapes[info.name])
    values = graph.run(given)
    return [values[name] for name in graph.outputs]


def usable(case: Any) -> bool:
    """Whether a case is of one supported operator on arrays of numbers."""
    graph = case.model.graph
    arrays = [x for data in case.data_sets for values in data for x in values]
    return (
        len(graph.node) == 1
        and graph.node[0].op_type in KINDS
        and len(graph.input) > 0
        and all(
            isinstance(x, np.ndarray | np.generic | float | int) and np.asarray(x).dtype.kind in "fiub" for x in arrays
        )
    )


def grouped() -> dict[str, list[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: dict[str, list[Any]] = {}
        for _, case in sorted(node_cases().items()):
            if usable(case):
                found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


CASES = grouped()
LACKS = (
    "a constant of dtype uint64 is not supported",
    "integers without a QuantizeLinear are not supported",
    r"the input has shape \(.*\); one or two spatial axes are supported",
    r"the batch size is \d; only 1 is supported",
    "input '.*' has shape .*, which holds no elements",
)
"""Reasons for which any operator's cases are refused."""
REFUSED: dict[str, tuple[str, ...]] = {
    "BatchNormalization": ("training mode is not supported",),
    "ConvInteger": ("its integers must come from a DynamicQuantizeLinear",),
    "DequantizeLinear": (
        "an activation with a scale for each channel",
        "quantized and dequantized with different scales",
    ),
    "Dropout": ("input 'z' is not a tensor of numbers", "training mode is not supported"),
    "Gemm": ("a transposed first operand is not supported", "the third operand has shape"),
    "LSTM": ("coupled gates and peepholes", "the last cell state is not supported as an output"),
    "LayerNormalization": ("the outputs mean and standard deviation are not supported",),
    "MatMul": ("the second operand has shape .*, expected a matrix",),
    "MatMulInteger": ("its integers must come from a DynamicQuantizeLinear",),
    "MaxPool": ("the indices of the maxima are not supported",),
    "QLinearMatMul": ("the second operand has shape .*, expected a matrix",),
    "QuantizeLinear": ("an activation with a scale for each channel",),
    "Resize": ("antialias is not", "mode cubic is not", "tf_crop_and_resize is not", "the shape of 'Y' is not known"),
    "Scan": ("only loops over the distances from constant rows", "the rows have shapes"),
    "Slice": ("the result is empty",),
    "Split": ("the result is empty",),
    "Tile": ("the elements go to 65 separate places",),
    "TreeEnsemble": ("the input has shape .*; one row of", "trees with BRANCH_MEMBER"),
}
NEVER = {"TreeEnsemble", "ConvInteger", "DynamicQuantizeLinear", "GroupNormalization", "MatMulInteger", "Scan"}
"""Operators without a case that can be built: with batches, with members, without what must stand before them."""
WORDS = ("test_quantizelinear_int16", "test_quantizelinear_uint16")
"""Outputs of 16 bits are given as real numbers."""


@pytest.mark.filterwarnings("ignore")
@every("op", CASES)
def test_cases_have_their_results_or_a_reason(op: str) -> None:
    wrong, reasons, right = [], set(), 0
    for case in CASES[op]:
        inputs, outputs = case.data_sets[0]
        inputs = [np.asarray(x) for x in inputs]
        for kept, count in {(1, 1), (1, len(outputs)), (len(inputs), len(outputs))}:
            try:
                found = computed(frozen(case.model, inputs, kept, count), inputs[:kept])
            except EmberletError as error:
                if kept == 1:
                    reasons.add(str(error).splitlines()[-1])
                continue
            right += 1
            half = any(np.asarray(x).dtype == np.float16 for x in (*inputs, *outputs))
            near = 5e-3 if half else 1e-4
            for y, wanted in zip(found, outputs[:count], strict=True):
                y, wanted = y.reshape(-1), np.asarray(wanted, np.float64).reshape(-1)
                if not np.allclose(y, wanted, rtol=near, atol=near, equal_nan=True) and case.name not in WORDS:
                    wrong.append((case.name, kept))
    assert not wrong
    assert right or op in NEVER
    known = (*LACKS, *REFUSED.get(op, ()))
    assert not [reason for reason in reasons if not any(re.search(k, reason) for k in known)]
