"""What a generated model's arguments become, case by case: names, dtypes, shapes, backends."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import DTypeError, EmberletError
from emberlet.host.models.inputs import bind, fits, parameters_of
from emberlet.model import Model
from emberlet.param import Param
from emberlet.tensor import Tensor

PYTHON, NUMPY = get_backend("python"), get_backend("numpy")


class Plain(Model):
    """A model without parameters, so its backend is that of its arguments."""

    INPUTS: Any = (("a.x", "float32", ("n", 2)), ("b", "int64", ("n",)))

    def forward(self, a_x: Any, b: Any) -> Any:
        return a_x, b


class Gathered(Model):
    INPUTS: Any = (("ids", "int64", None), ("past.0/key", "float32", None), ("past-1", "float32", None))

    def forward(self, ids: Any, *past: Any) -> Any:
        return ids, past


def of(*inputs: Any, **members: Any) -> Any:
    """A model with these INPUTS."""
    names = ", ".join(f"x{i}" for i in range(len(inputs)))
    space: dict[str, Any] = {}
    exec(f"def forward(self, {names}): return None", space)
    return type("Made", (Model,), {"INPUTS": inputs, "forward": space["forward"], **members})()


def tensor(values: Any, dtype: Any = dtypes.float32, backend: Any = NUMPY) -> Tensor:
    return emberlet.asarray(values, dtype=dtype, device=backend)


X, B = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([5, 6], dtypes.int64)


# -- names


def test_collected_parameters_are_named_as_the_inputs() -> None:
    assert parameters_of(Plain()) == ["a_x", "b"]
    assert parameters_of(Plain) == ["a_x", "b"]
    assert parameters_of(Gathered()) == ["ids", "past_0_key", "past_1"]
    assert parameters_of(Gathered) == ["ids", "past_0_key", "past_1"]

    class Bare:
        def forward(self, ids: Any, *rest: Any, extra: Any = 1) -> None: ...

    assert parameters_of(Bare()) == ["ids", "extra"]
    Bare.INPUTS = None  # type: ignore[attr-defined]
    assert parameters_of(Bare()) == ["ids", "extra"]


# -- arguments by position, by name and as one dict


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((X, B, X), {}, "; found 3 inputs"), ((X, B), {"b": B}, "; 'b' is given twice"),
        ((X,), {"a.x": X}, "; 'a.x' is given twice"), ((), {"a.x": X, "a_x": X}, "; 'a_x' is given twice"),
        ((X,), {"c": B}, "; there is no input 'c'"), ((X,), {}, "; 'b' missing"),
        ((), {}, "; 'a.x' and 'b' missing"), (({},), {}, "; 'a.x' and 'b' missing"),
    ],
)  # fmt: skip
def test_arguments_that_are_too_many_unknown_or_missing(args: Any, kwargs: Any, said: str) -> None:
    with pytest.raises(EmberletError) as found:
        bind(Plain(), args, kwargs)
    assert str(found.value) == "Plain takes a.x: float32 (n, 2), b: int64 (n,)" + said


def test_a_model_without_inputs_says_so() -> None:
    class Nothing(Model):
        INPUTS: Any = ()

        def forward(self) -> Any:
            return None

    assert bind(Nothing(), (), {}) == []
    with pytest.raises(EmberletError, match=r"^Nothing takes no inputs; found 1 inputs$"):
        bind(Nothing(), (X,), {})


def test_a_dict_is_the_input_where_the_model_takes_one() -> None:
    given = {"a": 1.0}
    assert bind(of(("x", "dict of string to float32", None)), (given,), {}) == [given]
    one = bind(of(("x", "float32", None)), ({"x": X},), {})
    assert one[0] is X
    two = of(("x", "dict of string to float32", None), ("y", "float32", None))
    assert bind(two, ({"x": given, "y": X},), {}) == [given, X]
    with pytest.raises(EmberletError, match="'y' missing"):
        bind(of(("x", "float32", None), ("y", "float32", None)), ({"x": X},), {})
    with_name = bind(two, (given,), {"y": X})
    assert with_name[0] is given


# -- the fast path


@pytest.mark.parametrize(
    ("args", "fit"),
    [
        ((X, B), True), ((X,), False), ((X, B, B), False), ((X.data, B), False), ((B, X), False),
        ((X, tensor([5, 6], dtypes.int32)), False), ((X, tensor([5], dtypes.int64)), False),
        ((tensor([[1.0], [2.0]]), B), False), ((tensor([1.0, 2.0]), B), False),
        ((tensor([[[1.0, 2.0]], [[3.0, 4.0]]]), B), False),
    ],
)  # fmt: skip
def test_tensors_fit_by_dtype_rank_and_lengths(args: Any, fit: bool) -> None:
    assert fits(Plain.INPUTS, args) is fit


def test_lengths_fit_by_number_by_name_or_any() -> None:
    y = tensor([[0.0] * 3] * 2)
    for shape, fit in (
        (None, True), ((None, None), True), ((2, 3), True), (("a", "b"), True), (("a", None), True), ((2, 2), False),
        ((3, 3), False), (("a", "a"), False), ((2,), False), (("a", 3, 1), False),
    ):  # fmt: skip
        assert fits([("y", "float32", shape)], (y,)) is fit
    assert fits([("y", "float32", ("a", 3)), ("z", "float32", (2, "a"))], (y, y)) is False
    assert fits([("y", "float32", ("a", 3)), ("z", "float32", ("a", "b"))], (y, y)) is True


# -- backends


def test_arrays_and_tensors_go_to_the_models_backend() -> None:
    other = tensor([[1.0, 2.0]], backend=PYTHON)
    x, b = bind(Plain(), (np.float32([[1, 2]]), [5]), {})
    assert x.backend is b.backend is get_backend(None)
    x, b = bind(Plain(), (other, [5]), {})  # that of the first Tensor
    assert x is other and b.backend is PYTHON
    x, b = bind(of(*Plain.INPUTS, backend=NUMPY), ([[1.0, 2.0]], [5]), {})
    assert x.backend is b.backend is NUMPY
    weighted = of(*Plain.INPUTS, named_params=lambda self: iter([("w", X)]))
    x, b = bind(weighted, (other, [5]), {})
    assert x.backend is b.backend is NUMPY
    assert x.tolist() == [[1.0, 2.0]]


def test_with_a_backend_tensors_stay_where_they_are() -> None:
    other = tensor([[1.0, 2.0]], backend=PYTHON)
    x, b = bind(Plain(), (other, np.int64([5])), {}, NUMPY)
    assert x is other and b.backend is NUMPY
    fitting = (X, B)
    assert bind(Plain(), fitting, {}, NUMPY) == list(fitting)


# -- values


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("float32", "a", "x: float32: found a text"), ("float32", [1.0, ["a"]], "x: float32: found a text"),
        ("int64", 1.5, "x: int64: found numbers that are not integers"),
        ("int64", [[1], (2, 2.5)], "x: int64: found numbers that are not integers"),
        ("bool", 1.5, "x: bool: found numbers that are not integers"),
    ],
)  # fmt: skip
def test_values_of_another_kind_are_refused(kind: str, value: Any, said: str) -> None:
    with pytest.raises(DTypeError) as found:
        bind(of(("x", kind, None)), (value,), {})
    assert str(found.value) == said


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("float32", 1), ("float32", True), ("float32", [1, 2.5]), ("float64", (1.0, 2.0)), ("int64", 3),
        ("int8", [[1, -2]]), ("bool", [True, False]), ("string", "a"), ("string", ["a", "b"]),
        ("string", np.array(["a", "b"])), ("string", np.array(["a", "b"], dtype=object)), ("string", ("a",)),
    ],
)  # fmt: skip
def test_values_become_tensors_of_the_inputs_dtype(kind: str, value: Any) -> None:
    found = bind(of(("x", kind, None)), (value,), {})[0]
    assert isinstance(found, Tensor) and found.dtype.name == kind
    assert found.tolist() == np.asarray(value).tolist()


def test_what_is_no_tensor_stays_and_arrays_inside_become_tensors() -> None:
    model = of(("x", "list of float32 (n,)", None))
    found = bind(model, ([np.float32([1]), X],), {})[0]
    assert type(found) is list and isinstance(found[0], Tensor) and found[1] is X
    assert type(bind(model, ((np.float32([1]),),), {})[0]) is list
    optional = of(("x", "optional float32", None))
    assert bind(optional, (None,), {}) == [None]
    kept = [np.float32([1])]
    assert bind(optional, (kept,), {})[0] is kept
    assert isinstance(bind(optional, (np.float32([1]),), {})[0], Tensor)
    assert bind(optional, (X,), {})[0] is X


def test_shapes_that_match_are_taken() -> None:
    for shape in (None, (None, None), (2, 2), ("n", "n"), ("n", 2)):
        assert bind(of(("x", "float32", shape)), (X,), {})[0] is X
    assert bind(of(("x", "float32", None)), (np.float32(3),), {})[0].shape == ()


def test_an_array_of_another_dtype_is_refused_with_the_way_out() -> None:
    with pytest.raises(DTypeError) as found:
        bind(of(("x", "float32", (None,))), (np.float64([1]),), {})
    assert str(found.value) == ("the model takes x: float32 (?,), found float64 (1,); .astype('float32') converts it")


# -- calls, one after the other


def test_each_call_is_checked_whatever_was_called_before() -> None:
    """A call that fits goes straight to `forward`, which may not be asked of a model for what another one takes."""
    wide, free = of(("x0", "float32", ("n", 3))), type("Free", (Plain,), {"forward": lambda self, a_x, b: (a_x, b)})()
    other = tensor([[1.0, 2.0]], backend=PYTHON)
    for _ in range(3):
        assert free(X, B)[0] is X and Plain()(X, b=B)[1] is B
        for call in (lambda: free(X, tensor([5], dtypes.int64)), lambda: wide(X), lambda: free(B, X)):
            with pytest.raises(EmberletError):
                call()
        assert Plain()(other, [5])[1].backend is PYTHON
        free.w = Param(X)  # now its arguments go where its parameter lies
        assert free(other, tensor([5], dtypes.int64, PYTHON))[0].backend is NUMPY
        free.w = Param(other)
        assert free(other, tensor([5], dtypes.int64, PYTHON))[0] is other
        free.w = None
