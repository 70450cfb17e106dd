"""Sessions on NumPy whose steps run by a plan for any length of the past."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from emberlet.host.numpy_backend import resident
from emberlet.model import Model
from hypothesis import given, settings
from hypothesis import strategies as st
from models.index import HERE
from support.stateful_models import models

from .test_sessions import follow

LLAMA = HERE / "llama" / "model.onnx"


@pytest.fixture(autouse=True, scope="module")
def _plans_at_once() -> Iterator[None]:
    before = resident.AFTER
    resident.AFTER = 1
    yield
    resident.AFTER = before


def unplanned(model: Any, **options: Any) -> Any:
    """A session whose steps run operation by operation."""
    session = model.session(**options)
    session._engine = False
    return session


@settings(max_examples=15)
@given(model=models(), data=st.data())
def test_random_models_step_like_onnxruntime(model: onnx.ModelProto, data: st.DataObject) -> None:
    follow(model, "numpy", data, 16)


@pytest.mark.parametrize("capacity", [None, 128])
def test_one_plan_serves_all_lengths_bit_for_bit(capacity: int | None) -> None:
    model = load(onnx.load(str(LLAMA)), "numpy")
    session, plain = model.session(capacity), unplanned(model, capacity=capacity)
    random = np.random.default_rng(0)
    for i in range(100):
        tokens = random.integers(0, 80, (1, 5 if i == 0 else 1)).tolist()
        np.testing.assert_array_equal(np.asarray(session.step(tokens)), np.asarray(plain.step(tokens)))
    for name in ("key0", "value1"):
        np.testing.assert_array_equal(np.asarray(session.state(name)), np.asarray(plain.state(name)))
    assert len(session._engine.compiled._open) == 1
    assert session._engine.compiled._open[0].opening.names == ["past"]


def test_with_a_capacity_no_memory_is_taken_after_the_first_step_of_a_plan() -> None:
    model = load(onnx.load(str(LLAMA)), "numpy")
    session = model.session(256)
    session.step([[1, 2]])
    session.step([[3]])
    (bound,) = session._engine.compiled._open[0]._free
    places = dict(bound.places)
    for i in range(200):
        session.step([[i % 80]])
    assert session._engine.compiled._open[0]._free == [bound]
    assert all(bound.places[i][0] is places[i][0] for i in places if i not in session._engine.compiled._open[0]._rooms)


class Windowed(Model):
    """Attends to all of a short past and to the last 16 positions of a long one; the new values also depend on the
    length."""

    STATE = (("past", 1, "append", 0),)

    def forward(self, x: Any, past: Any) -> Any:
        seen = F.concat((past, x * float(2)))
        n = seen.shape[0]
        near = seen if n <= 40 else seen[n - 16 :]
        return F.sum(near, axis=0) + F.arange(n, dtype=emberlet.float32, device=x.backend)[-1], seen


def test_a_model_that_decides_by_the_length_of_its_past() -> None:
    first = {"past": emberlet.zeros((1, 2), device="numpy")}
    session = Windowed().session(initial=first)
    plain = unplanned(Windowed(), initial=first)
    for i in range(80):
        x = emberlet.asarray(np.float32([[i, -i]]), device="numpy")
        assert session.step(x).tolist() == plain.step(x).tolist(), i
    assert len(session._engine.compiled._open) == 2  # one for each decision
    session.rewind(60)
    plain.rewind(60)
    x = emberlet.asarray(np.float32([[1, 2]]), device="numpy")
    assert session.step(x).tolist() == plain.step(x).tolist()
    assert len(session._engine.compiled._open) == 2


class Masked(Model):
    """Takes a mask as long as the past and the new part."""

    INPUTS = (("x", "float32", ("new", 2)), ("mask", "float32", ("past + new",)), ("past", "float32", ("past", 2)))
    OUTPUTS = (("y", "float32", ("new", 2)), ("present", "float32", ("past + new", 2)))
    STATE = (("past", "present", "append", 0),)

    def forward(self, x: Any, mask: Any, past: Any) -> Any:
        seen = F.concat((past, x))
        return x + F.sum(seen * F.expand_dims(mask, 1), axis=0), seen


def test_an_input_that_is_as_long_as_the_past() -> None:
    random = np.random.default_rng(1)
    session, plain = Masked().session(), unplanned(Masked())
    for i in range(60):
        new = 1 if i % 7 else 3
        x = random.standard_normal((new, 2)).astype(np.float32)
        mask = random.standard_normal(session.length + new).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(session.step(x, mask)), np.asarray(plain.step(x, mask)))
    assert len(session._engine.compiled._open) == 2  # for one new position, and for three


class Chunky(Model):
    """Splits its past into as many parts as it is long: a number that no plan can leave open."""

    STATE = (("past", 1, "append", 0),)

    def forward(self, x: Any, past: Any) -> Any:
        seen = F.concat((past, x))
        total = x
        for i in range(seen.shape[0]):
            total = total + seen[i : i + 1]
        return total, seen


def test_a_model_that_counts_its_past_runs_without_a_plan() -> None:
    session = Chunky().session(initial={"past": emberlet.zeros((1, 2), device="numpy")})
    for i in range(5):
        x = emberlet.asarray(np.float32([[1, i]]), device="numpy")
        found = session.step(x)
    assert found.tolist() == [[6.0, 14.0]]
    assert not session._engine.compiled._open
    assert "open size" in str(next(iter(session._engine.compiled.refused.values())))


def test_a_result_and_a_state_of_an_earlier_step_stay_as_they_are() -> None:
    model = load(onnx.load(str(LLAMA)), "numpy")
    session = model.session()
    session.step([[1, 2, 3]])
    kept = [(session.step([[i]]), session.fork(), session.state("key0")) for i in range(20)]
    before = [(np.array(x), np.array(s.state("key0")), np.array(k)) for x, s, k in kept]
    for _ in range(20):
        session.step([[7]])
    for (x, fork, key), (y, state, other) in zip(kept, before, strict=True):
        np.testing.assert_array_equal(np.asarray(x), y)
        np.testing.assert_array_equal(np.asarray(fork.state("key0")), state)
        np.testing.assert_array_equal(np.asarray(key), other)
