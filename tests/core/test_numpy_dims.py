"""`compile(backend="numpy", dims=…)`: one plan of NumPy calls for every length of the open axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet import linalg
from emberlet.errors import EmberletError
from emberlet.functional.arrays import asarray
from emberlet.host.numpy_backend.compile import compile
from emberlet.model import Model

RNG = np.random.default_rng(3)
WEIGHT = RNG.standard_normal((6, 6)).astype(np.float32)


def product(x: Any) -> Any:
    """x times a constant matrix made on x's backend, so that a trace has its own."""
    return x @ asarray(WEIGHT, device=x.backend)


def given(*shape: int) -> Any:
    return asarray(np.random.default_rng(shape).standard_normal(shape).astype(np.float32))


def same(got: Any, want: Any) -> None:
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
        assert g.shape == w.shape and g.dtype is w.dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-5)


def test_a_new_length_runs_no_python_of_the_model() -> None:
    traced: list[int] = []

    def model(x: Any) -> Any:
        traced.append(1)
        return F.softmax(F.tanh(product(x)), axis=0)

    fast = compile(model, given(4, 6), dims={"x": {0: "length"}})
    before = len(traced)
    for n in (1, 2, 3, 50, 51, 500, 7, 4):
        got = fast(given(n, 6))
        assert len(traced) == before
        same(got, F.softmax(F.tanh(product(given(n, 6))), axis=0))
    assert "every length" in repr(fast)


def test_lengths_beyond_the_limits_get_plans_of_their_own() -> None:
    fast = compile(lambda x: product(F.exp(x)), given(16, 6), dims={"x": {0: ("length", range(16, 65, 16))}})
    assert len(fast._open) == 1 and not fast._plans
    same(fast(given(64, 6)), product(F.exp(given(64, 6))))
    assert not fast._plans
    for n in (8, 24, 80):
        same(fast(given(n, 6)), product(F.exp(given(n, 6))))
    assert len(fast._plans) == 3


def test_a_length_that_the_model_counts_with_is_fixed_with_its_reason() -> None:
    def model(x: Any) -> Any:
        return F.concat([x[i : i + 1] * i for i in range(x.shape[0])], axis=0)

    fast = compile(model, given(3, 6), dims={"x": {0: "length"}})
    assert list(fast.fixed) == ["length"]
    for n in (3, 5):
        same(fast(given(n, 6)), model(given(n, 6)))
    assert fast.cut is None


def test_a_model_that_branches_on_a_length_gives_each_length_its_branch() -> None:
    def model(x: Any) -> Any:
        return F.exp(x) if x.shape[0] < 8 else F.negative(x)

    fast = compile(model, dims={"x": {0: "n"}})
    for n in (5, 20, 1, 7, 8, 30):
        same(fast(given(n, 4)), model(given(n, 4)))
    assert len(fast._open) == 2 and not fast._plans


def test_calls_that_an_open_plan_does_not_serve_get_plans_of_their_own() -> None:
    fast = compile(lambda x, y: x * y, dims={"x": {0: "n"}, "y": {0: "n"}})
    double = asarray(np.ones((3, 4)))
    for x, y in ((given(3, 4), given(3, 4)), (double, given(3, 4)), (given(3, 4), given(1, 4)), (given(0, 4),) * 2):
        same(fast(x, y), x * y)
    with pytest.raises(EmberletError, match="5, 4"):
        fast(given(5, 4), given(6, 4))


def test_no_product_and_no_convolution_is_computed_while_a_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any, w: Any, m: Any) -> Any:
        return F.matmul(F.conv2d(x, w, padding=1), m)

    first, longer = ((given(n, 3, 9, 8), given(4, 3, 3, 3), given(8, 5)) for n in (2, 7))
    with monkeypatch.context() as patched:
        for name in ("conv", "matmul"):
            patched.setattr(type(first[0].backend), name, lambda *args: pytest.fail("computed"))
        fast = compile(program, *first, dims={"x": {0: "n"}})
    for case in (first, longer):
        same(fast(*case), program(*case))


