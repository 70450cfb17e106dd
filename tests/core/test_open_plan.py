"""Memory and work of plans with open lengths. The contract holds what they compute, and for which calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.backend.axes import Axes
from emberlet.backend.tracing import ValueNeeded
from emberlet.functional.arrays import asarray
from emberlet.host.numpy_backend.compile.open_sizes import plan as open_plan
from emberlet.host.numpy_backend.compile.open_sizes.plan import (
    OpenPlan,
    _Bound,
)
from emberlet.host.numpy_backend.compile.open_sizes.tracing import Points, trace
from emberlet.sizes.scope import Scope


def given(*shape: int) -> Any:
    return asarray(np.random.default_rng(shape).standard_normal(shape).astype(np.float32))


def made(function: Any, *arguments: Any, axes: Axes, opened: list[str]) -> OpenPlan:
    return OpenPlan(function, list(arguments), get_backend("numpy"), axes, opened)


def called(plan: OpenPlan, *arguments: Any) -> Any:
    lengths = plan.lengths(list(arguments))
    assert lengths is not None
    return plan.finish(plan.run(list(arguments), lengths))


def test_memory_doubles_where_a_length_grows_up_to_its_limit() -> None:
    axes = Axes([("n", 4)], {"n": (1, 50, None, 1)})
    plan = made(lambda x: F.exp(x) @ F.matrix_transpose(x), given(5, 4), axes=axes, opened=["n"])
    bound = _Bound(plan)
    seen = []
    for n in (5, 3, 6, 12, 13, 30, 49):
        bound.fit({"n": n}, [])
        seen.append(bound.capacity["n"])
    assert seen == [5, 5, 12, 12, 26, 50, 50]
    open_ended = made(F.exp, given(5, 4), axes=Axes([("n", 4)], {}), opened=["n"])
    bound = _Bound(open_ended)
    for n, capacity in ((5, 5), (6, 12), (100, 200)):
        bound.fit({"n": n}, [])
        assert bound.capacity["n"] == capacity


def test_views_are_made_once_for_calls_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = made(lambda x: F.exp(x) + 1.0, given(5, 4), axes=Axes([("n", 4)], {}), opened=["n"])
    called(plan, given(5, 4))
    counted = []
    evaluate = plan._numbers.evaluate
    monkeypatch.setattr(plan._numbers, "evaluate", lambda numbers: counted.append(numbers) or evaluate(numbers))
    called(plan, given(5, 4))
    assert counted == []
    called(plan, given(4, 4))
    assert counted == [{"n": 4}]  # the memory is that of before
    called(plan, given(9, 4))
    assert counted[1:] == [{"n": 18}, {"n": 9}]  # twice as much


def test_at_most_two_memories_are_kept_for_calls_to_come() -> None:
    plan = made(F.exp, given(5, 4), axes=Axes([("n", 4)], {}), opened=["n"])
    called(plan, given(5, 4))
    assert len(plan._free) == 1
    kept = plan._free[0]
    called(plan, given(5, 4))
    assert plan._free == [kept]
    plan._free.append(_Bound(plan))
    called(plan, given(5, 4))
    assert len(plan._free) == 2
    plan._free[:] = [_Bound(plan) for _ in range(4)]
    called(plan, given(5, 4))
    assert len(plan._free) == 3


def test_inputs_that_would_be_large_are_not_traced_at_other_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = Axes([("n", 4)], {})
    largest = max(p["n"] for p in made(F.exp, given(5, 4), axes=axes, opened=["n"]).points.numbers) * 4
    monkeypatch.setattr(open_plan, "LARGEST", largest)
    made(F.exp, given(5, 4), axes=axes, opened=["n"])
    monkeypatch.setattr(open_plan, "LARGEST", largest - 1)
    with pytest.raises(ValueNeeded, match="an input would be too large"):
        made(F.exp, given(5, 4), axes=axes, opened=["n"])


def test_inputs_of_other_lengths_than_the_axes_are_refused() -> None:
    with pytest.raises(ValueNeeded, match="the lengths of the inputs do not match"):
        made(F.add, given(5, 4), given(6, 4), axes=Axes([("n", 4), ("n", 4)], {}), opened=["n"])


def test_a_plan_is_not_made_of_texts() -> None:
    axes = Axes([("n",)], {})
    with pytest.raises(ValueNeeded):
        made(lambda x: x, asarray(["a", "b"], device="numpy"), axes=axes, opened=["n"])


def test_an_unused_input_is_not_copied() -> None:
    axes = Axes([("n", 4), ("n", 4)], {})
    plan = made(lambda x, y: F.exp(y), given(5, 4), given(5, 4), axes=axes, opened=["n"])
    assert plan.inputs == [1]
    assert SimpleNamespace(**plan.lengths([given(6, 4), given(6, 4)]) or {}).n == 6


def traced(function: Any) -> Any:
    """A trace of a function of x (n, 4) with n open."""
    plan = made(F.exp, given(5, 4), axes=Axes([("n", 4)], {}), opened=["n"])
    scope = Scope()
    n = scope.symbol("n", 1, 1 << 20, 37)
    points = Points(scope, plan.points.numbers)
    return trace(function, [given(5, 4)], [(n, 4)], points, get_backend("numpy"))


def test_what_depends_neither_on_inputs_nor_on_sizes_is_computed_at_once() -> None:
    found = traced(lambda x: x + F.exp(asarray(np.float32([1.0]), device=x.backend)))
    assert [c.op for c in found.calls] == ["binary"]
    found = traced(lambda x: F.zeros((x.shape[0], 2), device=x.backend))
    assert len(found.calls) >= 1  # the sizes are open


def test_no_product_and_no_convolution_of_inputs_is_computed_while_a_plan_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, w, m = given(2, 3, 9, 8), given(4, 3, 3, 3), given(8, 5)
    axes = Axes([("n", 3, 9, 8), (4, 3, 3, 3), (8, 5)], {})

    def program(x: Any, w: Any, m: Any) -> Any:
        return F.matmul(F.conv2d(x, w, padding=1), m)

    wanted = np.asarray(program(x, w, m))
    backend = type(get_backend("numpy"))
    with monkeypatch.context() as patched:
        for name in ("conv", "matmul"):
            patched.setattr(backend, name, lambda *args: pytest.fail("computed"))
        plan = made(program, x, w, m, axes=axes, opened=["n"])
    np.testing.assert_allclose(np.asarray(called(plan, x, w, m)), wanted, rtol=1e-4, atol=1e-5)
    longer = given(7, 3, 9, 8), w, m
    np.testing.assert_allclose(np.asarray(called(plan, *longer)), np.asarray(program(*longer)), rtol=1e-4, atol=1e-5)
