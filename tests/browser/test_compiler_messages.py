"""What a tab reads where its compiler refuses a model: the options as `load` takes them, and the rest word for word."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import build_package
import onnx
import pytest
from emberlet.host.cli import main as command
from onnx import helper

Compile = Callable[..., str]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compile:
    """The error of the compiler's script for a file and the words of the options."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the script sets it
    compiler = runpy.run_path(str(build_package.PACKAGE / "compiler" / build_package.SCRIPT))["compile"]

    def said(path: Path, dim: tuple[str, ...] = (), freeze: tuple[str, ...] = ()) -> str:
        told = json.loads(compiler(str(path), str(tmp_path / "out.wasm"), json.dumps({"dim": dim, "freeze": freeze})))
        return str(told["error"])

    return said


def saved(path: Path, op: str, *, shape: tuple[int, ...] = (), rows: str | None = "rows", name: str = "x") -> Path:
    """An ONNX file of one operation on an input of (rows, columns); with `shape`, it reshapes."""
    value = helper.make_tensor_value_info
    constant = [helper.make_tensor("shape", 7, [len(shape)], shape)] if shape else []
    node = helper.make_node(op, [name, *(c.name for c in constant)], ["y"])
    graph = helper.make_graph([node], "one", [value(name, 1, [rows, "columns"])], [value("y", 1, None)], constant)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_sizes_and_ranges_are_as_load_takes_them(said: Compile, tmp_path: Path) -> None:
    relu = saved(tmp_path / "relu.onnx", "Relu")
    there = "no input has a dimension"
    assert said(relu, ("lenght=3",)).startswith(f"dims: {{ lenght: 3 }}: {there} 'lenght'; there are rows, columns")
    assert said(relu, ("a b=1..8",)).startswith(f'dims: {{ "a b": [1, 8] }}: {there} named ')
    assert said(relu, ("z:1=2..8:2",)).startswith(f'dims: {{ "z:1": [2, 8, 2] }}: {there} named ')


def test_sizes_that_are_asked_for_are_one_object(said: Compile, tmp_path: Path) -> None:
    seven_by_eleven = saved(tmp_path / "reshape.onnx", "Reshape", shape=(7, 11))
    assert said(seven_by_eleven).endswith("give the sizes of the unknown dimensions: dims: { rows: …, columns: … }")


def test_a_module_with_a_constant_input_is_told_how_it_was_written(said: Compile, tmp_path: Path) -> None:
    relu = saved(tmp_path / "relu.onnx", "Relu")
    assert command(["codegen", str(relu), "--out", str(tmp_path)]) == 0
    anew = "generate relu.py anew with `emberlet codegen --freeze`"
    assert said(tmp_path / "relu.py", (), ("x=1",)) == f"freeze takes an ONNX file: {anew}"


def test_names_of_a_model_stay_as_they_are(said: Compile, tmp_path: Path) -> None:
    odd = saved(tmp_path / "odd.onnx", "Relu", rows=None, name="--dim rows=1..8")
    assert said(odd, ("n=3",)).endswith("'n'; there are --dim rows=1..8:0, columns")
