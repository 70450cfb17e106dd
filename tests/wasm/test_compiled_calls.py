"""Which plans a compiled model makes, keeps and forgets, and what it does without one. No GPU is needed."""

from __future__ import annotations

import functools
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.backend import plans as module
from emberlet.backend.tracing import ValueNeeded
from emberlet.errors import BackendError
from emberlet.host.numpy_backend.compile import compile as compile_on_numpy
from emberlet.wgpu_backend.compiled import compile


def numbers(count: int, dtype: str = "float32", backend: str = "wasm") -> Any:
    return emberlet.asarray(np.arange(count).astype(dtype), backend=backend)


def doubled(x: Any, by: float = 2.0, *, more: float = 0.0) -> Any:
    return x * by + more


def of_its_values(x: Any) -> Any:
    return x * 2 if F.sum(x).item() > 3 else x - 1


def test_each_shape_has_a_plan_and_the_least_recently_used_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHAPES", 2)
    model = compile(doubled, backend="wasm")
    assert repr(model) == "Compiled(doubled, no plan yet)"
    for count, left in [(1, [1]), (2, [1, 2]), (1, [1, 2]), (3, [1, 3]), (3, [1, 3]), (2, [2, 3]), (4, [2, 4])]:
        assert np.asarray(model(numbers(count))).tolist() == [2.0 * n for n in range(count)]
        assert sorted(key[0][1][0] for key in model._plans) == left
        assert model.plan() is model.planned().plan and model._last.roots[0].shape == (count,)
    assert repr(model) == "Compiled(doubled, 1 dispatches for (float32 (2,)); 1 dispatches for (float32 (4,)))"


def test_plans_are_told_apart_by_dtype_and_other_arguments() -> None:
    model = compile(doubled, numbers(3), backend="wasm")
    assert len(model._plans) == 1
    for x, by in [(numbers(3), 3.0), (numbers(3, "int32"), 2), (numbers(3), 2.0), (numbers(3), 3.0)]:
        assert np.asarray(model(x, by)).tolist() == [by * n for n in range(3)]
    assert len(model._plans) == 4  # of the example, which took the default, too
    assert np.asarray(model(by=3.0, x=np.ones(3, np.float32))).tolist() == [3.0, 3.0, 3.0]
    assert np.asarray(model(x=numbers(3))).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("backend", ["wasm", "numpy"])
def test_an_argument_that_only_has_a_name_is_refused_and_given_by_partial(backend: str) -> None:
    def named(x: Any, **options: Any) -> Any:
        return x + options["more"]

    make: Any = {"wasm": lambda function: compile(function, backend="wasm"), "numpy": compile_on_numpy}[backend]
    for function in (doubled, named):
        with pytest.raises(BackendError, match=r"more can only be given by name: .* functools.partial\(model, more="):
            make(function)(numbers(3), more=1.0)
        given = make(functools.partial(function, more=1.0))
        want = np.asarray(function(numbers(3), more=1.0)).tolist()
        assert np.asarray(given(numbers(3))).tolist() == np.asarray(given(x=numbers(3))).tolist() == want
    with pytest.raises(TypeError, match="'other'"):
        make(doubled)(numbers(3), other=1.0)


def test_a_model_that_depends_on_values_has_no_single_plan() -> None:
    model = compile(of_its_values, numbers(3, backend="numpy"), backend="wasm")
    assert isinstance(model.cut, ValueNeeded) and repr(model).startswith("Compiled(of_its_values, cut into pieces: ")
    for backend in ("numpy", "wasm"):
        found = model(numbers(4, backend=backend))
        assert found.backend is get_backend("wasm") and np.asarray(found).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert np.asarray(model(np.zeros(2, np.float32))).tolist() == [-1.0, -1.0]
    for asked in (model.planned, model.plan):
        with pytest.raises(ValueNeeded):
            asked()
        with pytest.raises(ValueNeeded):
            asked(numbers(2))
    assert model._plans == {}


def by_rate(x: Any, rate: Any) -> Any:
    return x * 2.0 if rate == 16000 else x - 1.0


