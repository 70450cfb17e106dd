"""Every scenario of `dev.py soak`, for a moment."""

from __future__ import annotations

import pytest

from soak import engine
from tools.components import require

SEED = 20240229
SECONDS = 4.0


@pytest.mark.parametrize("name", engine.names())
def test_nothing_breaks(name: str) -> None:
    for part in engine.scenario(name).NEEDS:
        require(part)
    row = engine.run(name, SEED, SECONDS)
    assert not row.failures
    assert row.told["tried"] > 0


def test_a_scenario_that_ends_its_process_is_a_row_with_the_signal() -> None:
    assert "SIGABRT" in engine._ended(-6, "Error in wgpuQueueSubmit: Validation Error")
    row = engine.Row("x", "what", 1, 1.0, {}, [engine._ended(-6, "")])
    assert "| x | what | – | – | 1 |" in engine.line(row)
