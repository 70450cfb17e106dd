"""emberlet train-report: the command; tests/train/test_report.py has the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.small_training import fit

Emberlet = Callable[..., Any]


def test_the_command_writes_the_page_and_replaces_only_its_own(tmp_path: Path, emberlet: Emberlet) -> None:
    fit(tmp_path / "run", 1)
    for _ in range(2):
        said = emberlet("train-report", tmp_path / "run")
        assert said.status == 0, said.err
    assert (tmp_path / "run/report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    mine = tmp_path / "mine.html"
    mine.write_text("mine", encoding="utf-8")
    assert emberlet("train-report", tmp_path / "run", "--out", mine).status == 2
    assert mine.read_text(encoding="utf-8") == "mine"
    assert "not the folder of a training" in emberlet("train-report", tmp_path).err
