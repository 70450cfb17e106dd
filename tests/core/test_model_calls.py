"""Which calls of a generated model go straight to `forward`, and where its first parameter is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import emberlet
import pytest
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.host.models import calls as model_calls
from emberlet.host.models.calls import first_param, fits_cached, on_one_backend
from emberlet.model import Model
from emberlet.tensor import Tensor

NUMPY, PYTHON = get_backend("numpy"), get_backend("python")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No match and no place of a parameter is known."""
    monkeypatch.setattr(model_calls, "_FITTING", {})
    monkeypatch.setattr(model_calls, "_FIRST", {})
    yield


def tensor(*shape: int, backend: Any = NUMPY, dtype: str = "float32") -> Any:
    return emberlet.zeros(shape, dtype=dtype, device=backend)


def entries(*shape: Any) -> Any:
    return (("x", "float32", shape),)


class Takes(Model):
    INPUTS: Any = entries("n", 2)

    def forward(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("kind", [tuple, list])
def test_matches_are_looked_up_once_for_tables_that_never_change(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    fits = model_calls.fits
    monkeypatch.setattr(model_calls, "fits", lambda *args: asked.append(args) or fits(*args))
    table = kind(entries("n", 2))
    x = tensor(3, 2)
    for args, fit in (((x,), True), ((x,), True), ((tensor(3, 3),), False), ((tensor(3, 3),), False), ((), False)):
        assert fits_cached(table, args) is fit
    assert len(asked) == (4 if kind is tuple else 5)
    asked.clear()
    assert not fits_cached(table, (x.data,)) and not fits_cached(table, (type("T", (Tensor,), {})(*parts(x)),))
    assert asked == []  # only Tensors themselves are
    assert not fits_cached(table, (tensor(3, 2, dtype="int32"),))
    assert fits_cached(table, (tensor(4, 2),))
    assert fits_cached(kind(entries("n", 2)), (x,))  # a table of its own


def parts(x: Any) -> Any:
    return x.data, x.dtype, x.shape, x.backend


def test_a_table_that_took_the_place_of_another_is_not_taken_for_it() -> None:
    one, two = entries("n", 2), entries("n", 3)
    model_calls._FITTING[id(two)] = (one, {("float32", (1, 2))})
    assert not fits_cached(two, (tensor(1, 2),))
    assert fits_cached(two, (tensor(1, 3),))
    assert model_calls._FITTING[id(two)] == (two, {("float32", (1, 3))})


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calls, "MOST", 2)
    tables = [(*entries("n", 2), ("y", "float32", (i,))) for i in range(4)]
    for i in range(4):
        assert fits_cached(tables[i], (tensor(1, 2), tensor(i)))
        assert len(model_calls._FITTING) == [1, 2, 1, 2][i]
    table = entries("n", 2)
    for n in range(1, 5):
        assert fits_cached(table, (tensor(n, 2),))
    assert len(model_calls._FITTING[id(table)][1]) == 2
    for i in range(4):
        kind = type(f"Kind{i}", (Model,), {})
        model = kind()
        model.w = nn.Param(tensor(1))
        assert first_param(model) is model.w
        assert len(model_calls._FIRST) == [1, 2, 1, 2][i]


def test_arguments_are_on_the_backend_of_the_first_parameter() -> None:
    n, p = tensor(1, 2), tensor(1, 2, backend=PYTHON)
    bare = Takes()
    for args, one in (((), True), ((n,), True), ((n, n), True), ((n, p), False), ((p, n), False), ((p, p), True)):
        assert on_one_backend(bare, args) is one
    held = Takes()
    held.size = (1, 2)
    held.w = nn.Param(tensor(1, backend=PYTHON))
    for _ in range(2):  # looked for, then known
        for args, one in (((), True), ((n,), False), ((p,), True), ((p, n), False), ((n, n), False)):
            assert on_one_backend(held, args) is one
    assert model_calls._FIRST[Takes] == ["w"]
    other = Takes()
    other.v = nn.Param(tensor(1))  # the same class with its parameter elsewhere
    assert on_one_backend(other, (n,)) and not on_one_backend(other, (p,))


def test_the_place_of_a_parameter_is_kept_one_level_deep() -> None:
    class Holder(Model):
        pass

    model, child, deep = Holder(), type("Child", (Model,), {})(), type("Deep", (Model,), {})()
    deep.w = nn.Param(tensor(1))
    child.deep = deep
    model.first, model.child = None, child
    assert first_param(model) is deep.w and Holder not in model_calls._FIRST
    child.deep = None
    child.w = deep.w
    assert first_param(model) is deep.w and model_calls._FIRST[Holder] == ["child", "w"]
    assert on_one_backend(model, (tensor(1),)) and not on_one_backend(model, (tensor(1, backend=PYTHON),))
    assert first_param(type("None_", (Model,), {})()) is None


def test_a_call_that_fits_goes_straight_to_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = []
    bind = model_calls.bind
    monkeypatch.setattr(model_calls, "bind", lambda *args: bound.append(1) or bind(*args))
    model, x = Takes(), tensor(3, 2)
    assert model(x) is x and bound == []
    assert model(x=x) is x and bound == [1]
    assert model([[1.0, 2.0]]).tolist() == [[1.0, 2.0]] and bound == [1, 1]
    model.w = nn.Param(tensor(1, backend=PYTHON))
    assert model(x).backend is PYTHON and bound == [1, 1, 1]
    free = type("Free", (Model,), {"forward": lambda self, *args, **kwargs: (args, kwargs)})()
    assert free(1, a=2) == ((1,), {"a": 2})
