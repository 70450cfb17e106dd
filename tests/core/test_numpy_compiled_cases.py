"""Which plan of a compiled model a call gets, when plans are made and dropped, and what a trace keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.backend import get_backend, plans
from emberlet.errors import BackendError
from emberlet.host.numpy_backend.compile import Compiled, compile
from emberlet.model import Model

NUMPY, PYTHON = get_backend("numpy"), get_backend("python")


def tensor(values: Any, dtype: str = "float32", backend: Any = NUMPY) -> Any:
    return emberlet.asarray(values, dtype=dtype, device=backend)


X = tensor([[1.0, 2.0]])


# -- calls


def counted(function: Any) -> tuple[Any, list[Any]]:
    runs: list[Any] = []

    def model(*args: Any) -> Any:
        runs.append(args)
        return function(*args)

    return model, runs


def test_a_plan_is_made_for_each_shape_and_used_again() -> None:
    model, runs = counted(lambda x: x + 1.0)
    made = compile(model)
    with pytest.raises(BackendError, match="there is no plan yet: call the compiled model, or give examples"):
        made.plan()
    assert repr(made) == "Compiled(model, no plan yet)"
    for shape, count in (((1, 2), 1), ((1, 2), 1), ((3, 2), 2), ((1, 2), 2), ((3, 2), 2)):
        x = np.random.default_rng(0).random(shape, np.float32)
        assert made(tensor(x)).tolist() == (x + 1).tolist()
        assert made(x).tolist() == (x + 1).tolist()
        assert len(runs) == count
    assert made.plan() is made.plan(np.zeros((3, 2), np.float32))
    assert made.plan(X) is not made.plan(np.zeros((3, 2), np.float32))
    assert len(runs) == 2
    made.release()
    assert made.arrays([X.data]) is None
    made(X)
    assert len(runs) == 3
    assert asyncio.run(made.call_async(X)).tolist() == [[2.0, 3.0]]


def test_the_least_recently_used_plan_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_SHAPES", 2)
    model, runs = counted(lambda x: x + 1.0)
    made = compile(model)
    for n, count in ((1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4), (3, 5)):
        made(np.zeros(n, np.float32))
        assert len(runs) == count, n
    assert len(made._plans) == 2


def test_a_model_without_a_plan_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_FIXED", 1)
    model, runs = counted(lambda x: x * float(x.sum()))
    made = compile(model, dims={"input0": {0: "n"}})
    assert made(X).tolist() == [[3.0, 6.0]]
    assert made.cut is not None
    runs.clear()
    assert made(X).tolist() == [[3.0, 6.0]]
    assert len(runs) == 1 and runs[0][0] is X


def test_keywords_and_arguments_of_other_backends_come_to_numpy() -> None:
    def model(x: Any, y: Any = None, *, k: float = 2.0) -> Any:
        return x * k if y is None else x + y

    made = compile(lambda x, y=None: x if y is None else x + y)
    assert made(y=X, x=X).tolist() == [[2.0, 4.0]]
    assert made(X).tolist() == [[1.0, 2.0]]
    other = tensor([[5.0, 6.0]], backend=PYTHON)
    assert made(other, X).tolist() == [[6.0, 8.0]]
    assert made(other, X).backend is NUMPY
    assert made([[1.0, 2.0]]).__class__ is list  # what has no shape goes to the model as it is
    with pytest.raises(TypeError):
        made(z=X)


def branching(limit: int) -> Any:
    def model(x: Any, n: Any) -> Any:
        return x + 1.0 if int(n.sum()) % 2 else x * 2.0

    return counted(model)


def test_a_large_input_that_decides_leaves_the_model_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_FIXED", 3)
    for size, planned in ((3, True), (4, False)):
        model, _ = branching(2)
        made = compile(model)
        assert made(X, tensor([1] * size, "int64")).shape == (1, 2)
        assert (made.cut is None) is planned
        assert (made._fixed == (1,)) is planned


# -- open axes


def opened(model: Any, *examples: Any, **dims: Any) -> Compiled:
    return compile(model, *examples, dims=dims)


class Two(Model):
    INPUTS = (("x", "float32", ("n", "m")), ("y", "float32", ("k",)))

    def forward(self, x: Any, y: Any) -> Any:
        return x + 1.0, y * 2.0


def sized(n: int, m: int, k: int) -> Any:
    return np.zeros((n, m), np.float32), np.zeros(k, np.float32)


def test_the_number_of_open_plans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_OPEN", 1)
    made = opened(Two(), n=8)
    made(*sized(3, 4, 5))
    made(*sized(3, 5, 5))
    assert (len(made._open), len(made._plans)) == (1, 1)