@pytest.mark.parametrize("backend", ["wasm", "native"])
def test_a_small_integer_that_decides_has_a_plan_for_each_value(backend: str) -> None:
    pytest.importorskip({"wasm": "wasmtime", "native": "llvmlite"}[backend])
    model = compile(by_rate, backend=backend)
    x = np.arange(3, dtype=np.float32)
    wanted = {16000: [0.0, 2.0, 4.0], 8000: [-1.0, 0.0, 1.0]}
    for rate in (16000, 16000, 8000, 16000, 8000, 8000):
        for given in (np.array(rate), emberlet.asarray(rate, dtype="int64", backend=backend)):
            assert np.asarray(model(x, given)).tolist() == wanted[rate]
    assert len(model._plans) == 2 and model.cut is None
    assert np.asarray(model(x, 16000)).tolist() == wanted[16000]
    for rate in range(4):
        assert np.asarray(model(x, np.array(rate))).tolist() == wanted[8000]
    assert "which keeps changing" in str(model.cut)  # from then on without a plan
    assert np.asarray(model(x, np.array(16000))).tolist() == wanted[16000]


@pytest.mark.parametrize("backend", ["wasm", "numpy"])
def test_a_small_integer_decides_beside_an_open_size(backend: str) -> None:
    make: Any = {"wasm": compile, "numpy": compile_on_numpy}[backend]
    model = make(by_rate, backend=backend, dims={"x": {0: "n"}})
    for n, rate in [(3, 16000), (5, 16000), (5, 8000), (2, 8000), (9, 16000)]:
        x = np.arange(n, dtype=np.float32)
        wanted = x * 2 if rate == 16000 else x - 1
        assert np.asarray(model(x, np.array(rate))).tolist() == wanted.tolist()
    assert (len(model._open), len(model._plans)) == (2, 0)


def of_its_sum(x: Any, m: Any) -> Any:
    return x.reshape((-1, 1, 1)) + m.astype(emberlet.float32) if (m.sum() > 0).item() else x - 1


@pytest.mark.parametrize("backend", ["wasm", "native"])
def test_an_array_that_decides_has_a_plan_for_each_of_its_shapes(backend: str) -> None:
    pytest.importorskip({"wasm": "wasmtime", "native": "llvmlite"}[backend])
    model = compile(of_its_sum, backend=backend, dims={"x": {0: "c"}, "m": {0: "a", 1: "b"}})
    for n, shape in [(3, (1, 4)), (3, (4, 1)), (5, (2, 2)), (5, (4, 1))]:
        x, m = np.arange(n, dtype=np.float32), np.arange(1, 5, dtype=np.int32).reshape(shape)
        np.testing.assert_array_equal(np.asarray(model(x, m)), x.reshape(-1, 1, 1) + m)
    assert model.cut is None


def test_an_input_that_decides_may_be_left_out() -> None:
    def doubled(x: Any, n: Any = None) -> Any:
        return x if n is None else x * 2 if (n > 1).item() else x - 1

    model = compile(doubled, backend="wasm")
    x = np.arange(3, dtype=np.float32)
    for given, wanted in [((np.array(2),), x * 2), ((), x), ((np.array(0),), x - 1), ((None,), x), ((), x)]:
        np.testing.assert_array_equal(np.asarray(model(x, *given)), wanted)
    assert model.cut is None


def test_a_value_that_stays_is_not_said_to_change_as_dtypes_do() -> None:
    model = compile(by_rate, backend="wasm")
    for dtype in ("float32", "int32", "uint8", "int8", "int16", "uint16"):
        for kind in ("int32", "int64"):
            found = model(np.arange(3).astype(dtype), np.array(16000, kind))
            assert np.asarray(found).tolist() == [0.0, 2.0, 4.0]
    assert model.cut is None


