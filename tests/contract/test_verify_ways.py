"""`emberlet verify` compares the ways that people run a model."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from emberlet.host.cli import main

DIGITS = str(Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx")


def test_verify_compares_every_way_over_several_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ways"]
    assert [row["way"] for row in rows] == ["eager", "compiled", "threads", "onnxruntime"]
    assert all(row["within"] and row["calls"] == 3 for row in rows)


def test_verify_takes_the_ways_by_name_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", DIGITS, "--json", "--ways", "compiled"]) == 0
    assert [row["way"] for row in json.loads(capsys.readouterr().out)["ways"]] == ["compiled"]
    assert main(["verify", DIGITS, "--ways", "fast"]) == 2
    assert "there is no way 'fast'" in capsys.readouterr().err


def test_a_model_without_weights_is_compiled_on_its_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (int64[1, m] y) { y = NonZero(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "nonzero.onnx")
    for backend, front in (("numpy", 3), ("wasm", None)):
        assert main(["verify", str(tmp_path / "nonzero.onnx"), "--json", "--backend", backend]) == 0
        rows = json.loads(capsys.readouterr().out)["ways"]
        assert [row.get("calls") for row in rows] == [3, 3, 3, front]
        assert ("runs operation by operation" in rows[1]["note"]) == (backend == "wasm")
