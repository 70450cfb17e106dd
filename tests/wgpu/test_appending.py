"""Which states a plan appends to in place: concatenations of a float state and what follows it, along its axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.record.appending import append_in_place
from emberlet.wgpu_backend.record.tracing import trace

STATE = (3, 4)


def appended(
    function: Callable[..., Any], states: Any, room: int = 8, most: int = 1 << 20, dtype: str = "float32"
) -> Any:
    """(the Trace, what was found) of function(x, h, g) with states h and g of 3 rows."""
    given = [emberlet.zeros(shape, dtype=dtype, backend="python") for shape in ((2, 4), STATE, STATE)]
    traced = trace(function, given, WgpuBackend(planning=True))
    return traced, append_in_place(traced, states, room, most)


@pytest.mark.parametrize("function, states", [
    (lambda x, h, g: F.concat([x, h], 0), [(1, 0, 0)]),  # before the state
    (lambda x, h, g: F.concat([h, x[:1], h], 0), [(1, 0, 0)]),  # the state twice
    (lambda x, h, g: F.concat([h, g], 1), [(1, 0, 0)]),  # along another axis
    (lambda x, h, g: F.concat([h * 1.5, x], 0), [(1, 0, 0)]),  # something computed from it
    (lambda x, h, g: F.concat([g, x], 0), [(1, 0, 0)]),  # another state
    (lambda x, h, g: h + g, [(1, 0, 0)]),  # no concatenation
    (lambda x, h, g: (F.concat([h, x], 0), h), [(1, 0, 0)]),  # a state that is a result too
    (lambda x, h, g: F.concat([h, x], 0), [(1, 0, 0), (2, 0, 0)]),  # one result for two states
    (lambda x, h, g: F.concat([h, x], 0), [(5, 0, 0)]),  # not an input
])  # fmt: skip
def test_what_is_not_appended_in_place(function: Any, states: Any) -> None:
    traced, found = appended(function, states)
    assert found == {} and [n.shape for n in traced.inputs] == [(2, 4), STATE, STATE]
    assert "slice" not in [root.op for root in traced.roots] and "append" not in [root.op for root in traced.roots]


def test_integers_are_not_appended_in_place_nor_is_what_is_too_large() -> None:
    def function(x: Any, h: Any, g: Any) -> Any:
        return F.concat([h, x], 0)

    assert appended(function, [(1, 0, 0)], dtype="int32")[1] == {}
    assert list(appended(function, [(1, 0, 0)], most=8 * 4 * 4)[1]) == [1]
    assert appended(function, [(1, 0, 0)], most=8 * 4 * 4 - 1)[1] == {}


@pytest.mark.parametrize("part, kernels", [
    (lambda x, h: x, ["input"]),  # a copy
    (lambda x, h: F.exp(x), ["unary"]),
    (lambda x, h: x @ F.ones((4, 4), device=x.backend), ["matmul"]),
    (lambda x, h: F.sum(F.reshape(x, (1, 2, 4)), 1), ["reduce"]),
    (lambda x, h: F.concat([x[:0], x], 0)[:0], []),  # nothing to write
    (lambda x, h: h[:2] * 2, ["state", "copy"]),  # a kernel must not write the buffer that it reads
    (lambda x, h: F.sum(h, 0, keepdims=True), ["state", "copy"]),
])  # fmt: skip
def test_what_is_appended_is_computed_in_place_unless_it_reads_the_state(part: Any, kernels: list[str]) -> None:
    _, found = appended(lambda x, h, g: F.concat([h, part(x, h), x], 0), [(1, 0, 0)], room=16)
    assert list(found) == [1]
    plan, externals = make_plan([found[1][2]], Options("gpu"))
    state = plan.externals[[n.op == "input" and n.arg == 1 for n in externals].index(True)]
    assert plan.outputs == [state]  # the buffer of the state itself
    assert len(plan.steps) == len(kernels) + 1
    for step in plan.steps:
        assert not (step.buffers[-1] == state and state in step.buffers[:-1])
    assert [step.buffers[-1] == state for step in plan.steps] == [name != "state" for name in [*kernels, "input"]]
