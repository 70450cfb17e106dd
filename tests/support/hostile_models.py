"""Models that lie or ask for too much, made for several tests."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from .onnx_models import parse


def with_external(folder: Path, **entries: str) -> Path:
    model = parse("g (float[4] x) => (float[4] y) { y = Add(x, w) }")
    t = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[4])
    t.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        t.external_data.add(key=key, value=value)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def functions(calls: int, levels: int, back: bool = False) -> onnx.ModelProto:
    """Functions that call the next `calls` times each; the last one computes, or calls the first."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("d", 1)]
    made = []
    for i in range(levels):
        last = i == levels - 1
        op, domain = (("f0", "d") if back else ("Neg", "")) if last else (f"f{i + 1}", "d")
        nodes = [helper.make_node(op, [f"v{j}"], [f"v{j + 1}"], domain=domain) for j in range(1 if last else calls)]
        made.append(helper.make_function("d", f"f{i}", ["v0"], [f"v{len(nodes)}"], nodes, imports))
    infos = [helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="d")], "g", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=imports, functions=made)
