"""Which axes the steps of a session on the GPU leave open from the start. Stand-ins take the place of plans."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.wgpu_backend import resident
from emberlet.wgpu_backend.resident import open_dims


def entry(input: int, output: int, axis: int | None) -> Any:
    return SimpleNamespace(input=input, output=output, axis=axis)


def model(inputs: Any, outputs: Any = None) -> Any:
    found = SimpleNamespace(INPUTS=[("x", "float32", shape) for shape in inputs])
    if outputs is not None:
        found.OUTPUTS = [("y", "float32", shape) for shape in outputs]
    return found


TOKENS = [("batch", "new"), (1, "past", 4)]


@pytest.mark.parametrize(
    ("made", "entries", "capacity", "wanted"),
    [
        (SimpleNamespace(), [entry(1, 0, 1)], None, None),
        (model(TOKENS), [entry(1, 0, None)], None, None),
        (model(TOKENS), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS), [entry(1, 0, 1)], 64, {"past": (1, 64)}),
        (model(TOKENS), [entry(1, 0, 0)], 64, None),  # a number
        (model([("new",), (1, "past + 1")]), [entry(1, 0, 1)], None, None),
        (model([("new",), None]), [entry(1, 0, 1)], None, None),
        (model(TOKENS, [(1, "past + new", 4)]), [entry(1, 0, 1)], None, {"past": None, "new": (2, None)}),
        (model(TOKENS, [(1, "past + new", 4)]), [entry(1, 0, 1)], 9, {"past": (1, 9), "new": (2, None)}),
        (model(TOKENS, [("x",), (1, "past + new", 4)]), [entry(1, 1, 1)], None, {"past": None, "new": (2, None)}),
        (model(TOKENS, [("x",), (1, "past + new", 4)]), [entry(1, 2, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "other + new", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "past + unknown", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, "past + 2", 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1, 7, 4)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [(1,)]), [entry(1, 0, 1)], None, {"past": None}),
        (model(TOKENS, [None]), [entry(1, 0, 1)], None, {"past": None}),
        (model([*TOKENS, ("length",)]), [entry(1, 0, 1), entry(2, 1, 0)], None, {"past": None, "length": None}),
    ],
)
def test_the_axes_that_are_open_from_the_start(made: Any, entries: Any, capacity: Any, wanted: Any) -> None:
    assert open_dims(made, entries, capacity) == wanted


def test_there_is_none_where_the_gpu_can_only_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(resident, "Resident", lambda *given: made.append(given) or "made")
    for must, planning, wanted in [(False, False, "made"), (True, False, None), (False, True, None)]:
        monkeypatch.setattr(resident, "must_await", lambda must=must: must)
        assert resident.resident("model", [], 7, SimpleNamespace(planning=planning)) == wanted
    assert made == [("model", [], 7, SimpleNamespace(planning=False))]
