"""Which plan of a compiled model a call gets, when plans are made and dropped, and what a trace keeps."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import BackendError
from emberlet.host.numpy_backend.compile import Compiled, compile, compiled, tracing
from emberlet.host.numpy_backend.compile.compiled import _arrays_fit, _key, _like, _shapes
from emberlet.host.numpy_backend.compile.matching import matcher
from emberlet.host.numpy_backend.compile.tracing import Call, Traced, Tracing, Value, ValueNeeded, assemble, described
from emberlet.model import Model
from emberlet.tensor import Tensor

NUMPY, PYTHON = get_backend("numpy"), get_backend("python")
Pair = namedtuple("Pair", "a b")


def tensor(values: Any, dtype: str = "float32", backend: Any = NUMPY) -> Any:
    return emberlet.asarray(values, dtype=dtype, device=backend)


X = tensor([[1.0, 2.0]])


# -- what a plan is kept for


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ([X, 1], False), ([X, tensor([[3.0, 4.0]])], True), ([X, tensor([[1.0]])], False),
        ([X, tensor([[1, 2]], "int32")], False), ([X, X.data], False),
        ([X, tensor([[1.0, 2.0]], backend=PYTHON)], False),
    ],
)  # fmt: skip
def test_tensors_fit_a_plan_of_their_dtypes_and_shapes(given: list[Any], fits: bool) -> None:
    assert matcher(_key([X, X], frozenset()), [X, X])(*given) is fits


def test_tensors_fit_a_plan_for_values_with_these_values_only() -> None:
    fits = matcher(_key([X, X], frozenset([1])), [X, X])
    assert fits(tensor([[3.0, 4.0]]), tensor([[1.0, 2.0]]))
    assert not fits(X, tensor([[1.0, 3.0]]))


@pytest.mark.parametrize("count", [1, 3])
def test_a_call_with_another_number_of_arguments_has_a_plan_of_its_own(count: int) -> None:
    made = compile(lambda *x: sum(x[1:], x[0] * 1.0))
    made(X, X)
    assert made(*[X] * count).tolist() == [[1.0 * count, 2.0 * count]]
    assert len(made._plans) == 2


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ([X.data, 1], False), ([X.data], False), ([X.data, X.data], True), ([X.data, X], False),
        ([X.data, np.zeros((1, 3), np.float32)], False), ([X.data, np.zeros((1, 2))], False),
        ([X.data, [[1.0, 2.0]]], False),
    ],
)  # fmt: skip
def test_arrays_fit_a_plan_as_tensors_do(given: list[Any], fits: bool) -> None:
    assert _arrays_fit(_key([X, X], frozenset()), given) is fits
    fixed = _key([X, X], frozenset([0]))
    assert _arrays_fit(fixed, [np.float32([[1, 2]]), X.data])
    assert not _arrays_fit(fixed, [np.float32([[1, 3]]), X.data])
    narrow = _key([tensor([1.0], "bfloat16")], frozenset())
    assert not _arrays_fit(narrow, [tensor([1.0], "bfloat16").data])


def test_a_key_has_the_values_of_some_inputs_and_of_what_is_no_tensor() -> None:
    assert _key([X, 2, None, "a", 1.5, True], frozenset()) == (
        ("float32", (1, 2)), "2", "None", "'a'", "1.5", "True"
    )  # fmt: skip
    fixed = _key([X, X], frozenset([1]))
    assert fixed == (("float32", (1, 2)), ("float32", (1, 2), X.data.tobytes()))
    assert _shapes(fixed, frozenset([1])) == _key([X, X], frozenset())
    for other in ([X], {"a": X}, b"a", np.zeros(1)):
        with pytest.raises(ValueNeeded, match=f"input 1 is a {type(other).__name__}, and plans are made for"):
            _key([X, other], frozenset())


def test_an_example_is_kept_as_its_dtype_and_shape() -> None:
    assert _like(X) == ("float32", (1, 2))
    assert _like(np.zeros((3,), np.int8)) == ("int8", (3,))
    odd = np.zeros(2, np.complex64)
    assert _like(odd) is odd
    assert _like("a") == "a" and _like([1]) == [1]


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


def test_examples_make_the_first_plan_at_once() -> None:
    model, runs = counted(lambda x: x + 1.0)
    made = compile(model, np.zeros((1, 2), np.float32))
    assert len(runs) == 1
    made(X)
    assert len(runs) == 1
    model, runs = counted(lambda x: x + 1.0)
    compile(model)
    assert runs == []


def test_the_least_recently_used_plan_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_SHAPES", 2)
    model, runs = counted(lambda x: x + 1.0)
    made = compile(model)
    for n, count in ((1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4), (3, 5)):
        made(np.zeros(n, np.float32))
        assert len(runs) == count, n
    assert len(made._plans) == 2


def test_arrays_are_taken_for_the_plan_that_was_used_last() -> None:
    made = compile(lambda x: (x + 1.0, x * 2.0))
    assert made.arrays([X.data]) is None
    made(X)
    found = made.arrays([X.data])
    assert found is not None and [a.tolist() for a in found] == [[[2.0, 3.0]], [[2.0, 4.0]]]
    assert made.arrays([X.data, X.data]) is None
    scaled = compile(lambda x, k: x * k)
    assert scaled(X, 3.0).tolist() == [[3.0, 6.0]]
    assert scaled._last is None  # a number is part of the plan
    assert scaled(X, 4.0).tolist() == [[4.0, 8.0]]


def test_a_call_like_the_last_one_looks_for_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile(lambda x: x + 1.0)
    made(X)
    looked = []
    find = made._find
    monkeypatch.setattr(made, "_find", lambda arguments: looked.append(1) or find(arguments))
    assert made(X).tolist() == [[2.0, 3.0]] and looked == []
    assert made(X.data).tolist() == [[2.0, 3.0]] and looked == [1]
    made(tensor([[1.0]]))
    assert looked == [1, 1]


def test_only_numpys_backend_makes_plans() -> None:
    for backend in ("python", PYTHON):
        with pytest.raises(BackendError, match="plans of NumPy calls are made for the numpy backend, not for"):
            compile(lambda x: x, backend=backend)


def test_a_model_without_a_plan_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_FIXED", 1)
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


def test_a_small_input_that_decides_has_a_plan_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_VALUES", 2)
    model, _ = branching(2)
    made = compile(model)
    for n in (0, 1, 0, 1):
        assert made(X, tensor([n], "int64")).tolist() == ([[2.0, 3.0]] if n % 2 else [[2.0, 4.0]])
    assert made._fixed == frozenset([1]) and len(made._plans) == 2 and made.cut is None
    made(tensor([[1.0]]), tensor([1], "int64"))  # of another shape
    assert len(made._plans) == 3 and made.cut is None
    assert made(X, tensor([2], "int64")).tolist() == [[2.0, 4.0]]
    assert "the operations of the model depend on the value of input 1, which keeps changing" in str(made.cut)
    assert made._plans == {} and made._last is None
    assert "not planned: the operations" in repr(made)
    assert made(X, tensor([3], "int64")).tolist() == [[2.0, 3.0]]
    with pytest.raises(ValueNeeded, match="which keeps changing"):
        made.plan()


def test_a_large_input_that_decides_leaves_the_model_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_FIXED", 3)
    for size, planned in ((3, True), (4, False)):
        model, _ = branching(2)
        made = compile(model)
        assert made(X, tensor([1] * size, "int64")).shape == (1, 2)
        assert (made.cut is None) is planned
        assert (made._fixed == frozenset([1])) is planned


# -- open axes


def opened(model: Any, *examples: Any, **dims: Any) -> Compiled:
    return compile(model, *examples, dims=dims)


class Two(Model):
    INPUTS = (("x", "float32", ("n", "m")), ("y", "float32", ("k",)))

    def forward(self, x: Any, y: Any) -> Any:
        return x + 1.0, y * 2.0


def sized(n: int, m: int, k: int) -> Any:
    return np.zeros((n, m), np.float32), np.zeros(k, np.float32)


def test_open_plans_are_made_for_lengths_within_the_limits_only() -> None:
    made = opened(Two(), n=8, m=8)
    made(*sized(3, 4, 5))
    assert len(made._open) == 1 and not made._plans
    made(*sized(8, 1, 5))
    assert len(made._open) == 1
    made(*sized(9, 4, 5))  # beyond the limit, m stays open
    assert len(made._open) == 2
    made(*sized(0, 9, 5))  # nothing is left open
    assert len(made._open) == 2 and len(made._plans) == 1
    assert made.plan() in made._plans.values()
    assert made.plan(*sized(3, 4, 5)) is made._open[0]


def test_at_most_two_axes_stay_open_and_the_rest_says_why() -> None:
    made = opened(Two(), n=8, m=8, k=8)
    made(*sized(3, 4, 5))
    assert list(made.fixed) == ["k"]
    assert str(made.fixed["k"]) == "a plan of NumPy calls leaves at most 2 axes open"
    assert made._open[0].opened == ["n", "m"]


def test_the_number_of_open_plans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_OPEN", 1)
    made = opened(Two(), n=8)
    made(*sized(3, 4, 5))
    made(*sized(3, 5, 5))
    assert (len(made._open), len(made._plans)) == (1, 1)


# -- traces


@pytest.mark.parametrize(
    ("op", "args", "said"),
    [
        ("unary", ("exp", 1), "exp"), ("binary", ("add", 1), "add"), ("reduce", ("max", 1), "reduce max"),
        ("matmul", (1, 2), "matmul"), ("cast", (1, "x"), "cast"),
    ],
)  # fmt: skip
def test_a_call_in_a_message(op: str, args: Any, said: str) -> None:
    assert described(Call(op, len, args, {})) == said


def test_a_model_that_asks_for_elements_says_of_what() -> None:
    for model, said in (
        (lambda x: float(x.sum()), "the model asks for the elements of a result of reduce sum, float32 ()"),
        (lambda x: x.tolist(), r"the model asks for the elements of an input, float32 \(1, 2\), which depend on"),
    ):
        with pytest.raises(ValueNeeded, match=said.replace("()", r"\(\)")) as found:
            tracing.trace(model, [X], Tracing(NUMPY), frozenset())
        assert found.value.inputs == frozenset([0])
    with pytest.raises(ValueNeeded, match="the model draws random numbers, which a plan would repeat"):
        tracing.trace(lambda x: x + F.uniform((2,), backend=x.backend), [X], Tracing(NUMPY), frozenset())


def test_a_trace_keeps_what_depends_on_inputs() -> None:
    at = Tracing(NUMPY)

    def model(x: Any, k: Any, fixed: Any) -> Any:
        constant = F.exp(emberlet.asarray([2.0], dtype="float32", device=x.backend))
        assert x.backend.visible(constant) is constant and x.backend.visible(x) is None
        assert fixed.tolist() == [1.0] and k == 3
        return x + constant, x, [constant, {"a": x * 2.0, "n": None}]

    found = tracing.trace(model, [X, 3, tensor([1.0])], at, frozenset([2]))
    assert [c.op for c in found.calls] == ["binary", "binary"]
    assert [v.index for v in found.inputs] == [0]
    assert len(found.roots) == 3 and found.roots[1] is found.inputs[0]
    values = [v for c in found.calls for v in c.operands()]
    assert values == [found.inputs[0]] * 2
    again = assemble(found.structure, ["r0", "r1", "r2"])
    assert again[:2] == ("r0", "r1") and again[2][1] == {"a": "r2", "n": None}
    assert again[2][0].backend is NUMPY
    assert again[2][0] is not assemble(found.structure, ["r0", "r1", "r2"])[2][0]


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.name = "held"


def test_results_of_any_structure_are_put_together_again() -> None:
    for wrap, same in (
        (lambda x: x, lambda r: r == "r"), (lambda x: [x, 1], lambda r: r == ["r", 1]),
        (lambda x: (x,), lambda r: r == ("r",)), (lambda x: Pair(x, "b"), lambda r: r == Pair("r", "b")),
        (lambda x: {"k": (x, x)}, lambda r: r == {"k": ("r", "r")}), (lambda x: [x, b"b"], lambda r: r == ["r", b"b"]),
        (lambda x: [x, dtypes.int8, None, 1.5], lambda r: r == ["r", dtypes.int8, None, 1.5]),
        (Holder, lambda r: type(r) is Holder and (r.x, r.name) == ("r", "held")),
    ):  # fmt: skip
        found = tracing.trace(lambda x, wrap=wrap: wrap(x + 1.0), [X], Tracing(NUMPY), frozenset())
        assert len(found.roots) == 1
        assert same(assemble(found.structure, ["r"]))
    for odd in ({1, 2}, Holder, 1 + 2j):
        with pytest.raises(ValueNeeded, match=f"the model gives a {type(odd).__name__}, whose parts are not known"):
            tracing.trace(lambda x, odd=odd: (x, odd), [X], Tracing(NUMPY), frozenset())


def test_tensors_of_the_models_own_cannot_be_traced() -> None:
    with pytest.raises(ValueNeeded, match="it cannot be traced: "):
        tracing.trace(lambda x: x + tensor([1.0], backend=PYTHON), [X], Tracing(NUMPY), frozenset())


def test_a_tracing_backend_has_what_the_numpy_backend_has() -> None:
    at = Tracing(NUMPY)
    assert at.name == "numpy" and at.assign_in_place(X, 0, 1.0) is False
    assert hasattr(at, "matmul") and at.matmul is at.matmul  # looked up once
    for name in ("__nothing__", "no_such_primitive"):
        with pytest.raises(AttributeError, match=name):
            getattr(at, name)
    value = Value(None, 0, dtypes.float32, (1, 2), frozenset([0]))
    assert repr(value) == "float32 (1, 2)"
    inside = Tensor(Traced(value, X.data), dtypes.float32, (1, 2), at)
    assert tracing._recorded(inside) is value
    assert tracing._recorded([inside, (1, inside)]) == [value, (1, value)]
    plain = tracing._plain([inside, (inside, 2)])
    assert plain[0].backend is NUMPY and type(plain[1]) is tuple and plain[1][1] == 2
    mine = tensor([1.0], backend=PYTHON)
    assert tracing._plain(mine) is mine


def test_attributes_of_the_backend_that_are_no_operations_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NUMPY, "limit", 7, raising=False)
    assert Tracing(NUMPY).limit == 7


def test_operations_give_tensors_or_lists_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    at = Tracing(NUMPY)
    inside = Tensor(Traced(Value(None, 0, dtypes.float32, (1, 2), frozenset([0])), X.data), dtypes.float32, (1, 2), at)
    for out in (3, None, [X, 3], (X, None)):
        monkeypatch.setattr(type(NUMPY), "unary", lambda self, op, x, out=out: out)
        with pytest.raises(ValueNeeded, match="unary returns something other than a tensor"):
            at._call("unary", ("exp", inside), {})
    monkeypatch.setattr(type(NUMPY), "unary", lambda self, op, x: [x, (x, x)])
    found = at._call("unary", ("exp", inside), {})
    assert type(found) is list and type(found[1]) is tuple
    assert [t.data.value.index for t in (found[0], *found[1])] == [0, 1, 2]
    assert not at.calls[-1].single and len(at.calls[-1].results) == 3


@pytest.mark.parametrize(
    ("function", "ufunc"),
    [
        (lambda a, b: a + b, np.add),
        (lambda a, b: a - b, np.subtract),
        (lambda a, b: a * b, np.multiply),
        (lambda a, b: a / b, np.true_divide),
        (lambda a, b: a**b, np.power),
    ],
)
def test_arithmetic_of_two_operands_is_one_step_of_numpy(function: Any, ufunc: Any) -> None:
    given = [tensor(np.array(v, np.float32), backend=NUMPY) for v in ([1.5, 2.5], [2.0, 3.0])]
    plan: Any = compile(function, *given).plan()
    assert [step.function for step in plan.steps] == [ufunc]
