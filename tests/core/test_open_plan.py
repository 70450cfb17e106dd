"""Plans with open lengths: which calls they serve, their memory, and models that have no such plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.backend.axes import Axes
from emberlet.backend.tracing import ValueNeeded
from emberlet.functional.arrays import asarray
from emberlet.host.numpy_backend.compile.open_sizes.plan import OpenPlan


def given(*shape: int) -> Any:
    return asarray(np.random.default_rng(shape).standard_normal(shape).astype(np.float32))


def made(function: Any, *arguments: Any, axes: Axes, opened: list[str]) -> OpenPlan:
    return OpenPlan(function, list(arguments), get_backend("numpy"), axes, opened)


def called(plan: OpenPlan, *arguments: Any) -> Any:
    lengths = plan.lengths(list(arguments))
    assert lengths is not None
    return plan.finish(plan.run(list(arguments), lengths))


def test_a_plan_serves_the_lengths_within_its_limits_only() -> None:
    axes = Axes([("n", 4), ("m", 4)], {"n": (2, 9, None, 1)})
    x, y = given(5, 4), given(3, 4)
    plan = made(lambda x, y: (F.exp(x), F.sum(y, axis=0)), x, y, axes=axes, opened=["n"])
    assert plan.opening.closed == {"m": 3}
    for n in range(1, 12):
        found = plan.lengths([given(n, 4), y])
        assert found == ({"n": n, "m": 3} if 2 <= n <= 9 else None)
    assert plan.lengths([x, given(4, 4)]) is None  # m is closed
    assert plan.lengths([given(5, 3), y]) is None
    assert plan.lengths([given(5, 4, 1), y]) is None
    assert plan.lengths([asarray(np.zeros((5, 4))), y]) is None  # float64
    assert plan.lengths([x]) is None
    assert "calls of NumPy for every n" in repr(plan)
    for n in (2, 9, 4):
        e, s = called(plan, given(n, 4), y)
        np.testing.assert_allclose(np.asarray(e), np.exp(np.asarray(given(n, 4))), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(s), np.asarray(y).sum(0), rtol=1e-6)


def test_an_empty_axis_gets_a_plan_of_its_own() -> None:
    axes = Axes([("n", 4)], {"n": (0, 9, None, 1)})
    plan = made(F.exp, given(5, 4), axes=axes, opened=["n"])
    assert plan.lengths([given(0, 4)]) is None


def test_inputs_of_other_lengths_than_the_axes_are_refused() -> None:
    with pytest.raises(ValueNeeded, match="the lengths of the inputs do not match"):
        made(F.add, given(5, 4), given(6, 4), axes=Axes([("n", 4), ("n", 4)], {}), opened=["n"])


def test_results_that_depend_on_a_length_in_two_ways_get_two_plans() -> None:
    def model(x: Any) -> Any:
        return F.exp(x) if x.shape[0] < 8 else F.negative(x)

    axes = Axes([("n", 4)], {})
    small = made(model, given(5, 4), axes=axes, opened=["n"])
    large = made(model, given(20, 4), axes=axes, opened=["n"])
    for n in (1, 7, 8, 30):
        x = given(n, 4)
        assert (small.lengths([x]) is not None) is (n < 8)
        assert (large.lengths([x]) is not None) is (n >= 8)
    np.testing.assert_allclose(np.asarray(called(small, given(3, 4))), np.exp(np.asarray(given(3, 4))), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(called(large, given(9, 4))), -np.asarray(given(9, 4)))


def test_a_plan_is_not_made_of_texts() -> None:
    axes = Axes([("n",)], {})
    with pytest.raises(ValueNeeded):
        made(lambda x: x, asarray(["a", "b"], device="numpy"), axes=axes, opened=["n"])


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
