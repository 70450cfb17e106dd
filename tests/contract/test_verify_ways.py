"""`emberlet verify` compares the ways that people run a model."""

from __future__ import annotations

import json
from pathlib import Path

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
