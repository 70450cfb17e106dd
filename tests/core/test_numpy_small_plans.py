"""Plans of small models on NumPy, where a call takes longer than what it computes: which calls they do without."""

from __future__ import annotations

import warnings
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor

RANDOM = np.random.default_rng(3)


def drawn(*shape: int) -> Tensor:
    return emberlet.asarray(RANDOM.standard_normal(shape).astype(np.float32), backend="numpy")


class Held(Module):
    """A function of an input and of tensors that the module holds."""

    def __init__(self, function: Any, *tensors: Tensor) -> None:
        self.function = function
        self.held = [Param(tensor) for tensor in tensors]

    def forward(self, x: Tensor) -> Any:
        return self.function(x, *(param.val() for param in self.held))


def wide(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("sizes", [(7,), (2,), (5, 8), (1, 4), (3, 4, 2), (12, 13)])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_biases_of_small_layers_take_no_call(sizes: tuple[int, ...], channels: int) -> None:
    kernel = [min(3, n) for n in sizes]

    def function(x: Any, first: Any, one: Any, second: Any, two: Any) -> Any:
        y = F.relu(F.conv(x, first, one, padding=[(1, 1)] * len(sizes)))
        return F.reshape(F.relu(F.conv(y, second, two, stride=2)), (1, -1))

    example = drawn(1, channels, *sizes)
    tensors = drawn(6, channels, *kernel), drawn(6), drawn(5, 6, *kernel), drawn(5)
    weight, bias = drawn(function(example, *tensors).shape[1], 4), drawn(4)

    def whole(x: Any, weight: Any, bias: Any, *convolutions: Any) -> Any:
        return F.linear(function(x, *convolutions), weight, bias, layout="burn")

    compiled = compile(Held(whole, weight, bias, *tensors), example)
    assert "add(" not in repr(compiled.plan())
    for x in (example, drawn(*example.shape)):
        want = wide(function(*(emberlet.asarray(wide(t), backend="numpy") for t in (x, *tensors))))
        np.testing.assert_allclose(wide(compiled(x)), want @ wide(weight) + wide(bias), rtol=1e-5, atol=1e-5)


INDICES = [[0, 1, 2, 1, 0], [4, 3, 2, 1, 0], [-1, -2, 0, 1], [2, 2, 2, 3], [0, 2, 4], [3, 0, 4, 1, 1, 0], [1, 0], [4]]


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("axis", [0, 1])
def test_constant_indices_are_copied_in_runs(indices: list[int], axis: int) -> None:
    x = drawn(5, 5)
    compiled = compile(lambda x: F.take(x, F.asarray(indices, backend=x.backend), axis) + 1.0, x)
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.take(np.asarray(x), indices, axis) + np.float32(1))


def test_nothing_is_computed_with_one_element_or_the_number_1() -> None:
    def function(x: Tensor) -> Tensor:
        return F.relu(F.sum(x, axis=1) / 1.0 * 1.0)

    x = drawn(6, 1)
    plan = compile(function, x).plan()
    assert len(plan.steps) == 1, plan
    np.testing.assert_array_equal(np.asarray(compile(function, x)(x)), np.maximum(np.asarray(x)[:, 0], 0))


def test_callers_keep_their_handling_of_overflow() -> None:
    x = emberlet.asarray(np.full((3, 3), 3e38, np.float32), backend="numpy")
    compiled = compile(lambda x: x * 2.0 * x - x, x)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(np.asarray(compiled(x))).all()
        assert set(np.geterr().values()) == {"raise"}


@pytest.mark.parametrize("weight", [[[0.0]], [[0.0, 0.0, 0.0]]])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_products_with_one_element_keep_nan(weight: list[list[float]], value: float) -> None:
    x = emberlet.asarray(np.full((3, 1), value, np.float32), backend="numpy")
    model = Held(lambda x, w: F.sum(x @ w + 1.0, axis=1), emberlet.asarray(np.float32(weight), backend="numpy"))
    assert np.isnan(np.asarray(compile(model, x)(x))).all()
