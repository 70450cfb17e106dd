"""Products and convolutions of 8-bit levels in plain Python: exact sums, beside NumPy's of 64-bit integers."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from support.draws import draw
from support.rows import every

TYPES = ("uint8", "int8")


def levels(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def python(x: Any) -> Any:
    return emberlet.asarray(x, backend="python")


def correlated(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """The correlation of float64 images with weights, by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    outputs, depth, *kernel = w.shape
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]  # fmt: skip
    out = np.zeros((x.shape[0], outputs, *sizes))
    for m in range(outputs):
        first = m // (outputs // groups) * depth
        for tap in np.ndindex(*kernel):
            key = [slice(t * d, t * d + (n - 1) * s + 1, s)
                   for t, d, n, s in zip(tap, dilation, sizes, stride, strict=True)]  # fmt: skip
            seen = x[(slice(None), slice(first, first + depth), *key)]
            out[:, m] += np.tensordot(w[(m, slice(None), *tap)], seen, (0, 1))
    return out


CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    # image, weight, stride, padding, dilation, groups
    "three taps": ((1, 4, 9, 10), (6, 4, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "pointwise": ((2, 5, 4, 6), (7, 5, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "depthwise": ((1, 6, 8, 8), (6, 1, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 6),
    "grouped": ((2, 6, 7, 5), (8, 3, 2, 3), (1, 2), ((0, 1), (2, 1)), (2, 1), 2),
    "of few positions": ((1, 24, 1, 1), (12, 24, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "few positions of several images": ((3, 4, 2, 2), (9, 4, 2, 2), (1, 1), ((1, 0), (0, 1)), (1, 1), 1),
    "few of everything": ((1, 3, 2, 2), (2, 3, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "a line": ((2, 3, 20), (4, 3, 5), (3,), ((2, 2),), (1,), 1),
    "a volume": ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (1, 1, 1), ((0, 0), (1, 0), (0, 1)), (1, 2, 1), 1),
}


@every("name, x_type, w_type", [(n, a, b) for n in CONVOLUTIONS for a in TYPES for b in TYPES])
def test_a_convolution_of_levels_sums_their_integers(name: str, x_type: str, w_type: str) -> None:
    shape, kernel, stride, padding, dilation, groups = CONVOLUTIONS[name]
    rng = np.random.default_rng(draw("convolution", name).randrange(1 << 30))
    q, w = levels(rng, shape, x_type), levels(rng, kernel, w_type)
    x_zero = int(levels(rng, (1,), x_type)[0])
    w_zero, w_scale = levels(rng, kernel[:1], w_type), rng.uniform(0.01, 0.1, kernel[0]).astype(np.float32)
    bias = rng.standard_normal(kernel[0]).astype(np.float32)
    spread = (-1, *(1,) * (len(kernel) - 1))
    real = w.astype(np.float64) - w_zero.reshape(spread).astype(np.float64)
    sums = correlated(q.astype(np.float64) - x_zero, real, stride, padding, dilation, groups)
    options = {"stride": list(stride), "padding": [list(p) for p in padding], "dilation": list(dilation)}
    found = F.conv_integer(
        python(q), python(w), python(np.array(x_zero, x_type)), python(w_zero), groups=groups, **options
    )
    np.testing.assert_array_equal(np.array(found.tolist()), sums)
    x = F.dequantize_linear(python(q), 0.05, x_zero)
    weight = F.dequantize_linear(python(w), python(w_scale), python(w_zero), axis=0)
    got = F.conv(x, weight, python(bias), groups=groups, **options)
    channel = (1, -1, *(1,) * (len(kernel) - 2))
    want = sums * (np.float64(np.float32(0.05)) * w_scale).reshape(channel) + bias.reshape(channel)
    np.testing.assert_allclose(np.array(got.tolist()), want, rtol=2e-6, atol=1e-6 * np.abs(want).max())


@every("rows, k, n", [(1, 40, 9), (3, 7, 20), (2, 1, 8), (5, 300, 3), (1, 33000, 8)])
@pytest.mark.parametrize("x_type", TYPES)
def test_a_product_of_levels_sums_their_integers(x_type: str, rows: int, k: int, n: int) -> None:
    rng = np.random.default_rng(draw("product", rows, k, n).randrange(1 << 30))
    q, w = levels(rng, (rows, k), x_type), levels(rng, (k, n), "int8")
    zero, point = int(levels(rng, (1,), x_type)[0]), levels(rng, (n,), "int8")
    sums = (q.astype(np.int64) - zero) @ (w.astype(np.int64) - point)
    wrapped = (sums + 2**31) % 2**32 - 2**31
    found = F.matmul_integer(python(q), python(w), python(np.array(zero, x_type)), python(point))
    np.testing.assert_array_equal(np.array(found.tolist()), wrapped)
    scale = rng.uniform(0.01, 0.1, n).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    x = F.dequantize_linear(python(q), 0.05, zero)
    want = sums * (np.float64(np.float32(0.05)) * scale) + bias
    for weight in (
        F.dequantize_linear(python(w), python(scale), python(point), axis=1),
        F.dequantize_linear(python(w.T.copy()), python(scale), python(point), axis=0).permute(1, 0),
    ):
        got = F.linear(x, weight, python(bias))
        np.testing.assert_allclose(np.array(got.tolist()), want, rtol=2e-6, atol=1e-6 * np.abs(want).max())
        got = x @ weight + python(bias)
        np.testing.assert_allclose(np.array(got.tolist()), want, rtol=2e-6, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_scales_that_are_no_numbers_give_what_floats_do(scale: float) -> None:
    q = np.arange(12, dtype=np.uint8).reshape(1, 12)
    w = np.arange(120, dtype=np.int8).reshape(12, 10)
    with np.errstate(all="ignore"):
        for steps in ((scale, 0.5), (0.5, scale)):
            x, weight = (F.dequantize_linear(python(a), s) for a, s in zip((q, w), steps, strict=True))
            found = np.array((x @ weight).tolist())
            want = (q * np.float64(steps[0])) @ (w * np.float64(steps[1]))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
            np.testing.assert_array_equal(found[~np.isnan(found)], want[~np.isnan(want)])


def test_a_zero_point_between_levels_is_that_of_floats() -> None:
    q, w = np.arange(24, dtype=np.uint8).reshape(2, 12), np.arange(120, dtype=np.uint8).reshape(12, 10)
    x = F.dequantize_linear(python(q), 0.5)
    weight = F.dequantize_linear(
        python(w), python(np.full(10, 0.25, np.float32)), python(np.full(10, 2.5, np.float32)), axis=1
    )
    want = (q * 0.5) @ ((w - 2.5) * 0.25)
    np.testing.assert_allclose(np.array((x @ weight).tolist()), want, rtol=1e-6)


def test_weights_that_change_give_other_sums() -> None:
    model = nn.QuantizedLinear(20, 8, bias=False, backend="python", input=(0.1, 3))
    x = python(np.linspace(-0.3, 20, 20, dtype=np.float32)[None])
    for seed in (1, 2, 1):
        rng = np.random.default_rng(seed)
        model.weight.set(python(rng.standard_normal((20, 8)).astype(np.float32)))
        want = np.asarray(model.fork("numpy")(emberlet.asarray(np.array(x.tolist(), np.float32), backend="numpy")))
        np.testing.assert_allclose(np.array(model(x).tolist()), want, rtol=1e-6, atol=1e-6)


def test_bytes_that_change_under_a_tensor_give_other_sums() -> None:
    held = np.arange(160, dtype=np.uint8).reshape(20, 8)
    w = emberlet.get_backend("python").from_bytes(held.data, emberlet.dtypes.uint8, (20, 8))
    q = np.arange(20, dtype=np.uint8)[None]
    for _ in range(2):
        found = F.matmul_integer(python(q), w, None, None)
        np.testing.assert_array_equal(np.array(found.tolist()), q.astype(np.int64) @ held.astype(np.int64))
        held += 7


def test_what_is_made_of_weights_is_freed_with_them() -> None:
    integer_sums: Any = import_module("emberlet.python_backend.integer_sums")
    gc.collect()
    before = len(integer_sums._made)
    model = nn.QuantizedLinear(20, 8, backend="python", input=(0.1, 3))
    model.weight.set(python(np.ones((20, 8), np.float32)))
    for _ in range(2):
        model(python(np.zeros((1, 20), np.float32)))
        assert len(integer_sums._made) == before + 1
    del model
    gc.collect()
    assert len(integer_sums._made) <= before


def test_the_largest_of_levels_are_levels() -> None:
    rng = np.random.default_rng(3)
    q = levels(rng, (2, 5, 13, 11), "uint8")
    x = F.dequantize_linear(python(q), 0.5, 9)
    want = (q.astype(np.float32) - 9) * 0.5
    want = np.asarray(F.max_pool(emberlet.asarray(want, backend="numpy"), (3, 2), stride=2))
    found = F.max_pool(x, (3, 2), stride=2)
    np.testing.assert_array_equal(np.array(found.tolist(), np.float32), want)
    again = F.quantize_linear(found, 0.5, 9)
    np.testing.assert_array_equal(np.array(again.tolist()), np.rint(want / 0.5) + 9)


@pytest.mark.parametrize("count", [12, 1024])
def test_what_was_dequantized_from_a_view_stays_when_its_array_changes(count: int) -> None:
    held = np.zeros(count, np.uint8)
    view = held.view()
    view.flags.writeable = False
    found = F.dequantize_linear(emberlet.asarray(view, backend="python"), 0.5, 3)
    held[:] = 200
    assert set(found.tolist()) == {-1.5}
