"""`Session.step_async`, the awaitable form of `step`."""

from __future__ import annotations

import asyncio
import copy
import random
from typing import Any

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.errors import EmberletError, ShapeError
from models.index import HERE
from support.rows import every

LLAMA, LSTM = HERE / "llama" / "model.onnx", HERE / "lstm_step" / "model.onnx"
gpu = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
everywhere = pytest.mark.parametrize("backend", ["numpy", "python", gpu])


class Held:
    """A session's engine whose steps end when the test releases them."""

    def __init__(self, session: Any) -> None:
        self.engine, self.go = session._engine, asyncio.Event()
        self.ended: list[bool] = []
        session._engine = self

    async def step_async(self, *given: Any) -> Any:
        found = await self.engine.step_async(*given)
        self.ended.append(True)
        await self.go.wait()
        return found


def near(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-3, atol=1e-4)


@everywhere
@every("seed", range(3), share=3)
def test_drawn_steps_are_those_of_step(backend: str, seed: int) -> None:
    choose = random.Random(seed)
    capacity = choose.choice([24, None])
    session, twin = (load(LLAMA, b).session(capacity=capacity) for b in (backend, "numpy"))

    async def steps() -> None:
        nonlocal session, twin
        for _ in range(14):
            if choose.random() < 0.2:
                session, twin = session.fork(), twin.fork()
            if choose.random() < 0.3 and twin.length:
                n = choose.randint(0, twin.length)
                session.rewind(n)
                twin.rewind(n)
            tokens = [[choose.randrange(80) for _ in range(choose.choice([1, 1, 1, 2, 5]))]]
            try:
                want = twin.step(tokens)
            except ShapeError:
                with pytest.raises(ShapeError, match="capacity"):
                    await session.step_async(tokens)
                continue
            # Both kinds of steps may take turns.
            near(session.step(tokens) if choose.random() < 0.2 else await session.step_async(tokens), want)
            assert session.length == twin.length

    asyncio.run(steps())
    near(session.state("key1"), twin.state("key1"))


@everywhere
def test_a_replaced_state_is_awaited_too(backend: str) -> None:
    session, twin = load(LSTM, backend).session(), load(LSTM, "numpy").session()
    frames = np.random.default_rng(0).standard_normal((6, 1, 1, 12)).astype(np.float32)

    async def steps() -> None:
        for frame in frames:
            near(await session.step_async(frame), twin.step(frame))

    asyncio.run(steps())


@everywhere
def test_sessions_step_side_by_side(backend: str) -> None:
    net, twin = load(LLAMA, backend), load(LLAMA, "numpy")
    sessions = [net.session(capacity=32) for _ in range(3)]
    others = [twin.session(capacity=32) for _ in range(3)]

    async def steps() -> None:
        for n in range(6):
            if n == 3:
                sessions.append(sessions[0].fork())
                others.append(others[0].fork())
            tokens = [[[(7 * n + 13 * k) % 80]] for k in range(len(sessions))]
            found = await asyncio.gather(*(s.step_async(t) for s, t in zip(sessions, tokens, strict=True)))
            for got, other, token in zip(found, others, tokens, strict=True):
                near(got, other.step(token))

    asyncio.run(steps())
    for session, other in zip(sessions, others, strict=True):
        near(session.state("value0"), other.state("value0"))


@pytest.mark.needs("gpu-driver")
def test_only_reading_is_allowed_during_a_step() -> None:
    session, twin = load(LLAMA, "wgpu").session(capacity=16), load(LLAMA, "numpy").session(capacity=16)
    near(session.step([[1]]), twin.step([[1]]))

    async def steps() -> None:
        held = Held(session)
        running = asyncio.ensure_future(session.step_async([[2]]))
        await asyncio.sleep(0)
        for refused in (session.reset, session.fork, lambda: session.rewind(1), lambda: session.step([[3]])):
            with pytest.raises(EmberletError, match="under way"):
                refused()
        with pytest.raises(EmberletError, match="under way"):
            await session.step_async([[3]])
        assert session.length == 1
        near(session.state("key0"), twin.state("key0"))
        held.go.set()
        near(await running, twin.step([[2]]))
        near(await session.step_async([[3]]), twin.step([[3]]))

    asyncio.run(steps())


@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("computed", [False, True])
def test_a_canceled_step_leaves_the_session_as_it_was(before: int, computed: bool) -> None:
    session, twin = load(LLAMA, "wgpu").session(), load(LLAMA, "numpy").session()
    for n in range(before):
        near(session.step([[n]]), twin.step([[n]]))

    async def steps() -> None:
        ended = Held(session).ended
        running = asyncio.ensure_future(session.step_async([[40, 41]]))
        if computed:
            while not ended:
                await asyncio.sleep(0.01)
        else:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert session.length == before
        session._engine = getattr(session._engine, "engine", session._engine)
        for n in range(4):
            near(await session.step_async([[n]]), twin.step([[n]]))

    asyncio.run(steps())
    near(session.state("key0"), twin.state("key0"))


@everywhere
def test_a_failed_step_leaves_the_session_as_it_was(backend: str) -> None:
    session, twin = load(LLAMA, backend).session(capacity=3), load(LLAMA, "numpy").session(capacity=3)

    async def steps() -> None:
        with pytest.raises(ShapeError, match="capacity"):
            await session.step_async([[1, 2, 3, 4]])
        near(await session.step_async([[1, 2]]), twin.step([[1, 2]]))
        with pytest.raises(ShapeError, match="capacity"):
            await session.step_async([[1, 2]])
        with pytest.raises(EmberletError, match="no input"):
            await session.step_async(words=[[1]])
        near(await copy.copy(session).step_async([[5]]), twin.step([[5]]))

    asyncio.run(steps())
