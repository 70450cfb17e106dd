"""Inference for ONNX's node cases when less or more is known of the inputs than in the cases.

Each model is read with inputs of unknown sizes, of unknown rank, and with inputs that are constants: the inferred facts
about an output must hold for the output that the case expects, and the generated code computes it.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.reader import read_model
from emberlet.errors import ModelError
from models.index import cases
from onnx import numpy_helper
from support.onnx_models import generated
from support.rows import every

from .cases import _run, compare, node_cases

WAYS = ("sizes", "rank", "constants", "constants but the first")
# Random results, inputs that are not tensors, and the largest of no elements, which is known only for known sizes.
LEFT_OUT = ("Bernoulli", "OptionalGetElement", "OptionalHasElement")
UNKNOWN = re.compile("known|constant|kernel_shape has 0 entries")
MOST = 6  # cases of an operator, those of the smallest inputs


def by_operator() -> dict[str, list[str]]:
    """Operator -> cases of that one node whose inputs and outputs are tensors."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, case in node_cases().items():
        graph = case.model.graph
        if len(graph.node) != 1 or case.model.functions or graph.node[0].op_type in LEFT_OUT or "empty_set" in name:
            continue
        values = [v for side in case.data_sets[0] for v in side]
        if all(isinstance(v, np.ndarray | np.generic) and v.dtype != object and v.size < 4096 for v in values):
            found.setdefault(graph.node[0].op_type, []).append((sum(v.size for v in values), name))
    out = {}
    for op, names in found.items():  # of each number of inputs, outputs and attributes the smallest, then others
        first: dict[tuple[int, ...], str] = {}
        for _, name in sorted(names):
            node = node_cases()[name].model.graph.node[0]
            first.setdefault((len(node.input), len(node.output), len(node.attribute)), name)
        out[op] = [*dict.fromkeys([*first.values(), *(name for _, name in sorted(names))])][:MOST]
    return out


CASES = by_operator()


def changed(model: onnx.ModelProto, inputs: list[Any], way: str) -> tuple[onnx.ModelProto, list[Any]]:
    """The model with less or more known of its inputs, and the inputs that remain."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph, kept = made.graph, inputs
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    if way == "rank":
        for info in graph.input:
            info.type.tensor_type.ClearField("shape")
    elif way == "sizes":
        for info in graph.input:
            for dim in info.type.tensor_type.shape.dim:
                dim.Clear()
    else:
        first = 1 if way.endswith("first") else 0
        given = list(zip(graph.input, inputs, strict=True))
        graph.initializer.extend(numpy_helper.from_array(v, i.name) for i, v in given[first:])
        kept, left = inputs[:first], [i for i, _ in given[:first]]
        del graph.input[:]
        graph.input.extend(left)
    return made, kept


@pytest.mark.parametrize("way", WAYS)
@every("operator", sorted(CASES))
def test_what_is_inferred_holds_whatever_is_known_of_the_inputs(operator: str, way: str) -> None:
    backend = get_backend("numpy")
    for n, name in enumerate(CASES[operator]):
        case = node_cases()[name]
        inputs, outputs = ([np.asarray(v) for v in side] for side in case.data_sets[0])
        model, kept = changed(case.model, inputs, way)
        try:
            found = read_model(model).graph.outputs
        except ModelError as error:  # the operator depends on what is not known
            assert way in ("sizes", "rank") and UNKNOWN.search(str(error)), (name, str(error))
            continue
        for argument, value in zip(found, outputs, strict=True):
            known = argument.type
            if not isinstance(known, TensorType):
                continue
            shape = value.shape if known.shape is None else known.shape
            assert len(shape) == value.ndim, (name, shape, value.shape)
            assert all(not isinstance(d, int) or d == s for d, s in zip(shape, value.shape, strict=True)), (name, shape)
            if value.dtype.kind in "fiub" and value.dtype.isnative:
                assert known.dtype.name == value.dtype.name, name
        if n >= 2:
            continue
        try:
            runnable = load(model, backend)
        except ModelError as error:  # the generated code depends on what is not known
            assert way in ("sizes", "rank") and UNKNOWN.search(str(error)), (name, str(error))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = _run(runnable, kept, backend)
        for got, want in zip(results, outputs, strict=True):
            compare(name, got, want, case.rtol, case.atol)


@pytest.mark.parametrize("way", ["as it is", *WAYS])
@every("case", list(cases(contrib=True)))
def test_operators_of_microsoft_whatever_is_known_of_their_inputs(case: Any, way: str) -> None:
    proto, arrays, want = onnx.load(case.model), case.inputs(), case.outputs()
    inputs = [arrays[i.name] for i in proto.graph.input]
    model, kept = (proto, inputs) if way == "as it is" else changed(proto, inputs, way)
    try:
        got = generated(model, kept)
    except ModelError as error:
        assert way in ("sizes", "rank") and UNKNOWN.search(str(error)), str(error)
        return
    for g, w in zip(got, want.values(), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, atol=max(case.atol, 1e-5), rtol=max(case.rtol, 1e-4))
        else:
            assert np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0) <= (1 if w.dtype.itemsize == 1 else 0)
