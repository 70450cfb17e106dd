"""Calls of the public functions and layers, each changed by one thing at a time: a length, an axis, a dtype, a word, an
argument left out or added. Plain Python and NumPy compute the same, or refuse by errors of the same class, which is one
of emberlet's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import emberlet
import pytest
from emberlet.errors import EmberletError
from support.draws import draw, share
from support.neighboring_calls import difference, neighbors, outcome

FOLDER = Path(__file__).parent / "calls"
TOPICS = sorted(file.stem for file in FOLDER.glob("*.txt"))
SHARE = 24  # a run has one of so many parts of the 25,000 neighbors, another one each time


@pytest.fixture(autouse=True)
def default_backend() -> Iterator[None]:
    yield
    emberlet.set_default_backend(None)


def calls(topic: str) -> list[str]:
    lines = (FOLDER / f"{topic}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def on_both(call: str) -> list[object]:
    found: list[object] = []
    for backend in ("python", "numpy"):
        emberlet.set_default_backend(backend)
        found.append(outcome(call))
    return found


def changed(call: str) -> list[str]:
    """The neighbors of a call. tests/core/test_wrong_arguments.py has None and strings in place of numbers."""
    found = dict.fromkeys(new for _, new in neighbors(call) if new.count("None") <= call.count("None"))
    return [new for new in found if new.count("string") <= call.count("string")]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_call_and_its_neighbors_compute_the_same_in_plain_python_and_on_numpy(topic: str) -> None:
    found: list[str] = []
    step = share(SHARE)
    first = draw(topic).randrange(step)
    for call in calls(topic):
        for text in (call, *changed(call)[first::step]):
            here, there = on_both(text)
            least = 0.03 if "float16" in text else 1e-5
            if said := difference(here, there, least):
                found.append(f"{text}: {said}")
            if text == call and isinstance(here, Exception):
                found.append(f"{text}: {type(here).__name__}: {here}")  # its neighbors would be refused as it is
            if not text.startswith("nn.") and isinstance(here, Exception) and not isinstance(here, EmberletError):
                found.append(f"{text}: {type(here).__name__} is an error of Python")
    assert found == []
