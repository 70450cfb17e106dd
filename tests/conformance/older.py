"""Node cases rewritten for older opsets, to test earlier versions of operators.

A case is rewritten to an older version of its operator if that has everything the case uses; an input that was an
attribute becomes one. The expected results are onnxruntime's if it runs the model, else the case's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper

from .cases import node_cases

MOVED = {"K": "k", "constant_value": "value"}  # an input's name -> that of the attribute it was


@cache
def versions() -> dict[tuple[str, str], list[int]]:
    """(domain, operator) -> the opsets at which it changed, oldest first, without those at which it was withdrawn."""
    out: dict[tuple[str, str], list[int]] = {}
    history: Any = defs.get_all_schemas_with_history()
    for s in sorted(history, key=lambda s: int(s.since_version)):
        out.setdefault((s.domain, s.name), []).extend([] if s.deprecated else [s.since_version])
    return out


def older(case: Any, version: int) -> tuple[onnx.ModelProto, list[Any], list[Any]] | None:
    """(model, inputs, expected outputs) of a case of one node at an older opset; None where it cannot be expressed."""
    graph = case.model.graph
    if len(graph.node) != 1 or graph.initializer or len(case.data_sets) != 1 or case.model.functions:
        return None
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    inputs, outputs = case.data_sets[0]
    if any(not isinstance(v, np.ndarray) for v in (*inputs, *outputs)):
        return None
    given = dict(zip([i.name for i in graph.input], inputs, strict=True))
    now = max(o.version for o in case.model.opset_import if o.domain == node.domain)
    new, old = (defs.get_schema(node.op_type, v, node.domain) for v in (now, version))
    for i in reversed(range(len(node.input))):
        formal = new.inputs[min(i, len(new.inputs) - 1)].name
        name = MOVED.get(formal, formal)
        known = {p.name for p in old.inputs}
        if name in old.attributes and formal not in known and i == len(node.input) - 1:
            key = node.input[i]
            if key:
                value = given.pop(key)
                kind: Any = old.attributes[name].type
                whole = (
                    value.item()
                    if kind in (defs.OpSchema.AttrType.INT, defs.OpSchema.AttrType.FLOAT)
                    else value.tolist()
                )
                node.attribute.append(helper.make_attribute(name, whole, attr_type=int(kind.value)))
            del node.input[i]
    if any(a.name not in old.attributes for a in node.attribute):
        return None
    if not (old.min_input <= len(node.input) <= old.max_input and len(node.output) <= old.max_output):
        return None
    infos = [i for i in graph.input if i.name in given]
    proto = helper.make_graph([node], "older", infos, list(graph.output))
    imports = [helper.make_opsetid("", version if not node.domain else 17)]
    if node.domain:
        imports.append(helper.make_opsetid(node.domain, version))
    model = helper.make_model(proto, opset_imports=imports, ir_version=8)
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception:  # the old version does not take this case: another dtype, or another number of something
        return None
    return model, [given[i.name] for i in infos], list(outputs)


def told(
    domain: str, op: str, version: int, most: int = 3
) -> Iterator[tuple[str, onnx.ModelProto, list[Any], list[Any]]]:
    """Up to `most` cases of an operator at an older version: (name, model, inputs, expected outputs)."""
    count = 0
    for name, case in sorted(node_cases().items()):
        nodes = case.model.graph.node
        if len(nodes) != 1 or (nodes[0].domain, nodes[0].op_type) != (domain, op):
            continue
        if max(o.version for o in case.model.opset_import if o.domain == domain) <= version:
            continue
        found = older(case, version)
        if found is not None:
            yield name, *found
            count += 1
            if count == most:
                return


def right(model: onnx.ModelProto, inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """The expected outputs: onnxruntime's, or the case's if it does not run the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [i.name for i in model.graph.input]
        found: list[Any] = session.run(None, dict(zip(names, inputs, strict=True)))
        return found
    except Exception:
        return outputs