@pytest.mark.parametrize("backend", ["wasm", "native"])
def test_a_large_array_that_decides_has_no_plan_though_small_ones_have(backend: str) -> None:
    pytest.importorskip({"wasm": "wasmtime", "native": "llvmlite"}[backend])
    model = compile(of_its_sum, backend=backend)
    x, small = np.arange(3, dtype=np.float32), np.ones((2, 2), np.int32)
    np.testing.assert_array_equal(np.asarray(model(x, small)), x.reshape(-1, 1, 1) + small)
    large = np.arange(100, dtype=np.int32).reshape(20, 5)
    with pytest.warns(UserWarning, match="of_its_sum has no plan for these arguments on .*: input 1 decides"):
        np.testing.assert_array_equal(np.asarray(model(x, large)), x.reshape(-1, 1, 1) + large)
    np.testing.assert_array_equal(np.asarray(model(x, -large)), x - 1)
    np.testing.assert_array_equal(np.asarray(model(x, small)), x.reshape(-1, 1, 1) + small)
    assert len(model._plans) == 1 and model.cut is None


def test_integers_that_a_plan_cannot_hold_are_refused() -> None:
    model = compile(lambda x, y: y + 1, numbers(2, "int64"), numbers(2, "int64"), backend="wasm")
    large = emberlet.asarray([1, 1 << 31], dtype="int64", backend="numpy")
    assert np.asarray(model(large, numbers(2, "int64"))).tolist() == [1, 2]  # nothing reads it
    with pytest.raises(BackendError, match=r"input 1.*32"):
        model(numbers(2, "int64"), large)


def test_only_modules_are_copied() -> None:
    class Model:
        """`fork` alone, or `params` alone, makes no Module."""

        def __call__(self, x: Any) -> Any:
            return x + 1

    for name in ("fork", "params"):
        model = Model()
        setattr(model, name, lambda *_: pytest.fail("was called"))
        assert compile(model, numbers(2), backend="wasm").model is model


def test_a_model_in_training_is_told_how_to_get_a_plan() -> None:
    model = nn.Linear(2, 1, backend="numpy").train()
    with pytest.raises(BackendError, match=r"model\.valid\(\)\.compile\(\)"):
        model.compile()
    assert model.valid().compile()(numbers(2).to("numpy")).shape == (1,)


def test_other_backends_have_no_plans() -> None:
    for name in ("numpy", "python"):
        with pytest.raises(BackendError, match="plans are made for the wgpu, wasm and native backends, not for"):
            compile(doubled, backend=name)


def with_more(x: Any, more: Any = None) -> Any:
    return x * 2.0 if more is None else x * 2.0 + more["a"]


@pytest.mark.parametrize("backend", ["wasm", "native"])
def test_a_call_with_a_dict_has_no_plan_and_later_calls_have_one(backend: str) -> None:
    pytest.importorskip({"wasm": "wasmtime", "native": "llvmlite"}[backend])
    model = compile(with_more, backend=backend)
    x = np.ones((2, 3), np.float32)
    more = {"a": emberlet.asarray(x, device=backend)}
    with pytest.warns(UserWarning, match="with_more has no plan for these arguments on .*: input 1 is a dict") as said:
        for _ in range(2):
            np.testing.assert_array_equal(np.asarray(model(x, more)), 3 * x)
    assert len(said) == 1 and model.cut is None
    with pytest.raises(ValueNeeded, match="input 1 is a dict"):
        model.plan()
    np.testing.assert_array_equal(np.asarray(model(x[:1])), 2 * x[:1])
    assert len(model.plan().steps) == 1


def of_lengths(x: Any, lengths: Any) -> Any:
    return F.split_to_sequence(x, F.astype(lengths, "int64"))  # which reads them


@pytest.mark.parametrize("backend", ["numpy", "wasm"])
def test_a_result_that_is_an_input_is_the_callers_without_a_plan_too(backend: str) -> None:
    values = np.ones((1, 3), np.float32)
    model = compile(of_lengths, backend="wasm")
    x, lengths = (
        emberlet.asarray(values, backend=backend),
        emberlet.asarray(np.array([1.0], np.float32), backend=backend),
    )
    (result,) = model(x, lengths)
    assert model.cut
    values[...] = 7.0
    x[...] = 8.0
    assert np.asarray(result).tolist() == [[1.0, 1.0, 1.0]]
    result[...] = 9.0
    assert np.asarray(x).tolist() == [[8.0, 8.0, 8.0]]
