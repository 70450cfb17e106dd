"""Multipliers of few bits, which weights in NumPy plans take: levels are those of int64 sums times a float32."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.host.numpy_backend.compile import compile, layout, winograd

SHORT, LONG = 5 / 2**12, 1 / 700
ZERO = 3


class Layer(nn.Module):
    """uint8 of the sums of uint8 x, less a zero point, times an int8 weight, by a multiplier for each output."""

    def __init__(self, weight: Any, bias: Any, factors: Any, **options: Any) -> None:
        given = (emberlet.asarray(v, device="numpy") for v in (weight, bias, factors))
        self.weight, self.bias, self.factors = map(nn.Param, given)
        self.options = options

    def forward(self, x: Any) -> Any:
        weight, bias, factors = (p.val() for p in (self.weight, self.bias, self.factors))
        given = (x, np.float32(1), ZERO, weight, factors, 0)
        if len(weight.shape) == 2:
            return F.qgemm(x, np.float32(1), ZERO, weight, factors, 0, bias, np.float32(1), 100)
        return F.qlinear_conv(*given, np.float32(1), 100, bias, **self.options)


def wanted(sums: Any, factors: Any) -> Any:
    """Of int64 sums whose last axis has the outputs."""
    return np.clip(np.rint(sums.astype(np.float32) * factors.astype(np.float32)) + 100, 0, 255)


def convolved(x: Any, weight: Any, bias: Any, padding: int, groups: int) -> Any:
    """int64 sums (n, h, w, outputs)."""
    x = np.pad(x.astype(np.int64) - ZERO, ((0, 0), (0, 0), *((padding, padding),) * 2))
    seen = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))
    parts = zip(np.split(seen, groups, 1), np.split(weight.astype(np.int64), groups), strict=True)
    return np.concatenate([np.einsum("nchwij,ocij->nhwo", *both) for both in parts], -1) + bias


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).integers(-127, 128, shape).astype(np.int8)


def multiplied(plan: Any) -> int:
    """How many calls multiply elements."""
    return sum(getattr(step.function, "__name__", "") == "multiply" for step in plan.steps)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("shape", "weight", "padding", "groups"),
    [
        ((1, 3, 9, 8), (5, 3, 3, 3), 1, 1),
        ((2, 4, 6, 7), (6, 4, 1, 1), 0, 1),
        ((1, 6, 12, 11), (6, 1, 3, 3), 1, 6),
        ((1, 8, 5, 40), (4, 4, 3, 2), 0, 2),
    ],
)
def test_convolutions(
    shape: Any, weight: Any, padding: int, groups: int, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    monkeypatch.setattr(layout, "LARGE", 1 if last else 1 << 60)
    monkeypatch.setattr(layout, "SMALL", 0)
    w, bias = drawn(*weight), np.random.default_rng(1).integers(-3000, 3000, weight[0]).astype(np.int32)
    x = np.random.default_rng(2).integers(0, 256, shape).astype(np.uint8)
    x[0, :, :4], w[0] = 255, 127
    for factors, passes in ((SHORT * 2.0 ** -np.arange(weight[0]), 0), (np.full(weight[0], LONG), 1)):
        layer = Layer(w, bias, factors.astype(np.float32), padding=padding, groups=groups)
        made = compile(layer, g := emberlet.asarray(x, device="numpy"))
        found = np.moveaxis(np.asarray(made(g)), 1, -1)
        np.testing.assert_array_equal(found, wanted(convolved(x, w, bias, padding, groups), factors))
        assert multiplied(made.plan(g)) >= passes
        assert passes or not multiplied(made.plan(g))


@pytest.mark.parametrize("rows", [1, 4])
def test_products_of_matrices(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    w, bias = drawn(60, 7), np.random.default_rng(1).integers(-9000, 9000, 7).astype(np.int32)
    x = np.random.default_rng(rows).integers(0, 256, (rows, 60)).astype(np.uint8)
    for factor, passes in ((SHORT, 0), (LONG, 1)):
        factors = np.full(7, factor, np.float32)
        made = compile(Layer(w, bias, factors), given := emberlet.asarray(x, device="numpy"))
        sums = (x.astype(np.int64) - ZERO) @ w.astype(np.int64) + bias
        np.testing.assert_array_equal(np.asarray(made(given)), wanted(sums, factors))
        assert multiplied(made.plan(given)) == passes


@pytest.mark.parametrize("bits", [3, 9, 11, 13, 15, 17, 20])
def test_sums_that_floats_do_not_hold_once_multiplied_are_multiplied_last(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 24 bits for the largest sum and the multiplier, whose level is in the middle between two others."""
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    odd = (1 << bits) - 1
    x = np.array([[255, 255, 0, 1], [255, 1, 255, 0]], np.uint8)
    w = np.array([[127, -127, 1, 2]] * 2 + [[-127, 1, 3, 5], [1, 1, 1, 1]], np.int8)
    bias = np.array([5, 1, -4, 0], np.int32)
    sums = (x.astype(np.int64) - ZERO) @ w.astype(np.int64) + bias
    factors = np.float32(odd) * np.float32(2.0 ** -(bits + 9)) * np.ones(4, np.float32)
    made = compile(Layer(w, bias, factors), given := emberlet.asarray(x, device="numpy"))
    np.testing.assert_array_equal(np.asarray(made(given)), wanted(sums, factors))
    assert multiplied(made.plan(given)) == (127 * 2 * 255 * odd >= 1 << 24)


def test_products_of_fewer_lines_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Winograd's sums are larger: the weights take a multiplier only if these fit, too."""
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    for name, value in {"CHANNELS": 1, "LARGE": 0, "POSITIONS": 1}.items():
        monkeypatch.setattr(winograd, name, value)
    monkeypatch.setattr(layout, "LARGE", 1)
    used: list[Any] = []
    conv = winograd.conv
    monkeypatch.setattr(winograd, "conv", lambda *args: used.append(args) or conv(*args))
    w, bias = drawn(4, 6, 3, 3), np.array([7, -900, 4, 0], np.int32)
    x = np.random.default_rng(5).integers(0, 256, (1, 6, 9, 10)).astype(np.uint8)
    for factor in (3 / 2**9, 31 / 2**12, 63 / 2**13, 127 / 2**14, LONG):
        factors = np.full(4, factor, np.float32)
        made = compile(Layer(w, bias, factors, padding=1), given := emberlet.asarray(x, device="numpy"))
        found = np.moveaxis(np.asarray(made(given)), 1, -1)
        np.testing.assert_array_equal(found, wanted(convolved(x, w, bias, 1, 1), factors))
    assert used


def test_a_float_bias_is_added_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_PLANS", "always")
    draw = np.random.default_rng(3)
    w, bias = drawn(90, 8), draw.normal(size=8).astype(np.float32)

    class Real(Layer):
        def forward(self, x: Any) -> Any:
            weight, shift, scales = (p.val() for p in (self.weight, self.bias, self.factors))
            return F.matmul_integer_to_float(x, weight, np.float32(0.375), scales, ZERO, None, shift)

    x = draw.integers(0, 256, (1, 90)).astype(np.uint8)
    made = compile(Real(w, bias, np.full(8, 1 / 32, np.float32)), given := emberlet.asarray(x, device="numpy"))
    sums = (x.astype(np.int64) - ZERO) @ w.astype(np.int64)
    np.testing.assert_array_equal(np.asarray(made(given)), sums.astype(np.float32) * np.float32(0.375 / 32) + bias)
    assert not multiplied(made.plan(given))
