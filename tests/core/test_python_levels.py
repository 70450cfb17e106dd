"""Quantizing and dequantizing in plain Python, beside formulas in NumPy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from support.rows import every

X = (np.random.default_rng(0).standard_normal((4, 12, 20)) * 4).astype(np.float32)
X.flat[:10] = [np.nan, np.inf, -np.inf, -0.0, 1e38, -1e38, 0.25, 0.75, -0.25, 1.25]
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15)}


def formulas(scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        q = np.clip(np.rint(X / scale) + zero, low, high)
    q[np.isnan(q)] = low
    return q.astype(np.int64), ((q - zero) * scale).astype(np.float32)


@every("dtype, scale, share", [(d, s, z) for d in RANGES for s in (0.5, 0.03, 1e-9, 7e8) for z in (None, 0, 0.4, 1)])
def test_levels_of_a_tensor(dtype: str, scale: float, share: float | None) -> None:
    low, high = RANGES[dtype]
    zero = None if share is None else int(low + share * (high - low))
    q = F.quantize_linear(emberlet.asarray(X, backend="python"), scale, zero, dtype=dtype)
    real = F.dequantize_linear(q, scale, zero)
    levels, numbers = formulas(np.float32(scale), zero or 0, low, high)
    np.testing.assert_array_equal(np.array(q.tolist()), levels)
    np.testing.assert_array_equal(np.array(real.tolist(), np.float32), numbers)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_levels_along_an_axis(axis: int) -> None:
    n = X.shape[axis]
    scale = np.linspace(0.1, 0.6, n, dtype=np.float32)
    zero = np.linspace(0, 255, n).astype(np.uint8)
    parts = [emberlet.asarray(a, backend="python") for a in (scale, zero)]
    q = F.quantize_linear(emberlet.asarray(X, backend="python"), *parts, axis=axis)
    real = F.dequantize_linear(q, *parts, axis=axis)
    shape = [n if i == axis else 1 for i in range(3)]
    levels, numbers = formulas(scale.reshape(shape), zero.reshape(shape).astype(np.float32), 0, 255)
    np.testing.assert_array_equal(np.array(q.tolist()), levels)
    np.testing.assert_array_equal(np.array(real.tolist(), np.float32), numbers)


CHAINS: dict[str, Any] = {
    "hard swish": lambda x: F.hard_swish(x),
    "numbers on both sides": lambda x: 1.5 - F.minimum(2.0, x * 0.25) / 3,
    "exp": lambda x: F.exp(x) + x,
    "pow": lambda x: F.abs(x) ** 0.5,
    "another tensor's levels": lambda x: x + F.dequantize_linear(F.quantize_linear(x * 2, 0.1, 7), 0.1, 7),
    "moved": lambda x: x.permute(2, 0, 1) * 0.5 + x.permute(2, 0, 1),
    "parts": lambda x: x[1:, ::2, -1:] - x[:-1, 1::2, :1],
    "rows": lambda x: x + x[:1, :, :1],
    "in another shape": lambda x: (x.reshape((24, -1)) * x.reshape((24, -1))).sum(axis=0),
    "compared": lambda x: emberlet.where(x > 0.5, x, 0.0),
    "picked": lambda x: emberlet.take(x, emberlet.asarray([2, 0, 2], backend=x.backend), axis=1),
    "divided by zero": lambda x: 1.0 / x,
}


@every("name", CHAINS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_functions_of_levels_are_those_of_their_floats(name: str, dtype: str) -> None:
    zero = RANGES[dtype][0] + 90
    q = (np.arange(960) * 7 % 256 + RANGES[dtype][0]).astype(dtype).reshape(4, 12, 20)
    real = ((q.astype(np.float32) - zero) * np.float32(0.03)).astype(np.float32)
    x = F.dequantize_linear(emberlet.asarray(q, backend="python"), 0.03, zero)
    with np.errstate(all="ignore"):
        want = np.asarray(CHAINS[name](emberlet.asarray(real, backend="numpy")))
    found = CHAINS[name](x)
    np.testing.assert_allclose(np.array(found.tolist(), np.float32), want, rtol=1e-6)
    levels = F.quantize_linear(CHAINS[name](x), 0.02, zero, dtype=dtype)
    theirs = F.quantize_linear(emberlet.asarray(found.tolist(), backend="python"), 0.02, zero, dtype=dtype)
    assert levels.tolist() == theirs.tolist()
    np.testing.assert_array_equal(np.array(x.tolist(), np.float32), real)


def test_floats_of_levels_are_assigned_to_and_shared_as_others_are() -> None:
    q = emberlet.asarray(np.arange(600, dtype=np.uint8).reshape(20, 30), backend="python")
    x = F.dequantize_linear(q, 0.5, 3)
    want = ((np.arange(600, dtype=np.uint8).reshape(20, 30).astype(np.float32)) - 3) * 0.5
    half, part = x * 0.5, x[2:4]
    x[0, 1:3] = 99.0
    changed = want.copy()
    changed[0, 1:3] = 99
    for found, one in ((x, changed), (half, want * 0.5), (part, want[2:4]), (F.dequantize_linear(q, 0.5, 3), want)):
        np.testing.assert_array_equal(np.asarray(found), one)
        np.testing.assert_array_equal(np.from_dlpack(found), one)
        assert found.tolist() == one.tolist()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(half)).tolist(), (want * 0.5).tolist())
    np.testing.assert_array_equal(np.array(half.to("numpy").tolist()), want * 0.5)


def test_dequantized_numbers_are_of_the_integers_and_scales_that_there_were() -> None:
    for count in (8, 2000):
        levels = np.arange(count).astype(np.int8)
        x, scale, zero = (
            emberlet.asarray(a, backend="python", copy=True) for a in (levels, np.float32([0.5]), np.int8([3]))
        )
        found, less = F.dequantize_linear(x, scale, zero), x.backend.centered_levels(x, zero)
        for given in (x, scale, zero):
            given[...] = 113
        want = levels.astype(np.int32) - 3
        np.testing.assert_array_equal(np.asarray(less), want)
        np.testing.assert_array_equal(np.asarray(found), want * np.float32(0.5))


@pytest.mark.parametrize("bits", [8, 4])
def test_a_layer_keeps_its_weight_as_floats_until_that_changes(bits: int) -> None:
    draw = np.random.default_rng(bits)
    model = nn.Linear(64, 8, backend="python")
    model.weight.set(emberlet.asarray(draw.normal(size=(64, 8)).astype(np.float32), device="python"))
    layer = nn.Sequential(model)
    layer.quantize_weights(bits=bits, level=32)
    weight = layer[0].weight
    x = emberlet.asarray(draw.normal(size=(1, 64)).astype(np.float32), device="python")

    def product() -> Any:
        """By the weight of a fresh copy, which keeps nothing yet."""
        return np.asarray(x) @ np.asarray(copy.deepcopy(weight).val())

    np.testing.assert_allclose(np.asarray(layer(x)), product() + np.asarray(layer[0].bias.val()), atol=1e-5)
    given = weight.val()
    given[...] = 0.0  # of the caller alone
    assert np.asarray(weight.val()).any()
    for change in (
        lambda: weight.set(emberlet.asarray(draw.normal(size=(64, 8)).astype(np.float32), device="python")),
        lambda: weight.scale.set(weight.scale.val() * 2.0),
        lambda: weight.values.val().__setitem__(0, 7),
    ):
        before = np.asarray(layer(x)).copy()
        change()
        np.testing.assert_allclose(np.asarray(layer(x)), product() + np.asarray(layer[0].bias.val()), atol=1e-5)
        assert not np.allclose(np.asarray(layer(x)), before)
