"""Models compiled on NumPy: arguments of every kind, models without a plan and why, and how many plans there are.
The contract holds results, owners, threads and interrupts."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.errors import BackendError, EmberletError
from emberlet.host.numpy_backend.compile import compile
from emberlet.host.numpy_backend.compile import plan as plans
from emberlet.model import Model
from emberlet.tensor import Tensor

CHOOSE = np.random.default_rng(17)


def drawn(*shape: int, dtype: str = "float32") -> Tensor:
    values = CHOOSE.standard_normal(shape) * 3
    return emberlet.asarray(values.astype(dtype), backend="numpy")


def same(found: Any, want: Any) -> None:
    assert found.dtype is want.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(want))


def near(found: Any, want: Any) -> None:
    """A plan lays products out in its own way, so that BLAS may add in another order."""
    assert found.dtype is want.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-5, atol=1e-5)


class Net(Model):
    INPUTS = (("image", "float32", ("batch", 1, 8, 8)),)

    def __init__(self, backend: Any = None) -> None:
        self.conv = nn.Conv2d(1, 4, kernel_size=(3, 3), padding=((1, 1), (1, 1)), backend=backend)
        self.dense = nn.Linear(64, 5, backend=backend)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.conv(image))
        x = F.max_pool2d(x, kernel_size=(2, 2), stride=(2, 2))
        return self.dense(F.reshape(x, (x.shape[0], -1)))


@pytest.fixture
def net() -> Net:
    return Net(get_backend("numpy"))


def test_inputs_are_checked_and_taken_as_the_model_takes_them(net: Net) -> None:
    compiled = net.compile(backend="numpy")
    image = drawn(2, 1, 8, 8)
    want = net(image)
    for given in (np.asarray(image), image.to("python"), image.tolist()):
        near(compiled(given), want)
    near(compiled(image=image), want)
    near(compiled({"image": np.asarray(image)}), want)
    for wrong in ([drawn(2, 1, 8, 7)], [drawn(2, 1, 8, 8, dtype="float64")], [], [image, image]):
        with pytest.raises(EmberletError) as said:
            net(*wrong)
        with pytest.raises(type(said.value)) as found:
            compiled(*wrong)
        assert str(found.value) == str(said.value)


def test_a_small_input_that_decides_what_is_computed_has_a_plan_for_each_value() -> None:
    def function(x: Tensor, mode: Tensor) -> Tensor:
        return F.exp(x) if mode == 1 else F.negative(x)

    x = drawn(4)
    one, two = emberlet.asarray(1, backend="numpy"), emberlet.asarray(2, backend="numpy")
    compiled = compile(function, x, one)
    for mode in (one, two, one, two):
        same(compiled(x, mode), function(x, mode))
    assert compiled.cut is None and len(compiled._plans) == 2
    for n in range(9):  # one that counts, for example, would never stop
        mode = emberlet.asarray(n, backend="numpy")
        same(compiled(x, mode), function(x, mode))
    assert "keeps changing" in str(compiled.cut)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: F.exp(x) if F.sum(x).item() > 0 else F.negative(x), "asks for the elements of"),
        (lambda x: F.nonzero(x > 0)[0], "asks for the elements of"),
        (lambda x: _noisy(x), "random numbers"),
        (lambda x: F.astype(x, "string"), "strings"),
    ],
)
def test_a_model_without_a_plan_runs_as_it_is_and_says_why(function: Any, why: str) -> None:
    compiled = compile(function, drawn(40))
    assert why in str(compiled.cut) and why in repr(compiled)
    with pytest.raises(BackendError, match=why):
        compiled.plan()
    x = drawn(40)
    if why != "random numbers":
        same(compiled(x), function(x))
    else:
        assert np.any(np.asarray(compiled(x)) != np.asarray(compiled(x)))


def _noisy(x: Tensor) -> Tensor:
    from emberlet.functional.randomness.draws import random_bits

    return x + F.astype(random_bits(x.shape, backend=x.backend), "float32")


@pytest.mark.parametrize("other", [range(3), 1j, {1, 2}, Tensor], ids=["range", "complex", "set", "class"])
def test_a_result_whose_parts_are_not_known_is_returned_by_the_model_itself(other: object) -> None:
    def function(x: Tensor) -> tuple[Tensor, object]:
        return F.exp(x), other

    x = drawn(3)
    compiled = compile(function, x)
    first, second = compiled(x)
    same(first, F.exp(x))
    assert second is other
    assert f"returns a {type(other).__name__}, whose parts are not known" in str(compiled.cut)


def test_a_list_or_nothing_for_an_input_needs_no_plan() -> None:
    def function(x: Tensor, others: Any = None) -> Tensor:
        return x if others is None else x + others[0]

    x = drawn(3)
    compiled = compile(function)
    same(compiled(x, None), x)
    for given in ([x], (x,)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            same(compiled(x, given), x + x)
        assert [str(w.message) for w in heard if "is a list" in str(w.message)] == [str(w.message) for w in heard]
        assert len(heard) == (type(given) is list)  # it is said once
    same(compiled(x, None), x)
    assert compiled.cut is None and len(compiled.plan(x, None).steps) == 0
    with pytest.raises(BackendError, match="is a list"):
        compile(function).plan(x, [x])


def test_a_function_with_a_tensor_of_its_own_runs_as_it_is() -> None:
    fixed = drawn(3)
    compiled = compile(lambda x: x + fixed, drawn(3))
    x = drawn(3)
    same(compiled(x), x + fixed)
    assert "neither its argument nor a parameter" in str(compiled.cut) and "Param of a module" in str(compiled.cut)


def test_it_prints_is_pickled_and_gives_its_memory_back(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    assert "NumPy calls for (float32 (1, 1, 8, 8))" in repr(compiled)
    assert "matmul" in repr(compiled.plan()) and "bytes" in repr(compiled.plan())
    again = pickle.loads(pickle.dumps(compiled))
    near(again(image), net(image))
    compiled.release()
    assert "no plan yet" in repr(compiled)
    near(compiled(image), net(image))


def test_no_call_warns(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    infinite = compile(lambda x: F.log(x) / (x - x), image)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(image)
        infinite(image)


def test_later_values_of_a_parameter_of_the_model_are_not_its_own(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    want = compiled(image)
    net.dense.bias.set(net.dense.bias.val() + 1)
    same(compiled(image), want)


def test_buffers_are_shared_by_what_is_not_needed_at_once() -> None:
    class Deep(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(20):
                x = F.permute_dims(F.exp(x) @ x, (1, 0)) * 0.001
            return x

    x = drawn(64, 64)
    compiled = Deep().compile(x, backend="numpy")
    assert compiled.plan().nbytes <= 5 * x.nbytes
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(Deep()(x)), rtol=1e-4)
    assert len(plans.Plan.__doc__ or "") > 0


def test_other_backends_are_refused() -> None:
    with pytest.raises(BackendError, match="numpy"):
        compile(lambda x: x, backend="python")


def test_arrays_are_taken_without_tensors_only_where_numpy_has_their_dtype():
    """An array of objects may hold anything, so it becomes a Tensor, which checks that the elements are strings."""
    for values, dtype, native in (
        ([1.0, 2.0], "float32", True),
        ([True, False], "bool", True),
        (["a", "b"], "string", False),
    ):
        compiled = compile(lambda x: emberlet.concat([x, x], axis=0))
        x = emberlet.asarray(values, dtype=dtype, backend="numpy")
        assert compiled(x).tolist() == values * 2
        found = compiled.arrays([np.array(values, dtype if native else object)])
        assert (found is not None) == native
        if found is not None:
            assert found[0].tolist() == values * 2


def test_arrays_of_another_number_dtype_or_shape_are_left_to_the_model():
    compiled = compile(lambda x, y: x + y, backend="numpy")
    x = np.ones((2, 3), np.float32)
    assert compiled(*(emberlet.asarray(v, backend="numpy") for v in (x, x))).shape == (2, 3)
    found = compiled.arrays([x, x])
    assert found is not None and found[0].tolist() == (x + x).tolist()
    for given in ([], [x], [x, x, x], [x, x.astype(np.float64)], [x, x[:1]], [x, x.tolist()]):
        assert compiled.arrays(given) is None
