"""`compile()` of a model on a CPU: machine code, or NumPy where that would compute something else."""

from __future__ import annotations

import collections
import dataclasses
import enum
import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import BackendError, EmberletError, IndexingError, ShapeError
from emberlet.host.numpy_backend.compile import Compiled as NumpyCompiled
from emberlet.wgpu_backend.llvm import engine, or_numpy, processor

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


class Of(nn.Module):
    """A module that computes a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_model_on_the_cpu_becomes_machine_code_with_results_on_numpy(backend: str) -> None:
    net = nn.Linear(4, 2, backend=backend)
    wanted = np.asarray(net(emberlet.asarray(X, backend=backend)))
    with no_warning():
        fast = net.compile()
        found = [fast(emberlet.asarray(X, backend=backend)) for _ in range(3)]
    assert fast.chosen == "native" and fast.refused is None and fast.backend.name == "numpy"
    assert {y.backend.name for y in found} == {"numpy"}
    for y in found:
        np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-5, atol=1e-6)
    assert "on native" in repr(fast) and len(fast.plan().steps) > 0


def test_the_backend_that_is_named_is_taken() -> None:
    assert isinstance(nn.Linear(4, 2, backend="numpy").compile(backend="numpy"), NumpyCompiled)


GIVEN: list[Callable[[], Any]] = [
    lambda: X, lambda: emberlet.asarray(X, backend="numpy"), lambda: emberlet.asarray(X, backend="python"),
    lambda: np.asfortranarray(X), lambda: X[::-1][::-1], lambda: np.concatenate([X, X])[:3],
    lambda: np.concatenate([X, X]), lambda: X[:1],
]  # fmt: skip


def test_arrays_and_tensors_of_any_kind_and_shape_may_follow_each_other() -> None:
    fast = Of(lambda x: (x.exp(), x.argmax(1), x > 0.5, x.sum(1).astype("float16"), (x * x).astype("uint8"))).compile()
    for _ in range(2):
        for given in GIVEN:
            a = np.asarray(given())
            found = fast(given())
            want = (np.exp(a), a.argmax(1), a > 0.5, a.sum(1).astype(np.float16), (a * a).astype(np.uint8))
            for y, w in zip(found, want, strict=True):
                assert np.asarray(y).dtype == w.dtype
                np.testing.assert_allclose(np.asarray(y), w, rtol=1e-3)
    assert fast.chosen == "native"


def test_results_have_the_structure_of_the_models() -> None:
    net = Of(lambda x: {"a": x * 2.0, "b": (x.sum(), None, 3)})
    for found in (net.compile()(X), net.compile(X)(X)):
        assert found["b"][1:] == (None, 3) and found["b"][0].shape == ()
        np.testing.assert_array_equal(np.asarray(found["a"]), X * 2)


REFUSED: dict[str, tuple[Callable[..., Any], Any]] = {
    "float64": (lambda x: x / 3.0, X.astype(np.float64)),
    "float64 inside": (lambda x: (x.astype("float64") / 3.0).astype("float32"), X),
    "integers beyond 32 bits": (lambda x: x + 1, np.array([1 << 40, 3])),
    "a sum of 32-bit integers": (F.sum, np.full(3, 1 << 30, np.int32)),
    "a product of 64-bit integers": (lambda x: x * 10_000_000, np.array([100_000, 1])),
    "64-bit integers from 32 bits without a sign": (
        lambda x: x.astype("int64") + 1, np.array([(1 << 32) - 1, 5], np.uint32),
    ),
    "64-bit integers from floats": (lambda x: x.astype("int64"), np.array([1e12, 5.0], np.float32)),
    "64-bit integers of an input, added up": (lambda x: x + x, np.array([(1 << 30) + 1, 5])),
    "operations that values decide": (lambda x: x * 2.0 if bool((x.sum() > 0.0).item()) else x, X[0, :2]),
}  # fmt: skip


def test_token_ids_and_masks_are_taken_by_machine_code() -> None:
    table = np.random.default_rng(1).standard_normal((1000, 4)).astype(np.float32)

    def model(ids: Any, mask: Any) -> Any:
        rows = F.take(emberlet.asarray(table, device=ids.backend), ids, 0)
        present = (ids != 5).astype("int64")
        places = F.cumsum(present, 1) * present + 1, F.cumsum(mask, 1) - 1
        return rows * mask.astype("float32").reshape((2, 3, 1)), *places, rows.argmax(2), ids + 1

    given = np.array([[7, -1, 999], [0, 5, 6]]), np.array([[1, 1, 0], [1, 1, 1]])
    with no_warning():
        fast = Of(model).compile(*given)
        found = [np.asarray(y) for y in fast(*given)]
    for y, want in zip(found, model(*[emberlet.asarray(x, backend="numpy") for x in given]), strict=True):
        np.testing.assert_array_equal(y, np.asarray(want))
    assert fast.chosen == "native"


@pytest.mark.parametrize("backend", [None, "native"])
def test_indices_and_empty_states_are_taken_in_each_call(backend: str | None) -> None:
    table = np.random.default_rng(1).standard_normal((9, 4)).astype(np.float32)

    def model(ids: Any, past: Any) -> Any:
        return F.concat((past, F.take(emberlet.asarray(table, device=ids.backend), ids, 0)), 0), ids > 3

    fast: Any = Of(model).compile(backend=backend)
    past = np.zeros((0, 4), np.float32)
    for ids in ([1, 2, 8], [1, 2, 9], [-9, 0, 3], [0, -10, 0], [4, 5, 6]):
        given = np.array(ids)
        if max(ids) > 8 or min(ids) < -9:
            with pytest.raises(IndexingError, match=f"{max(ids, key=abs)} is outside axis 0 of length 9"):
                fast(given, past)
            continue
        for now in (given, emberlet.asarray(given, backend="numpy"), np.repeat(given, 2)[::2]):
            rows, large = (np.asarray(y) for y in fast(now, past))
            np.testing.assert_array_equal(rows, table[given])
            np.testing.assert_array_equal(large, given > 3)
    assert np.asarray(fast(given, np.ones((2, 4), np.float32))[0]).shape == (5, 4)


@pytest.mark.parametrize("backend", [None, "native"])
def test_integers_beyond_32_bits_are_noticed_in_later_calls(backend: str | None) -> None:
    fast: Any = Of(lambda x: x > 3).compile(backend=backend)
    for _ in range(2):
        assert np.asarray(fast(np.array([3, 4]))).tolist() == [False, True]
    large = np.array([3, 1 << 32])
    if backend:
        with pytest.raises(BackendError, match="beyond 32 bits"):
            fast(large)
        return
    with pytest.warns(UserWarning, match="64-bit integers beyond"):
        assert np.asarray(fast(large)).tolist() == [False, True]
    assert fast.chosen == "numpy"


@pytest.mark.parametrize("kind", REFUSED)
def test_what_machine_code_computes_otherwise_runs_on_numpy_with_one_warning(kind: str) -> None:
    function, given = REFUSED[kind]
    want = np.asarray(function(emberlet.asarray(given, backend="numpy")))
    fast = Of(function).compile()
    with pytest.warns(UserWarning, match='Of is compiled for NumPy .*backend="numpy"') as said:
        found = [np.asarray(fast(given)) for _ in range(2)]
    assert len(said) == 1 and said[0].filename == __file__
    for y in found:
        assert y.dtype == want.dtype
        np.testing.assert_array_equal(y, want)
    assert fast.chosen == "numpy" and isinstance(fast.refused, EmberletError)
    with pytest.warns(UserWarning, match="is compiled for NumPy") as said:
        by_example = Of(function).compile(given)
        by_example(given)
    assert [w.filename for w in said] == [__file__]
    assert by_example.chosen == "numpy"


def test_where_llvmlite_cannot_be_loaded_numpy_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise or_numpy.BackendError("a library is missing")

    monkeypatch.setattr("emberlet.wgpu_backend.llvm.engine.available", broken)
    with pytest.warns(UserWarning, match="Linear is compiled for NumPy .*: a library is missing"):
        fast = nn.Linear(4, 2, backend="numpy").compile()
    assert fast(X).shape == (3, 2) and fast.chosen == "numpy"


def test_an_error_of_the_caller_is_raised_as_it_is_and_changes_nothing() -> None:
    fast = nn.Linear(4, 2, backend="numpy").compile()
    with no_warning():
        for _ in range(2):
            with pytest.raises(ShapeError):
                fast(X[:, :3])
            assert fast(X).shape == (3, 2)
    assert fast.chosen == "native"


def test_released_plans_are_made_again() -> None:
    fast = nn.Linear(4, 2, backend="numpy").compile(X)
    before = np.asarray(fast(X))
    fast.release()
    np.testing.assert_array_equal(np.asarray(fast(X)), before)


def test_a_plan_that_is_released_during_its_call_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = nn.Linear(4, 2, backend="numpy").compile()
    plans = []
    real = or_numpy._Short.of

    def of(planned: Any, bound: Any, backend: Any) -> Any:
        plans.append(weakref.ref(planned))
        fast.release()  # as another thread may do
        return real(planned, bound, backend)

    monkeypatch.setattr(or_numpy._Short, "of", of)
    fast(X)
    gc.collect()
    assert plans[0]() is None


def test_sizes_that_a_model_computes_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    before = engine._made
    monkeypatch.setattr(engine, "_made", lambda key: (made.append(key), before(key))[1])

    def reshaped(x: Any) -> Any:
        four, one = (emberlet.asarray(numbers, device=x.backend) for numbers in ([4, 2], [0, 1]))
        return x.reshape(tuple((four + one).tolist())) + 0.5

    np.testing.assert_array_equal(np.asarray(Of(reshaped).compile()(X)), X.reshape(4, 3) + np.float32(0.5))
    assert not [key for key in made if key[2]]  # kernels that are compiled for a single use


class Box:
    def __init__(self, k: Any) -> None:
        self.k = k

    def __repr__(self) -> str:
        return "Box"


OBJECTS: dict[str, Callable[[float], tuple[Any, Any]]] = {  # number -> an argument that holds it, in NumPy's calls too
    "dict": lambda k: ({"k": k}, lambda o: o["k"]),
    "object": lambda k: (Box(k), lambda o: o.k),
    "list of tensors": lambda k: ([emberlet.asarray(np.full(2000, k, np.float32))], lambda o: o[0][1000].item()),
}


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.filterwarnings("ignore:Of has no plan")
def test_arguments_that_hold_values_are_looked_at_in_each_call(kind: str, backend: str | None) -> None:
    _, get = OBJECTS[kind](0.0)
    net = Of(lambda x, o: x + get(o))
    fast = net.compile(backend=backend)
    for k in (1.0, 2.0, 1.0):
        np.testing.assert_array_equal(np.asarray(fast(X, OBJECTS[kind](k)[0])), X + np.float32(k))
    with pytest.raises(BackendError, match=r"input 1 is a (dict|Box|list), and plans are made for tensors and numbers"):
        fast.plan()


def test_an_object_that_changes_is_looked_at_in_each_call() -> None:
    fast, box = Of(lambda x, o: x + o.k).compile(), Box(1.0)
    with pytest.warns(UserWarning, match="Of has no plan, in machine code or on NumPy, .*: input 1 is a Box") as said:
        for box.k in (1.0, 2.0, 3.0):
            np.testing.assert_array_equal(np.asarray(fast(X, box)), X + np.float32(box.k))
    assert [w.filename for w in said] == [__file__]


def test_an_argument_of_another_type_does_not_end_the_plans_of_a_model_that_refuses_it() -> None:
    fast = Of(lambda x, k: x * k).compile(backend="native")
    with pytest.raises(TypeError):
        fast(X, {})
    np.testing.assert_array_equal(np.asarray(fast(X, 2)), X * 2)
    assert fast.cut is None and len(fast.plan().steps) == 1


class Alike(float):
    """Numbers that no repr tells apart."""

    def __repr__(self) -> str:
        return "a number"


class Mode(enum.IntEnum):
    ONE = 1
    TWO = 2


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
@pytest.mark.filterwarnings("ignore:Of has no plan")
def test_numbers_of_classes_of_their_own_are_told_apart(backend: str | None) -> None:
    fast, planned = (Of(lambda x, k: x * k).compile(backend=backend) for _ in range(2))
    for k in (2, 3):
        np.testing.assert_array_equal(np.asarray(fast(X, Alike(k))), X * k)
    for mode in Mode:
        np.testing.assert_array_equal(np.asarray(planned(X, mode)), X * mode.value)
    assert planned.cut is None


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
@pytest.mark.filterwarnings("ignore:Of has no plan")
def test_results_are_of_the_models_classes(backend: str | None) -> None:
    makers: list[Callable[[Any], Any]] = [
        Frozen, Derived, NamedPair, OwnTuple, OwnList, collections.OrderedDict, OwnDict, Guarded
    ]  # fmt: skip
    for make in makers:
        fast = Of(
            lambda x, make=make: make({"a": x + 1.0, "b": 2} if issubclass(make, dict) else (x + 1.0, 2))
        ).compile(backend=backend)
        for x in (X, X * 5):
            found = fast(x)
            assert type(found) is make
            parts = list(found.values() if isinstance(found, dict) else getattr(found, "a", found))
            np.testing.assert_array_equal(np.asarray(parts[0]), x + 1)
            assert parts[1] == 2


def test_a_tensor_on_numpy_may_be_part_of_a_result() -> None:
    constant = emberlet.asarray(X, backend="numpy")
    with no_warning():
        fast = Of(lambda x: (x + 1.0, constant)).compile()
        for _ in range(2):
            found = fast(X)[1]
            np.testing.assert_array_equal(np.asarray(found), X)
    assert fast.chosen == "native" and found is not constant


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any


class NamedPair(NamedTuple("NamedPair", [("first", Any), ("second", Any)])):
    def __new__(cls, both: Any) -> NamedPair:
        return tuple.__new__(cls, both)


class OwnTuple(tuple[Any, ...]):
    __slots__ = ()


class OwnList(list[Any]):
    pass


class OwnDict(dict[str, Any]):
    pass


class Guarded:
    def __init__(self, a: Any) -> None:
        self.__dict__["a"] = a

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError("read-only")


class Slots:
    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a


class Plain(Slots):
    __slots__ = ()


class Derived(Plain):
    pass


def itself(y: Any) -> Any:
    out = Box(y)
    out.itself = out  # type: ignore[attr-defined]
    return out


STRUCTURES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a field": (Box, lambda o: o.k), "a dict in an object": (lambda y: Box({"a": [y]}), lambda o: o.k["a"][0]),
    "an object in an object": (lambda y: Box(Box(y)), lambda o: o.k.k),
    "an object in a dict": (lambda y: {"a": (1, Box(y))}, lambda o: o["a"][1].k), "slots": (Slots, lambda o: o.a),
    "an iterator": (lambda y: iter([y]), next), "an object that refers to itself": (itself, lambda o: o.itself.k),
    "an exception": (ValueError, lambda o: o.args[0]), "a function": (lambda y: lambda: y, lambda o: o()),
}  # fmt: skip


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.filterwarnings("ignore:Of ")
def test_results_within_other_objects_hold_the_values_of_the_call(kind: str, backend: str | None) -> None:
    make, get = STRUCTURES[kind]
    fast = Of(lambda x: make(x + 1.0)).compile(backend=backend)
    for x in (X, X * 5, X):
        found = get(fast(x))
        assert found.backend.name == (backend or "numpy")
        np.testing.assert_array_equal(np.asarray(found), x + 1)


def test_threads_may_meet_the_call_that_leaves_machine_code() -> None:
    wrong: list[str] = []

    def many(fast: Any, k: int, start: threading.Barrier) -> None:
        start.wait()
        for n in range(12):
            given = np.array([[1 << 40, 2]]) if (k, n) == (0, 3) else np.arange(2 * (1 + (n + k) % 5)).reshape(-1, 2)
            try:
                if not np.array_equal(np.asarray(fast(given)), given + 1):
                    wrong.append("values")
            except BaseException as error:
                wrong.append(repr(error))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(5):
                fast, start = Of(lambda x: x + 1).compile(), threading.Barrier(4)
                threads = [threading.Thread(target=many, args=(fast, k, start)) for k in range(4)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                assert fast.chosen == "numpy"
        finally:
            sys.setswitchinterval(before)
    assert not wrong


def test_llvmlite_that_is_gone_since_the_processor_was_noted_is_no_raw_error(monkeypatch: pytest.MonkeyPatch) -> None:
    processor.current()  # now known, or kept by an earlier process

    def gone() -> None:
        raise ModuleNotFoundError("No module named 'llvmlite'")

    monkeypatch.setattr(processor, "llvm", gone)
    monkeypatch.setattr(engine.kept, "read", lambda name: None)
    net = Of(lambda x: x * 1.0625 + 3.0)
    with pytest.raises(BackendError, match="llvmlite"):
        net.compile(backend="native")(X)
    with pytest.warns(UserWarning, match="Of is compiled for NumPy .*llvmlite"):
        np.testing.assert_array_equal(np.asarray(net.compile()(X)), X * 1.0625 + 3)


@pytest.mark.parametrize("backend", [None, "native", "numpy"])
def test_a_plan_that_is_not_there_is_an_error_that_says_so(backend: str | None) -> None:
    fast = Of(lambda x: x + 1.0).compile(backend=backend)
    for _ in range(2):
        with pytest.raises(BackendError, match="there is no plan yet: call the compiled model, or give examples"):
            fast.plan()
        assert fast.plan(X) is not None
        fast.release()


def test_numbers_that_keep_changing_are_left_to_numpy() -> None:
    fast = Of(lambda x, k: x * k).compile()
    with no_warning():
        for k in (1, 2, 0.5, 2, True, 3.0, 0.5):
            np.testing.assert_array_equal(np.asarray(fast(X, k)), X * np.float32(k))
    assert fast.chosen == "native"
    with pytest.warns(UserWarning, match="a number or text among the arguments keeps changing.*give numbers as arrays"):
        np.testing.assert_array_equal(np.asarray(fast(X, 9)), X * 9)
    assert fast.chosen == "numpy"
    by_text = Of(lambda x, text: x + len(text)).compile()
    with pytest.warns(UserWarning, match="a number or text among the arguments keeps changing"):
        for k in range(9):
            np.testing.assert_array_equal(np.asarray(by_text(X, "a" * k)), X + k)
    by_array = Of(lambda x, k: x * k).compile()
    with no_warning():
        for k in range(9):
            np.testing.assert_array_equal(np.asarray(by_array(X, np.float32(k))), X * k)
