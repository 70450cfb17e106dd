"""The outputs of onnxruntime for a single node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import helper

Array = np.ndarray[Any, np.dtype[Any]]


def run_node(
    op: str,
    inputs: list[Array | None],
    outputs: int = 1,
    *,
    domain: str = "",
    opset: int = 19,
    result: Any = np.float32,
    **attributes: Any,
) -> list[Array]:
    """The outputs of one operator; None stands for an input left out, `result` for the outputs' dtype or dtypes."""
    results = result if isinstance(result, list) else [result] * outputs
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"o{i}" for i in range(outputs)], domain=domain, **attributes)
    fed = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in fed.items()],
        [
            helper.make_tensor_value_info(f"o{i}", helper.np_dtype_to_tensor_dtype(np.dtype(d)), None)
            for i, d in enumerate(results)
        ],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, fed)
    return found
