"""Scenarios of `dev.py soak`, each for a moment: a fifth of them, others in each run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.draws import some

from soak import engine
from tools.components import require

SEED = 20240229
SECONDS = 0.8


@pytest.mark.timeout(engine.GRACE + 60)
@pytest.mark.parametrize("name", some(engine.names(), 5, __name__))
def test_nothing_breaks(name: str) -> None:
    for part in engine.scenario(name).NEEDS:
        require(part)
    row = engine.run(name, SEED, SECONDS)
    assert not isinstance(row, str), row
    assert not row.failures
    assert row.told["tried"] + row.told["checked"] > 0  # the moment may end before an interrupt hits


def test_a_scenario_that_ends_its_process_is_a_row_with_the_signal() -> None:
    assert "SIGABRT" in engine._ended(-6, "Error in wgpuQueueSubmit: Validation Error")
    row = engine.Row("x", "what", 1, 1.0, {}, [engine._ended(-6, "")])
    assert "| x | what | – | – | 1 |" in engine.line(row)


def test_a_run_that_fails_leaves_the_row_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = engine.line(engine.Row("files", "what", 1, 1.0, {"tried": 5, "unit": "files", "checked": 5}, []))
    table = tmp_path / "reliability.md"
    table.write_text(f"{engine.BEGIN}{good}\n{engine.END}", encoding="utf-8")
    monkeypatch.setattr(engine, "TABLE", table)
    monkeypatch.setattr(engine, "ROOT", tmp_path)
    monkeypatch.setattr(engine, "GRACE", -0.01)
    run = ["files", "--minutes", "0.001"]
    assert engine.main(run) == 1 and good in table.read_text(encoding="utf-8")  # it does not end in time
    monkeypatch.setattr(engine, "GRACE", 600.0)
    monkeypatch.setattr(engine, "ANSWER", "another answer: ")
    assert engine.main(run) == 1 and good in table.read_text(encoding="utf-8")  # it ends without an answer
