"""An interrupt at any line of a step leaves the session as it was before the step or as it is after it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from contract.case import loaded
from contract.kinds.sessions import Drawn, Kept, draw, names_of, source
from contract.reference import quiet
from emberlet.host.numpy_backend import resident as numpy_resident
from emberlet.wgpu_backend.wasm import resident as wasm_resident
from support.every_backend import NATIVE, WASM, WGPU
from support.interrupted import interrupted


@pytest.mark.parametrize("backend", ["python", "numpy", WGPU, WASM, NATIVE])
@pytest.mark.parametrize("eager", [False, True])
def test_an_interrupted_step_has_happened_or_has_not(
    backend: str, eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_resident, "AFTER", 1)
    monkeypatch.setattr(wasm_resident, "AFTER", 1)
    stopped = 0
    for seed in range(12):
        choose = random.Random(seed)
        drawn = draw(choose)
        assert drawn
        drawn = drawn._replace(capacity=None, initial="")
        with quiet():
            module = loaded(source(drawn))
            session, twin = module.Net(backend).session(), Kept(drawn, module.Net("numpy"))
            for _ in range(choose.randint(0, 2)):
                step(session, twin, drawn, choose)
            for _ in range(4):
                x = given(choose)
                after = twin.fork()
                after.step(x)
                if eager:
                    session._engine = False
                stop = interrupted(lambda s=session, x=x: s.step(x), choose.randint(1, 3000))
                stopped += stop
                if not stop or differ(session, twin, drawn):
                    twin = after
                assert not differ(session, twin, drawn), seed
                step(session, twin, drawn, choose)
    assert stopped > 10


def given(choose: random.Random) -> Any:
    rows = choose.choice([1, 1, 2])
    return np.round(np.array([[[choose.uniform(-4, 4) for _ in range(3)] for _ in range(rows)]], np.float32), 2)


def differ(session: Any, twin: Kept, drawn: Drawn) -> bool:
    """Whether the states or the length are not those of the model called by hand."""
    if session.length != twin.length:
        return True
    states = zip(names_of(drawn), twin.states or (), strict=False)
    return not all(near(session.state(name), state) for name, state in states)


def near(found: Any, wanted: Any) -> bool:
    found = np.asarray(found)
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-3, atol=1e-4)


def step(session: Any, twin: Kept, drawn: Drawn, choose: random.Random) -> None:
    """A step that is not interrupted gives what the model called by hand does."""
    x = given(choose)
    want, got = twin.step(x), session.step(x)
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert near(g, w)
    assert not differ(session, twin, drawn)
