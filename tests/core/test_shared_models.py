"""One model, eager or compiled, called by two threads, after interrupts, with results that callers overwrite or keep:
every call gives what the model gives on the python backend."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.module import Module
from support.every_backend import ALL
from support.interrupted import interrupted

INPUTS = [np.random.default_rng(i).standard_normal((1 + 2 * (i % 3), 6)).astype(np.float32) for i in range(12)]


class Net(Module):
    """Two layers; returns the scores, the hidden values and the input."""

    def __init__(self) -> None:
        self.a, self.b = (nn.Linear(m, n, backend="numpy") for m, n in ((6, 8), (8, 4)))

    def forward(self, x: Any) -> Any:
        hidden = F.relu(self.a(x))
        return F.softmax(self.b(hidden), 1), hidden, x


@pytest.fixture(scope="module")
def net() -> tuple[Module, list[list[np.ndarray]]]:
    """(the network, its results for INPUTS on the python backend)"""
    made = Net()
    for param in made.params():
        param.val()
    plain = made.fork("python")
    return made, [[np.array(y) for y in plain(emberlet.asarray(x, device="python", copy=True))] for x in INPUTS]


@pytest.fixture
def short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def ways() -> list[Any]:
    return [pytest.param(b, how, id=f"{b if isinstance(b, str) else b.values[0]} {how}",
                         marks=() if isinstance(b, str) else b.marks)
            for b in ALL for how in ("eager", "compiled")]  # fmt: skip


def model_of(net: Module, backend: Any, how: str) -> tuple[str, Any]:
    name = backend if isinstance(backend, str) else backend.values[0]
    return name, net.compile(backend=name) if how == "compiled" and name != "python" else net.fork(name)


def call(model: Any, name: str, i: int) -> Any:
    return model(emberlet.asarray(INPUTS[i], device=name, copy=True))


def check(got: Any, want: list[np.ndarray]) -> None:
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, atol=1e-5)


@pytest.mark.parametrize(("backend", "how"), ways())
@pytest.mark.usefixtures("short_turns")
def test_two_threads_get_their_own_results(net: Any, backend: Any, how: str) -> None:
    name, model = model_of(net[0], backend, how)
    failed: list[BaseException] = []
    kept: list[tuple[Any, list[np.ndarray]]] = []

    def work(seed: int) -> None:
        choose = random.Random(seed)
        try:
            for _ in range(25):
                i = choose.randrange(len(INPUTS))
                got = call(model, name, i)
                check(got, net[1][i])
                if choose.random() < 0.5:
                    got[0][...] = got[1][...] = 9.0  # results belong to the caller
                else:
                    kept.append((got, net[1][i]))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for got, want in kept:
        check(got, want)


@pytest.mark.parametrize(("backend", "how"), ways())
def test_a_call_after_an_interrupted_one_is_right(net: Any, backend: Any, how: str) -> None:
    name, model = model_of(net[0], backend, how)
    choose, stopped = random.Random(1), 0
    for _ in range(20):
        stopped += interrupted(lambda: call(model, name, choose.randrange(len(INPUTS))), choose.randint(1, 300))
        i = choose.randrange(len(INPUTS))
        check(call(model, name, i), net[1][i])
    assert stopped
