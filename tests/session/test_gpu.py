"""Sessions on the GPU: states stay in its memory, and one plan serves every length."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.errors import ShapeError
from emberlet.model import Model
from models.index import HERE

pytestmark = pytest.mark.needs("gpu-driver")
LLAMA, LSTM = HERE / "llama" / "model.onnx", HERE / "lstm_step" / "model.onnx"


def read(monkeypatch: pytest.MonkeyPatch, backend: Any) -> list[tuple[int, ...]]:
    """The shapes of tensors whose elements are read from now on."""
    shapes: list[tuple[int, ...]] = []
    whole = type(backend).to_bytes

    def to_bytes(self: Any, x: Any) -> Any:
        shapes.append(x.shape)
        return whole(self, x)

    monkeypatch.setattr(type(backend), "to_bytes", to_bytes)
    return shapes


def test_a_growing_state_takes_one_plan_and_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    session = load(LLAMA, "wgpu").session(capacity=64)
    twin = load(LLAMA, "numpy").session(capacity=64)
    device = get_backend("wgpu").device
    for n in range(3):
        np.testing.assert_allclose(session.step([[n]]), twin.step([[n]]), atol=1e-4)
    buffers, shapes = device.created_buffers, read(monkeypatch, get_backend("wgpu"))
    for n in range(3, 40):
        np.testing.assert_allclose(session.step([[n]]), twin.step([[n]]), atol=1e-4)
    compiled = session._engine.compiled
    assert len(compiled._open) == 1 and not compiled.fixed
    assert device.created_buffers == buffers
    assert {len(shape) for shape in shapes} <= {2, 3}, "only tokens and logits are read, no caches"
    np.testing.assert_allclose(session.state("key1"), twin.state("key1"), atol=1e-4)


def test_a_replaced_state_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    session, twin = load(LSTM, "wgpu").session(), load(LSTM, "numpy").session()
    x = np.random.default_rng(0).standard_normal((12, 1, 1, 12)).astype(np.float32)
    session.step(x[0])
    twin.step(x[0])
    shapes = read(monkeypatch, get_backend("wgpu"))
    for frame in x[1:]:
        np.testing.assert_allclose(session.step(frame), twin.step(frame), atol=1e-4)
    assert (2, 1, 24) not in shapes
    assert len(session._engine.compiled._programs) == 1


def test_sessions_and_forks_share_plans_and_no_state() -> None:
    net, twin = load(LLAMA, "wgpu"), load(LLAMA, "numpy")
    sessions, others = [net.session(capacity=32)], [twin.session(capacity=32)]
    for n in range(12):
        if n in (3, 6):
            sessions.append(sessions[0].fork())
            others.append(others[0].fork())
        if n == 9:
            sessions[1].rewind(4)
            others[1].rewind(4)
        for k, (session, other) in enumerate(zip(sessions, others, strict=True)):
            token = [[(7 * n + 13 * k) % 80]]
            np.testing.assert_allclose(session.step(token), other.step(token), atol=1e-4)
    assert len({id(s._engine) for s in sessions}) == 1
    assert len(sessions[0]._engine.compiled._open) == 1
    for session, other in zip(sessions, others, strict=True):
        np.testing.assert_allclose(session.state("value0"), other.state("value0"), atol=1e-4)


def test_steps_of_several_lengths() -> None:
    session, twin = load(LLAMA, "wgpu").session(), load(LLAMA, "numpy").session()
    random = np.random.default_rng(4)
    for new in (5, 1, 3, 1, 1, 2, 4, 1):
        tokens = random.integers(0, 80, (2, new))
        np.testing.assert_allclose(session.step(tokens), twin.step(tokens), atol=1e-4)
    np.testing.assert_allclose(session.state("value1"), twin.state("value1"), atol=1e-4)


@pytest.mark.parametrize("capacity", [64, None])
def test_a_step_writes_what_is_new_and_copies_nothing(capacity: int | None) -> None:
    session = load(LLAMA, "wgpu").session(capacity=capacity)
    for n in range(20):
        session.step([[n]])
    before = session._engine.moved
    for n in range(10):
        session.step([[n]])
    assert session._engine.moved - before == 10 * 4 * (4 * 4) * 4, "four states, 4 heads of 4 float32"


def test_prompts_of_any_length_share_a_plan_and_single_tokens_have_one() -> None:
    session = load(LLAMA, "wgpu").session(capacity=128)
    for new in (4, 1, 7, 1, 2, 9, 1, 5, 3):
        session.step([[3] * new])
    compiled = session._engine.compiled
    assert len(compiled._open) <= 3 and not compiled._programs and not compiled.fixed


class Kept(Model):
    """States that grow along each of three axes, by rows that depend on the past, by two parts, in float16 and
    int32."""

    STATE = (
        ("a", 1, "append", 0),
        ("b", 2, "append", 1),
        ("c", 3, "append", 2),
        ("d", 4, "append", 0),
        ("e", 5, "append", 0),
        ("f", 6, "replace", None),
    )
    INPUTS = (
        ("x", "float32", ("new", 3)),
        ("a", "float32", ("past", 3)),
        ("b", "float32", (3, "past")),
        ("c", "float32", (2, 3, "past2")),
        ("d", "float16", ("past", 3)),
        ("e", "int32", ("past", 3)),
        ("f", "float32", (3,)),
    )

    def forward(self, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        a = F.concat((a, x * 0.5 + F.sum(a, axis=0, keepdims=True) * 0.1), axis=0)
        b = F.concat((b, F.tanh(x).permute(1, 0)), axis=1)
        twice = F.stack((x.permute(1, 0), F.exp(x * 0.1).permute(1, 0)), axis=0)
        c = F.concat((c, twice, twice * 2.0), axis=2)
        d = F.concat((d, x.astype(emberlet.float16)), axis=0)
        e = F.concat((e, F.round(x * 4.0).astype(emberlet.int32)), axis=0)
        f = f + F.sum(x, axis=0)
        y = F.softmax(a @ b, axis=1) @ (a + d.astype(emberlet.float32)) + e.astype(emberlet.float32)
        return F.sum(y, axis=0) + F.sum(c, axis=2)[0] + f, a, b, c, d, e, f


def _kept(backend: str, capacity: int | None) -> Any:
    return Kept().fork(backend).session(capacity=capacity)


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_forks_and_rewinds_equal_numpy(seed: int) -> None:
    choose = random.Random(seed)
    capacity = choose.choice([None, 96])
    of_llama = seed % 2
    if of_llama:
        pairs = [tuple(load(LLAMA, b).session(capacity=capacity) for b in ("wgpu", "numpy"))]
    else:
        pairs = [(_kept("wgpu", capacity), _kept("numpy", capacity))]
    states = ["key0", "value1"] if of_llama else ["a", "b", "c", "d", "e", "f"]
    held: list[tuple[Any, Any]] = []
    for _ in range(24):
        at = choose.randrange(len(pairs))
        session, twin = pairs[at]
        what = choose.random()
        if what > 0.95:
            assert session.reset().length == twin.reset().length == 0
        if what < 0.12 and len(pairs) < 4:
            pairs.append((session.fork(), twin.fork()))
            continue
        if what < 0.3 and session.length:
            n = choose.randint(0, session.length)
            try:
                twin.rewind(n)
            except emberlet.errors.EmberletError:
                continue
            session.rewind(n)
        elif what < 0.4 and session._values is not None:
            name = choose.choice(states)
            held.append((session.state(name), np.asarray(twin.state(name)).copy()))
        new = choose.choice([1, 1, 1, 2, 5])
        x: Any = [[choose.randrange(80) for _ in range(new)]]
        if not of_llama:
            x = np.random.default_rng(choose.randrange(1 << 30)).standard_normal((new, 3)).astype(np.float32)
        try:
            want = twin.step(x)
        except ShapeError as error:
            with pytest.raises(ShapeError, match=str(error).partition(":")[0]):
                session.step(x)
            continue
        np.testing.assert_allclose(np.asarray(session.step(x)), np.asarray(want), rtol=2e-3, atol=2e-3)
        assert session.length == twin.length
    for got, want in held:
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-3, atol=2e-3)
    for session, twin in pairs:
        for name in states if session._values is not None else ():
            got, want = session.state(name), twin.state(name)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-3, atol=2e-3)


def test_decoding_with_rewinds_equals_onnxruntime() -> None:
    from tools.decoder_model import Reference, Sizes, decoder

    model = decoder(Sizes(words=60, width=32, hidden=64, heads=4, layers=2))
    session, choose = load(model, "wgpu").session(capacity=48), random.Random(5)
    tokens: list[int] = []
    for _ in range(16):
        back = choose.randint(0, min(3, session.length)) if choose.random() < 0.4 else 0
        session.rewind(back)
        del tokens[len(tokens) - back :]
        new = [choose.randrange(60) for _ in range(choose.choice([1, 1, 1, 4]))]
        tokens += new
        got = np.asarray(session.step([new]))
        want = np.asarray(Reference(model).step([tokens]))
        np.testing.assert_allclose(got[0, -1], want[0, -1], rtol=1e-3, atol=1e-4)
