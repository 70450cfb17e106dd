"""Sessions on the GPU: states stay in its memory, and one plan serves every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.codegen import load
from models.index import HERE
from support.rows import every
from support.session_walks import LLAMA, walk

pytestmark = pytest.mark.needs("gpu-driver")
LSTM = HERE / "lstm_step" / "model.onnx"


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
    assert len(session._engine.compiled._plans) == 1


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
    assert len(compiled._open) <= 3 and not compiled._plans and not compiled.fixed


@every("seed", range(8), share=3)
def test_random_steps_forks_and_rewinds_equal_numpy(seed: int) -> None:
    walk("wgpu", seed)
