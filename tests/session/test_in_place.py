"""Growing states in the memory of plans in machine code and in WebAssembly: steps append there and copy nothing."""

from __future__ import annotations

import copy
import pickle
from threading import Thread
from typing import Any

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.wgpu_backend.wasm.rooms import ArenaRoom
from models.index import HERE
from support.every_backend import NATIVE
from support.rows import every
from support.session_walks import LLAMA, walk

BACKENDS = ["wasm", pytest.param("native", marks=NATIVE.marks)]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@every("seed", range(6), share=3)
def test_random_steps_forks_and_rewinds_equal_numpy(backend: str, seed: int) -> None:
    walk(backend, seed)


@pytest.mark.parametrize("capacity", [64, None])
def test_a_step_copies_nothing_of_the_past(backend: str, capacity: int | None) -> None:
    session, twin = load(LLAMA, backend).session(capacity=capacity), load(LLAMA, "numpy").session(capacity=capacity)
    for n in range(20):
        np.testing.assert_allclose(session.step([[n]]), twin.step([[n]]), atol=1e-4)
    rooms: list[Any] = session._rooms
    assert all(type(room) is ArenaRoom for room in rooms)
    before = [room.moved for room in rooms]
    for n in range(10):
        np.testing.assert_allclose(session.step([[n]]), twin.step([[n]]), atol=1e-4)
    assert session._rooms == rooms and [room.moved for room in rooms] == before
    np.testing.assert_array_equal(session.state("key1"), session.state("key1"))
    np.testing.assert_allclose(session.state("key1"), twin.state("key1"), atol=1e-4)
    assert len(session._engine.compiled._open) == 1 and not session._engine.compiled.fixed


def test_forks_on_other_threads_take_turns_in_the_plans_memory(backend: str) -> None:
    first = load(LLAMA, backend).session(capacity=48)
    first.step([[5, 6, 7]])
    sessions = [first, first.fork(), first.fork()]
    found: dict[int, list[Any]] = {}

    def run(k: int) -> None:
        found[k] = [np.array(sessions[k].step([[10 * k + n]])) for n in range(12)]

    threads = [Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(3):
        twin = load(LLAMA, "numpy").session(capacity=48)
        twin.step([[5, 6, 7]])
        for n in range(12):
            np.testing.assert_allclose(found[k][n], twin.step([[10 * k + n]]), atol=1e-4)


def test_a_state_outlives_the_plan_that_holds_it(backend: str) -> None:
    session, twin = load(LLAMA, backend).session(capacity=32), load(LLAMA, "numpy").session(capacity=32)
    for n in range(5):
        session.step([[n]])
        twin.step([[n]])
    copies = [copy.deepcopy(session), pickle.loads(pickle.dumps(session))]
    session._engine.compiled.release()
    for n in range(3):
        wanted = twin.step([[n]])
        for one in (session, *copies):
            np.testing.assert_allclose(one.step([[n]]), wanted, atol=1e-4)


def test_wasm_runs_a_recurrent_network_as_one_plan() -> None:
    path = HERE / "lstm_step" / "model.onnx"
    session, twin = load(path, "wasm").session(), load(path, "python").session()
    frames = np.random.default_rng(0).standard_normal((6, 1, 1, 12)).astype(np.float32)
    for frame in frames:
        np.testing.assert_allclose(session.step(frame), twin.step(frame), atol=1e-5)
    assert len(session._engine.compiled._plans) == 1
    other: Any = session.fork()
    np.testing.assert_allclose(other.step(frames[0]), twin.step(frames[0]), atol=1e-5)
