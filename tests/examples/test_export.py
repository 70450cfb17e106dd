"""examples/_export.py, which every training script takes: what it asks of PyTorch's exporter and what it writes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import onnx
import onnx.parser
import pytest

from tools.paths import ROOT

EXAMPLES = ROOT / "examples"
MODEL = '<ir_version: 8, opset_import: ["": 20]> g (float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }'


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_file_keeps_the_model_and_loses_the_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dynamic: bool
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from _export import export

    proto, asked = onnx.parser.parse_model(MODEL), {}
    for place in (proto, proto.graph, proto.graph.node[0], proto.graph.input[0], proto.graph.output[0]):
        place.metadata_props.add(key="source", value="/home/somebody/train.py")
    proto.graph.node[0].doc_string = "/home/somebody/train.py, line 1"

    def exporter(model: object, args: tuple[object, ...], **options: object) -> SimpleNamespace:
        asked.update(options, args=args)
        return SimpleNamespace(model_proto=proto)

    torch = SimpleNamespace(onnx=SimpleNamespace(export=exporter), export=SimpleNamespace(Dim=lambda name: name))
    monkeypatch.setitem(sys.modules, "torch", torch)
    export(None, "a tensor", tmp_path / "m.onnx", "x", "y", dynamic_batch=dynamic)

    assert (asked["args"], asked["input_names"], asked["output_names"]) == (("a tensor",), ["x"], ["y"])
    assert asked["dynamic_shapes"] == (({0: "batch"},) if dynamic else None)
    data = (tmp_path / "m.onnx").read_bytes()
    assert b"somebody" not in data
    assert onnx.load_from_string(data) == onnx.parser.parse_model(MODEL)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/train.py")), ids=lambda script: script.parent.name)
def test_each_training_script_takes_the_shared_exporter(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    imported = {
        a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "_export" for a in n.names
    }
    assert imported == {"export"}
    assert "export" not in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "export"]
    assert [len(call.args) for call in calls] == [5]
