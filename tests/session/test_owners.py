"""What a step takes and gives belongs to the caller, whatever the model does with it. tests/contract/kinds/sessions.py
draws models and uses of their sessions."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from models.index import HERE
from support.every_backend import ALL
from support.session_models import of, tensor


@pytest.mark.parametrize("backend", ALL)
def test_an_output_that_is_an_old_state_belongs_to_the_caller(backend: str) -> None:
    made = of(lambda s, x: (s, s + x), ((0, 1, "replace"),), s0=tensor([1.0, 2.0], emberlet.get_backend(backend)))
    made.model.backend = emberlet.get_backend(backend)
    for n in range(5):
        made.snapshot()
        old = made.step(tensor([1.0, 1.0], made.model.backend))
        old[...] = 99.0
        made.rewind(1)
        assert made.state(0).tolist() == [1.0 + n, 2.0 + n]
        made.step(tensor([1.0, 1.0], made.model.backend))


@pytest.mark.parametrize("backend", ALL)
def test_an_input_that_becomes_a_state_or_an_output_belongs_to_the_caller(backend: str) -> None:
    here = emberlet.get_backend(backend)
    made = of(lambda s, x: (x, x, s), ((0, 0, "replace"),), s0=tensor([1.0], here))
    made.model.backend = here
    frame = np.zeros(1, np.float32)
    for n in range(5):
        frame[...] = n
        given = emberlet.asarray(frame, device=here)
        shown, before = made.step(given)
        frame[...] = 77.0
        given[...] = 88.0
        assert (shown.tolist(), made.state(0).tolist()) == ([float(n)], [float(n)])
        assert before.tolist() == [float(n - 1) if n else 1.0]


@pytest.mark.parametrize("backend", ALL)
def test_two_outputs_do_not_share_elements(backend: str) -> None:
    made = of(lambda s, x: (s + x, s * 2.0, F.reshape(s * 2.0, (1, 1))), ((0, 0, "replace"),), s0=tensor([1.0]))
    made._initial = {0: tensor([1.0], emberlet.get_backend(backend))}
    made.model.backend = emberlet.get_backend(backend)
    twice = made.model.forward
    made.model.forward = lambda s, x: (lambda y: (s + x, y, y))(twice(s, x)[1])
    for n in range(4):
        one, two = made.step(tensor([1.0], made.model.backend))
        one[...] = 9.0
        assert two.tolist() == [2.0 * (n + 1)]


def test_wasm_runs_a_recurrent_network_as_one_plan() -> None:
    path = HERE / "lstm_step" / "model.onnx"
    session, twin = load(path, "wasm").session(), load(path, "python").session()
    frames = np.random.default_rng(0).standard_normal((6, 1, 1, 12)).astype(np.float32)
    for frame in frames:
        np.testing.assert_allclose(session.step(frame), twin.step(frame), atol=1e-5)
    assert len(session._engine.compiled._programs) == 1
    other: Any = session.fork()
    np.testing.assert_allclose(other.step(frames[0]), twin.step(frames[0]), atol=1e-5)
