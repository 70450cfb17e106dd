"""The functional layer against ONNX's own node cases and onnxruntime's outputs, one operator at a time."""

from __future__ import annotations

from functools import cache
from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
from conformance.cases import node_cases
from emberlet import functional as F
from models.index import Case, cases
from support.every_backend import EVERY
from support.onnx_functions import HANDLERS, Call, backend_of, close, key, run
from support.rows import every


@cache
def cases_with_handlers() -> dict[str, Any]:
    """ONNX's cases of a single node that has a handler, by name."""
    return {
        name.removeprefix("test_"): case
        for name, case in node_cases().items()
        if case.model is not None and len(case.model.graph.node) == 1 and key(case.model.graph.node[0]) in HANDLERS
    }


def single_node_models() -> list[Case]:
    return [c for c in cases() if c.name.startswith("contrib/") and key(onnx.load(c.model).graph.node[0]) in HANDLERS]


def array_of(value: Any) -> Any:
    """The elements of a case's input or output, which is an array or, for the narrow types, a TensorProto."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def check(node: onnx.NodeProto, inputs: dict[str, Any], outputs: dict[str, Any], backend: str, **more: Any) -> None:
    call = Call(node, [inputs[name] if name else None for name in node.input], backend_of(backend), more["opset"])
    found = run(call)
    for i, name in enumerate(node.output):
        if name and name in outputs:
            y = found[i]
            assert y is not None, f"output {i} is missing"
            close(y, outputs[name], more["rtol"], more["atol"], more.get("levels", 0))


@pytest.mark.parametrize("backend", EVERY)
@every("name", cases_with_handlers)
def test_node_case(name: str, backend: str) -> None:
    case = cases_with_handlers()[name]
    graph = case.model.graph
    opset = next((o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")), 0)
    for inputs, outputs in case.data_sets:
        check(
            graph.node[0],
            dict(zip((i.name for i in graph.input), map(array_of, inputs), strict=False)),
            dict(zip((o.name for o in graph.output), map(array_of, outputs), strict=False)),
            backend,
            opset=opset,
            rtol=case.rtol,
            atol=max(case.atol, 1e-5),
        )


@pytest.mark.parametrize("backend", EVERY)
@every("case", single_node_models())
def test_single_node_model(case: Case, backend: str) -> None:
    model = onnx.load(case.model)
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer}
    check(
        model.graph.node[0],
        {**weights, **case.inputs()},
        case.outputs(),
        backend,
        opset=model.opset_import[0].version,
        rtol=case.rtol,
        atol=case.atol,
        levels=int(case.literal),
    )


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("a", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("b", [(4,), (4, 5)])
def test_a_scale_of_one_value_adds_no_axis_to_a_quantized_product(backend, a, b, shape):
    x, y = (emberlet.asarray(np.ones(s, np.uint8)) for s in (a, b))
    scale, zero = emberlet.asarray(np.full(shape, 0.5, np.float32)), emberlet.asarray(np.zeros(shape, np.uint8))
    found = F.qlinear_matmul(x, scale, zero, y, scale, zero, scale, zero)
    assert found.shape == (np.ones(a) @ np.ones(b)).shape
    assert found.reshape((-1,)).tolist() == [2] * found.size
