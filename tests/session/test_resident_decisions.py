"""Which axes of a session's model are open from the start, and for how many lengths of a state there is a plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.model import Model
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


class Summed(Model):
    """Its result is a sum over the past: of the tensor, or in a loop, for which the length has to be a number."""

    INPUTS = (("x", "float32", (1, 4)), ("past", "float32", ("past", 4)))
    OUTPUTS = (("y", "float32", (4,)), ("present", "float32", ("past + 1", 4)))
    STATE = (("past", "present", "append", 0),)

    def __init__(self, backend: Any, loops: bool) -> None:
        self.backend = get_backend(backend)
        self.loops = loops

    def forward(self, x: Any, past: Any) -> Any:
        now = F.concat((past, x), axis=0)
        y = F.sum(now, axis=0)
        if self.loops:
            y = x[0]
            for i in range(past.shape[0]):
                y = y + past[i]
        return y, now


@pytest.mark.parametrize("backend", ["wasm", "native"])
@pytest.mark.parametrize("loops", [False, True])
def test_no_plan_is_made_for_each_length_of_a_state(backend: str, loops: bool) -> None:
    pytest.importorskip("llvmlite" if backend == "native" else "wasmtime")
    session = Summed(backend, loops).session()
    for n in range(1, 9):
        y = session.step(np.full((1, 4), n, np.float32))
        np.testing.assert_array_equal(np.asarray(y), np.full(4, n * (n + 1) / 2))
    compiled: Any = session._engine.compiled
    assert len(compiled._programs) <= 2  # of the first step, and of that which shows that the length is a number
    assert bool(compiled._open) != loops


STATE = [entry(0, 1, 1)]
