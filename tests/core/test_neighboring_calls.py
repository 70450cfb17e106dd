"""Calls of the public functions and layers, each changed by one thing at a time: a length, an axis, a dtype, a word, an
argument left out or added. What comes of them is recorded: a digest of the elements, or the error.

`UPDATE_SNAPSHOTS=1 pytest tests/core/test_neighboring_calls.py` records them again, for review.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import emberlet
import pytest
from support.neighboring_calls import described
from support.recorded import assert_recorded

FOLDER = Path(__file__).parent / "calls"
CALLS = [
    (file.stem, line)
    for file in sorted(FOLDER.glob("*.txt"))
    for line in file.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.fixture(autouse=True)
def on_python() -> Iterator[None]:
    emberlet.set_default_backend("python")
    yield
    emberlet.set_default_backend(None)


@pytest.mark.parametrize(("topic", "call"), CALLS, ids=[call for _, call in CALLS])
def test_a_call_and_its_neighbors_compute_or_refuse_as_recorded(topic: str, call: str) -> None:
    assert_recorded(FOLDER / "recorded" / f"{topic}.txt", call, described(call))
