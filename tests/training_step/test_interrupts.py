"""An interrupt or an error leaves the weights and states of before a step, or of after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import nn, optim
from emberlet.errors import IndexingError
from support.draws import draw
from support.every_backend import NATIVE
from support.interrupted import interrupted

from .networks import batch, dense, squares, values

GPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))


def training(backend: str) -> tuple[Any, Any, Any]:
    model = dense(nn.BatchNorm(6, backend=backend), backend)
    optimizer = optim.AdamConfig(epsilon=1e-3).init()
    return model, optimizer, model.compile_step(squares, optimizer)


def everything(model: Any, optimizer: Any) -> list[Any]:
    """All weights and states, as one array each."""
    states = optimizer.states().values()
    return [*values(model).values(), *(np.asarray(s[key]) for s in states for key in s)]


def equal(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def path(backend: str, steps: int) -> list[list[Any]]:
    """Everything before each step, and behind the last one."""
    model, optimizer, step = training(backend)
    found = [everything(model, optimizer)]
    for i in range(steps):
        step(0.01, *batch(8, i))
        found.append(everything(model, optimizer))
    return found


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
def test_an_interrupt_at_any_line_of_a_step(backend: str) -> None:
    """At lines from a random one on: another run meets others."""
    steps, every = 60, 37
    wanted = path(backend, steps)
    model, optimizer, step = training(backend)
    for done in range(3):  # with the plan, and its buffers in both directions
        step(0.01, *batch(8, done))
    done, at, inside = 3, draw(backend).randint(1, every), 0
    while done < steps:
        inside += interrupted(lambda done=done: step(0.01, *batch(8, done)), at)
        found = everything(model, optimizer)
        assert equal(found, wanted[done]) or equal(found, wanted[done + 1]), at
        done += equal(found, wanted[done + 1])
        at += 401 if at > 1500 else every  # beyond: in a plan that is made again, after an interrupt in its run
    assert inside > 20


@pytest.mark.parametrize("backend", ["numpy", "wasm", NATIVE, GPU])
def test_an_interrupt_while_a_plan_is_made(backend: str) -> None:
    wanted = path(backend, 2)
    for at in (40, 4000):
        model, optimizer, step = training(backend)
        interrupted(lambda step=step: step(0.01, *batch(8, 0)), at)
        found = everything(model, optimizer)
        done = len(optimizer.states()) > 0 and equal(found, wanted[1])
        assert done or equal(found, wanted[0]), at
        for i in range(int(done), 2):
            step(0.01, *batch(8, i))
        assert equal(everything(model, optimizer), wanted[2]), at


def test_an_error_in_a_step() -> None:
    model = nn.Embedding(4, 3, backend="numpy")
    optimizer = optim.AdamConfig(epsilon=1e-3).init()
    step = model.compile_step(lambda m, x: (m(x) ** 2).mean(), optimizer)
    step(0.1, np.array([[1, 2]]))
    before = everything(model, optimizer)
    with pytest.raises(IndexingError):
        step(0.1, np.array([[1, 7]]))
    assert equal(everything(model, optimizer), before)
    for _ in range(3):
        step(0.1, np.array([[1, 3]]))
    assert not equal(everything(model, optimizer), before)
