"""An interrupt at any line of a step leaves the session as it was before the step or as it is after it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emberlet.host.numpy_backend import resident as numpy_resident
from emberlet.wgpu_backend.wasm import resident as wasm_resident
from support.drawn_sessions import MARKED, Drawn, Expected, _close, _states_differ, drawn_model, session_on
from support.interrupted import interrupted


@pytest.mark.parametrize("way", MARKED)
def test_an_interrupted_step_has_happened_or_has_not(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_resident, "AFTER", 1)
    monkeypatch.setattr(wasm_resident, "AFTER", 1)
    stopped = 0
    for seed in range(12):
        choose = random.Random(seed)
        plan = drawn_model(choose)
        session, twin = session_on(way, plan, None), Expected(Drawn(*plan, backend="python"))
        for _ in range(choose.randint(0, 2)):
            step(session, twin, choose)
        for _ in range(4):
            x = drawn(choose)
            after = twin.fork()
            after.step(x)
            stop = interrupted(lambda s=session, x=x: s.step(x), choose.randint(1, 3000))
            if way.endswith("eager"):
                session._engine = False
            stopped += stop
            if not stop or _states_differ(session, twin):
                twin = after
            assert not _states_differ(session, twin), seed
            step(session, twin, choose)
    assert stopped > 10


def drawn(choose: random.Random) -> np.ndarray:
    rows = choose.choice([1, 1, 2])
    return np.round(np.array([[choose.uniform(-4, 4) for _ in range(3)] for _ in range(rows)], np.float32), 2)


def step(session: Any, twin: Expected, choose: random.Random) -> None:
    """A step that is not interrupted gives what the model called by hand does."""
    x = drawn(choose)
    want, got = twin.step(x), session.step(x)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert _close(g, w)
    assert not _states_differ(session, twin)
