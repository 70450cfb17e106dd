"""Plans of NumPy calls for quantized networks: fewer calls, the same levels as without a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import asarray
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile
from support.rows import every

RNG = np.random.default_rng(5)
LEVELS = np.arange(256)


def quantized(x: Any, scale: float, zero: int) -> Any:
    """x on a grid of 256 levels, as floats."""
    grid = asarray(np.float32(scale), device=x.backend), asarray(np.uint8(zero), device=x.backend)
    return F.dequantize_linear(F.quantize_linear(x, *grid), *grid)


def both(function: Any, *arrays: Any) -> tuple[Any, Any, str]:
    """What a function gives with and without a plan, and the plan."""
    given = [asarray(a) for a in arrays]
    plan = compile(function, *given).plan()
    result = plan.finish(plan.arrays([x.data for x in given]))
    return np.asarray(result), np.asarray(function(*given)), repr(plan)


@every(
    "kernel, stride, padding, dilation, size",
    [
        ((3, 3), 1, 1, 1, (8, 8)),
        ((5, 5), 2, 2, 1, (9, 7)),
        ((3, 1), (2, 1), (1, 0), 1, (6, 5)),
        ((1, 3), 1, ((0, 0), (2, 1)), 2, (4, 9)),
        ((3, 3), 1, 0, 2, (8, 6)),
        ((2, 4), (3, 2), ((1, 0), (0, 3)), 1, (7, 8)),
    ],
)
def test_depthwise_convolutions_of_levels(kernel: Any, stride: Any, padding: Any, dilation: int, size: Any) -> None:
    weight, bias = RNG.normal(size=(6, 1, *kernel)).astype(np.float32), RNG.normal(size=6).astype(np.float32)
    x = RNG.normal(size=(2, 6, *size)).astype(np.float32)
    x[0, 0, 0, :2] = np.inf, np.nan  # of which levels are finite

    def function(x: Any) -> Any:
        x = quantized(x, 0.03, 120)
        parameters = [asarray(p, device=x.backend) for p in (weight, bias)]
        return F.conv(x, *parameters, stride=stride, padding=padding, dilation=dilation, groups=6)

    found, wanted, plan = both(function, x)
    assert np.abs(found - wanted).max() < 1e-5
    assert f"float32[2, 6, {wanted.shape[2]}, {kernel[0]}, {size[1]}]" in plan  # lines, not elements, are copied


def test_infinity_stays_in_the_windows_that_see_it() -> None:
    weight = np.ones((1, 1, 3, 3), np.float32)
    x = np.zeros((1, 1, 8, 8), np.float32)
    x[..., 0, 0] = np.inf
    found, wanted, _ = both(
        lambda x: F.conv(F.relu(x), asarray(weight, device=x.backend), None, padding=1, groups=1), x
    )
    assert np.array_equal(found, wanted) and np.isinf(found).sum() == 4


SCALES = [(0.03, 0.02, 0.05), (0.0371246, 0.0371246, 0.07), (1 / 64, 1 / 32, 1 / 16), (0.02801513671875, 0.5, 0.3)]


@every("scales, op", [(scales, op) for scales in SCALES for op in ("add", "mul")])
def test_sums_and_products_of_levels_are_the_same_levels(scales: tuple[float, float, float], op: str) -> None:
    first, second, third = scales
    x = ((LEVELS[:, None] - 100) * np.float32(first)).astype(np.float32)
    y = ((LEVELS - 30) * np.float32(second)).astype(np.float32)
    zero = 90 if op == "add" else 0

    def function(x: Any, y: Any) -> Any:
        a, b = quantized(x, first, 100), quantized(y, second, 30)
        return quantized(a + b if op == "add" else a * b, third, zero)

    found, wanted, _ = both(function, x, y)
    assert np.array_equal(found, wanted)
    assert len(np.unique(found)) > 100


@pytest.mark.parametrize("scale", [0.055572509765625, 0.0231, 1 / 32])
@pytest.mark.parametrize("step", [0.035491943359375, 0.0213, 1 / 64])
def test_a_hard_swish_of_many_levels_is_the_same_levels(scale: float, step: float) -> None:
    x = np.tile((LEVELS - 99) * np.float32(scale), 64).astype(np.float32)

    def function(x: Any) -> Any:
        return quantized(F.hardswish(quantized(x, scale, 99)), step, 11)

    found, wanted, plan = both(function, x)
    assert np.array_equal(found, wanted) and plan.count("multiply") < 5


def test_a_gelu_that_is_rounded_in_between_is_looked_up() -> None:
    x = np.tile((LEVELS - 99) * np.float32(0.037), 64).astype(np.float32)

    def function(x: Any) -> Any:
        x = quantized(x, 0.037, 99)
        bent = quantized(quantized(F.erf(x * 0.70710677), 0.0078, 128) + 1.0, 0.0078, 0)
        return quantized(quantized(x * 0.5, 0.018, 126) * bent, 0.0191, 9)

    found, wanted, plan = both(function, x)
    assert np.array_equal(found, wanted) and plan.count("look_up") == 1 and "reciprocal" not in plan


@pytest.mark.parametrize("shape", [(12, 16, 8), (12, 8, 16)])
def test_products_and_norms_give_levels_through_moves(shape: tuple[int, ...]) -> None:
    """Their constants take the scale; a number that lies halfway between two levels may become the other one."""
    draw = np.random.default_rng(3)
    weight, bias = draw.normal(size=(24, 128)).astype(np.float32), draw.normal(size=128).astype(np.float32)
    gain, shift = draw.normal(size=128).astype(np.float32), draw.normal(size=128).astype(np.float32)

    def function(x: Any) -> Any:
        w, b, g, s = (asarray(a, device=x.backend) for a in (weight, bias, gain, shift))
        y = F.permute_dims((F.matmul(quantized(x, 0.02, 128), w) + b).reshape(shape), (2, 0, 1))
        y = quantized(y, 0.11, 120)
        z = quantized(F.layer_norm(F.permute_dims(y, (1, 2, 0)).reshape((12, 128)), g, s), 0.03, 128)
        return F.concat((y.reshape((-1,)), z.reshape((-1,))))

    x = draw.normal(size=(12, 24)).astype(np.float32)
    found, wanted, plan = both(function, x)
    assert np.mean(found != wanted) < 0.002 and np.abs(found - wanted).max() < 0.12
    assert plan.count("fmax") == 1  # of x alone, which may be NaN


def test_a_softmax_of_numbers_is_cut_and_one_of_nan_is_the_least_level() -> None:
    x = np.random.default_rng(1).normal(size=(4, 16)).astype(np.float32)
    x[1, 2] = np.nan

    def of_any(x: Any) -> Any:
        return quantized(F.softmax(x, -1), 1 / 256, 0)

    def of_levels(x: Any) -> Any:
        return of_any(quantized(x, 0.03, 128))

    for function, count in ((of_any, 1), (of_levels, 1)):
        found, wanted, plan = both(function, x)
        assert np.array_equal(found, wanted) and plan.count("fmax") == count


def attended(x: Any) -> Any:
    heads = x.reshape((1, 2, 6, 16))
    return F.attention(heads, heads, heads)


def pooled(x: Any) -> Any:
    return F.avg_pool(x.reshape((1, 2, 8, 12)), 2)


def looked_up(x: Any) -> Any:
    return F.pad(F.take(x, asarray([3, 0, -1], device=x.backend), axis=0), ((1, 0), (0, 2)), constant_values=0.5)


@pytest.mark.parametrize("moved", [attended, pooled, looked_up])
def test_what_is_computed_of_levels_has_no_nan_to_look_for(moved: Any) -> None:
    x = np.random.default_rng(2).normal(size=(12, 16)).astype(np.float32)
    x[0, 0] = np.nan
    found, wanted, plan = both(lambda x: quantized(moved(quantized(x, 0.03, 128)), 0.011, 120), x)
    np.testing.assert_allclose(found, wanted, atol=0.012)  # of a number halfway between two levels
    assert np.mean(found != wanted) < 0.02 and plan.count("fmax") == 1  # of x alone


@pytest.mark.parametrize("size", [1, 40, 5000, 9000])
def test_numbers_that_may_be_nan_are_cut_in_every_length(size: int) -> None:
    x = np.random.default_rng(2).normal(size=size).astype(np.float32) * 9
    x[size // 2] = np.nan
    found, wanted, _ = both(lambda x: quantized(x, 0.03, 100), x)
    np.testing.assert_array_equal(found, wanted)
