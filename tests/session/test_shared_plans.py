"""Sessions of one model share its plans; states are their own, and what has changed is planned anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from emberlet.host.numpy_backend import resident
from emberlet.model import Model
from emberlet.param import Param
from models.index import HERE

LLAMA = HERE / "llama" / "model.onnx"
BACKENDS = ["numpy", *["native"] * (find_spec("llvmlite") is not None), "wasm"]


@pytest.fixture(autouse=True, scope="module")
def _plans_at_once() -> Iterator[None]:
    before = resident.AFTER
    resident.AFTER = 1
    yield
    resident.AFTER = before


def planned(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list to which every plan that is made from now on adds an element."""
    from emberlet.host.numpy_backend.compile.open_sizes.plan import OpenPlan
    from emberlet.host.numpy_backend.compile.plan import Plan
    from emberlet.wgpu_backend.planned import Planned

    made: list[None] = []
    for kind in (OpenPlan, Plan, Planned):
        before = kind.__init__

        def counted(self: Any, *args: Any, before: Any = before, **keywords: Any) -> None:
            made.append(None)
            before(self, *args, **keywords)

        monkeypatch.setattr(kind, "__init__", counted)
    return made


def tokens(seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 80, (1, 5 if i == 0 else 1)).tolist() for i in range(8)]


def results(session: Any, seed: int) -> list[Any]:
    return [np.asarray(session.step(given)) for given in tokens(seed)]


def near(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_second_session_makes_no_plan_and_has_its_own_states(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(onnx.load(str(LLAMA)), backend)
    made = planned(monkeypatch)
    wanted = []
    for seed in range(3):
        plain = model.session(64)
        plain._engine = False
        wanted.append(results(plain, seed))
    sessions = [model.session(64)]
    found = [results(sessions[0], 0)]
    assert made
    count = len(made)
    sessions += [model.session(64) for _ in range(2)]
    steps = [
        [sessions[seed].step(given) for seed, given in ((1, a), (2, b))]
        for a, b in zip(tokens(1), tokens(2), strict=True)
    ]
    found += [[np.asarray(pair[i]) for pair in steps] for i in range(2)]
    assert len(made) == count
    for one, other in zip(found, wanted, strict=True):
        near(one, other)


@pytest.mark.parametrize("backend", BACKENDS[:-1])
def test_sessions_of_several_threads_share_plans(backend: str) -> None:
    model = load(onnx.load(str(LLAMA)), backend)
    wanted = [results(model.session(64), seed) for seed in range(4)]
    kept = model.session(64)
    results(kept, 9)
    found: dict[int, Any] = {}

    def run(seed: int) -> None:
        found[seed] = results(model.session(64), seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, want in enumerate(wanted):
        near(found[seed], want)


class Scaled(Model):
    """Adds its input, times a parameter and a number, to its state."""

    STATE = (("total", 1, "replace"),)
    common = 1.0

    def __init__(self, backend: str) -> None:
        self.weight = Param(emberlet.asarray(np.array([2.0, 3.0], np.float32), backend=backend))
        self.factor = 1.0
        self.settings = SimpleNamespace(factor=1.0)
        self.array = np.ones(2)
        self.chosen = {1}

    def forward(self, x: Any, total: Any) -> Any:
        factor = self.factor * self.settings.factor * self.common * float(self.array[0]) * max(self.chosen)
        y = total + x * self.weight.val() * factor
        return F.sum(y), y


def total(model: Scaled, backend: str) -> float:
    """The result of five steps of a new session."""
    zeros = emberlet.asarray(np.zeros(2, np.float32), backend=backend)
    session = model.session(initial={"total": zeros})
    ones = emberlet.asarray(np.ones(2, np.float32), backend=backend)
    last = [float(np.asarray(session.step(ones))) for _ in range(5)][-1]
    kept.append(session)
    return last


kept: list[Any] = []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_that_has_changed_is_planned_anew(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scaled(backend)
    assert total(model, backend) == 25 == total(model, backend)
    model.factor = 2.0
    assert total(model, backend) == 50
    model.weight.set(emberlet.asarray(np.array([1.0, 1.0], np.float32), backend=backend))
    assert total(model, backend) == 20
    model.weight.val()[...] = 3.0
    assert total(model, backend) == 60
    model.settings.factor = 2.0
    assert total(model, backend) == 120
    model.array[0] = 2.0
    assert total(model, backend) == 240
    monkeypatch.setattr(Scaled, "common", 2.0)
    assert total(model, backend) == 480
    model.chosen.add(2)
    assert total(model, backend) == 960
    kept.clear()


class Deciding(Model):
    """Multiplies by an integer that decides which operations run."""

    INPUTS = (("x", "float32", ("n",)), ("k", "int32", ()), ("s", "float32", (1,)))
    OUTPUTS = (("y", "float32", ("n",)), ("s2", "float32", (1,)))
    STATE = (("s", "s2", "replace"),)

    def __init__(self, backend: str) -> None:
        self.weight = Param(emberlet.asarray(np.ones(1, np.float32), backend=backend))

    def forward(self, x: Any, k: Any, s: Any) -> Any:
        return x * float(k.item()), s + 1


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_shared_plans_are_few_however_many_values_sessions_take(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.run import shared_plans

    shares = []
    before = shared_plans.SharedPlans.__init__

    def counted(self: Any) -> None:
        shares.append(self)
        before(self)

    monkeypatch.setattr(shared_plans.SharedPlans, "__init__", counted)
    model = Deciding(backend)

    def steps(session: Any, values: Any) -> None:
        for k in values:
            x = np.arange(2 + k % 3, dtype=np.float32)
            found = session.step(x, np.array(k, np.int32))
            np.testing.assert_array_equal(np.asarray(found), x * k)

    sessions = [model.session(16) for _ in range(6)]
    for i, session in enumerate(sessions):
        steps(session, range(12 * i, 12 * i + 12))
    assert shares and all(len(s.open) <= 8 and len(s.alone) <= 8 for s in shares)