def test_at_most_two_axes_are_left_open() -> None:
    fast = compile(lambda x: F.tanh(x), given(2, 3, 4), dims={"x": {0: "a", 1: "b", 2: "c"}})
    assert list(fast.fixed) == ["c"] and "at most 2" in str(fast.fixed["c"])
    for shape in ((5, 6, 4), (7, 8, 4), (2, 3, 9)):
        same(fast(given(*shape)), F.tanh(given(*shape)))
    assert len(fast._open) == 2


class _Named(Model):
    INPUTS = (("x", "float32", ("batch", "length", 6)),)
    OUTPUTS = (("y", "float32", ("batch", "length", 6)),)

    def forward(self, x: Any) -> Any:
        return F.tanh(product(x))


def test_axes_that_a_model_names_are_opened_by_their_names() -> None:
    model = _Named()
    fast = model.compile(backend="numpy", dims={"length": 32})
    for n in (1, 9, 32):
        same(fast(given(1, n, 6)), model(given(1, n, 6)))
    assert len(fast._open) == 1 and not fast._plans
    same(fast(given(2, 9, 6)), model(given(2, 9, 6)))  # the batch is not open, so it gets another plan
    assert len(fast._open) == 2


def test_an_error_of_the_model_is_raised_as_it_is() -> None:
    fast = compile(lambda x: product(x), given(4, 6), dims={"x": {0: "length", 1: "width"}})
    with pytest.raises(EmberletError):
        fast(given(4, 5))
    same(fast(given(7, 6)), product(given(7, 6)))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_one_plan_takes_a_recurrent_layer_of_any_length(kind: str) -> None:
    rng = np.random.default_rng(0)
    gates = {"lstm": 4, "gru": 3}[kind]
    w, r = ((rng.standard_normal((2, gates * 5, n)) * 0.3).astype(np.float32) for n in (3, 5))

    def model(x: Any) -> Any:
        own = [asarray(a, device=x.backend) for a in (w, r)]
        return getattr(F, kind)(x, *own, direction="bidirectional")

    compiled = compile(model, backend="numpy", dims={"x": {0: "steps", 1: "batch"}})
    for shape in ((3, 1), (70, 2), (7, 4)):
        x = rng.standard_normal((*shape, 3)).astype(np.float32)
        for got, want in zip(compiled(x), model(asarray(x)), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)
    assert not compiled.fixed


@pytest.mark.parametrize("backend", ["numpy", "wasm"])
def test_what_is_no_tensor_is_refused_and_tells_no_length(backend: str) -> None:
    from emberlet.wgpu_backend.compiled import compile as elsewhere

    def double(x: Any) -> Any:
        return F.tanh(x) * 2.0

    dims = {"x": {0: "n"}}
    fast = compile(double, dims=dims) if backend == "numpy" else elsewhere(double, backend=backend, dims=dims)
    first = fast(given(3, 2))
    for other in (None, {}, "abc"):
        with pytest.raises(EmberletError, match="tanh: x is"):
            fast(other)
    assert fast.unopened is None
    same(fast(given(3, 2)).to("numpy"), first.to("numpy"))
    assert fast(given(5, 2)).shape == (5, 2)


@pytest.mark.parametrize("shape", [(1, 1, 40, 1000), (1, 3, 40, 320)])
def test_a_convolution_in_parts_has_as_many_as_each_length_needs(shape: tuple[int, ...]) -> None:
    weight = RNG.standard_normal((2, shape[1], 3, 3)).astype(np.float32)

    def model(x: Any) -> Any:
        return F.conv2d(x, asarray(weight, device=x.backend), padding=1)

    compiled = compile(model, dims={"x": {2: "height"}})
    for height in (40, 20, 60, 12, 1, 40):
        x = given(*shape[:2], height, shape[3])
        same(compiled(x), model(x))


@pytest.mark.parametrize("shapes", [[(11, 8), (12, 5), (8, 11)], [(3, 9), (4, 12), (9, 3), (5, 5)]])
def test_singular_values_are_as_many_as_the_smaller_of_two_open_lengths(shapes: list[tuple[int, int]]) -> None:
    compiled = compile(lambda x: (linalg.svdvals(x), x * 2.0), dims={"x": {0: "rows", 1: "columns"}})
    for shape in shapes:
        x = given(*shape)
        same(compiled(x), (linalg.svdvals(x), x * 2.0))
