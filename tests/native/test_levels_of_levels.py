"""What was dequantized from 8 bits and is quantized again, in machine code and in WebAssembly, beside NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.wgpu_backend.compiled import compile as compiled
from emberlet.wgpu_backend.record import eight_bits
from support.rows import every

Array = np.ndarray[Any, Any]
erf = np.vectorize(math.erf)


@pytest.fixture(params=["native", "wasm"])
def where(request: pytest.FixtureRequest) -> str:
    if request.param == "wasm":
        pytest.importorskip("wasmtime")
    return str(request.param)


def run(where: str, function: Callable[..., Any], *arrays: Array) -> Array:
    """The function's results of a plan."""
    tensors = [emberlet.asarray(a, backend=where) for a in arrays]
    return np.asarray(compiled(function, *tensors, backend=where)(*tensors))


def levels(real: Array, scale: float, zero: int, dtype: Any) -> tuple[Array, Array]:
    """(the levels of float64 numbers, where these are so near to a tie that float32 may round them either way)."""
    info = np.iinfo(dtype)
    quotient = real / np.float64(np.float32(scale))
    near = np.abs(quotient - np.floor(quotient) - 0.5) < 1e-3
    return np.clip(np.rint(quotient) + zero, info.min, info.max).astype(dtype), near


def same(found: Array, want: Array, near: Array) -> None:
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found[~near], want[~near])
    assert (np.abs(found.astype(int) - want)[near] <= 1).all()


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "exp": (lambda x: x.exp(), np.exp),
    "sigmoid": (F.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (lambda x: x * F.sigmoid(x), lambda x: x / (1 + np.exp(-x))),
    "gelu": (F.gelu, lambda x: x * (1 + erf(x * np.sqrt(0.5))) / 2),
    "tanh of itself": (lambda x: F.tanh(F.tanh(x) + x), lambda x: np.tanh(np.tanh(x) + x)),
    "sqrt": (lambda x: (x * x + 0.25).sqrt(), lambda x: np.sqrt(x * x + 0.25)),
    "where": (lambda x: emberlet.where(x > 0.5, x.exp(), x), lambda x: np.where(x > 0.5, np.exp(x), x)),
}


@every("name", list(FUNCTIONS))
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_functions_of_8_bits_are_those_of_each_level(where: str, name: str, dtype: str) -> None:
    ours, theirs = FUNCTIONS[name]
    info = np.iinfo(dtype)
    zero = int(info.min) + 120
    every_level = np.arange(info.min, info.max + 1, dtype=np.int16).astype(dtype).reshape(4, 64)

    def layer(q: Any) -> Any:
        return F.quantize_linear(ours(F.dequantize_linear(q, 0.03125, zero)), 0.017, 7, dtype="int8")

    real = (every_level.astype(np.float64) - zero) * 0.03125
    same(run(where, layer, every_level), *levels(theirs(real), 0.017, 7, np.int8))


@every("seed", range(10), share=2)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_hard_swish_of_levels_is_exact(where: str, seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    info, one = np.iinfo(dtype), np.float32
    scale, zero = float(one(rng.choice([0.002, 0.03, 0.3]) * rng.random())), int(rng.integers(info.min, info.max + 1))
    out, point = float(one(scale * (0.3 + rng.random()))), int(rng.integers(0, 100))
    every_level = np.arange(info.min, info.max + 1, dtype=np.int16).astype(dtype).reshape(1, 4, 64)

    def layer(q: Any) -> Any:
        return F.quantize_linear(F.hard_swish(F.dequantize_linear(q, scale, zero)), out, point, dtype=dtype)

    tensor = emberlet.asarray(every_level, backend="numpy")
    np.testing.assert_array_equal(run(where, layer, every_level), np.asarray(layer(tensor)))
    x = (every_level.astype(one) - one(zero)) * one(scale)
    same(run(where, layer, every_level), *levels(x * np.clip(x.astype(float) / 6 + 0.5, 0, 1), out, point, dtype))


def test_hard_swish_of_levels_is_a_product_of_few_operations(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = eight_bits.levels_by_line
    monkeypatch.setattr(eight_bits, "levels_by_line", lambda *a: made.append(original(*a)) or made[-1])
    q = np.zeros((1, 4, 8, 8), np.uint8)
    run(where, lambda q: F.quantize_linear(F.hard_swish(F.dequantize_linear(q, 0.03, 128)), 0.02, 18), q)
    run(where, lambda q: F.quantize_linear(F.sin(F.dequantize_linear(q, 0.03, 128)) * 0.5 + 1, 0.02, 18), q)  # a table
    assert [m is not None for m in made] == [True]


@every(
    "low, high, scale, zero", [(0, 6, 6 / 255, 0), (0, 6, 0.02, 0), (0, 6, 0.03, 0), (0, 1, 0.005, 3), (-3, 3, 0.01, 9)]
)
def test_numbers_are_cut_before_they_are_quantized(
    where: str, low: float, high: float, scale: float, zero: int
) -> None:
    x = np.linspace(-8, 8, 1000, dtype=np.float32)
    x[:3] = np.nan, np.inf, -np.inf

    def layer(x: Any) -> Any:
        return F.quantize_linear(F.minimum(F.maximum(x, low), high), scale, zero)

    y = np.rint(np.clip(x, np.float32(low), np.float32(high)) / np.float32(scale)) + zero
    np.testing.assert_array_equal(run(where, layer, x), np.where(y > 0, np.minimum(y, 255), 0).astype(np.uint8))


@every("seed", range(16), share=3)
def test_levels_of_products_and_sums_are_cut_where_they_reach_the_ends(where: str, seed: int) -> None:
    rng, one = np.random.default_rng(seed), np.float32
    a, b = rng.choice([0, 1, 100, 254, 255], (2, 4, 64)).astype(np.uint8)
    points = [int(n) for n in rng.choice([0, 100, 255], 2)]
    dtype = ["uint8", "uint16"][seed % 2]
    zero, high = (40, 255) if dtype == "uint8" else (9000, 65535)
    x, y = (a.astype(one) - points[0]) * one(0.5), (b.astype(one) - points[1]) * one(0.25)
    real = x * y if seed % 4 < 2 else x + y
    scale = float(max(one(1e-3), real.max()) / one(high - zero + rng.choice([0.4, 0.4999, 0.5001, 0.6, 7])))

    def layer(a: Any, b: Any) -> Any:
        x, y = F.dequantize_linear(a, 0.5, points[0]), F.dequantize_linear(b, 0.25, points[1])
        return F.quantize_linear(x * y if seed % 4 < 2 else x + y, scale, zero, dtype=dtype)

    want = np.clip(np.rint(real / one(scale)) + one(zero), 0, high).astype(dtype)
    np.testing.assert_array_equal(run(where, layer, a, b), want)


@every("scale", [0.1, 2.0**-7])
@every("dtype", ["uint8", "int8"])
def test_numbers_that_large_sums_round_are_cut_to_levels(where: str, dtype: str, scale: float) -> None:
    one, info = np.float32, np.iinfo(dtype)
    x = np.arange(256, dtype=one).reshape(1, 256) * one(scale)
    large = 1e8 * scale

    def layer(x: Any) -> Any:
        y = F.dequantize_linear(F.quantize_linear(x, scale, info.min, dtype=dtype), scale, info.min)
        return F.quantize_linear(y + large - large, scale, info.min, dtype=dtype)

    steps = np.rint((x + one(large) - one(large)) / one(scale))
    assert steps.max() > 255
    want = np.clip(steps + one(info.min), info.min, info.max).astype(dtype)
    np.testing.assert_array_equal(run(where, layer, x), want)


def test_a_gelu_that_is_quantized_between_its_operations(where: str) -> None:
    q = np.random.default_rng(0).integers(0, 256, (5, 70), np.uint8)

    def layer(q: Any) -> Any:
        x = F.dequantize_linear(q, 0.0625, 130)
        gate = F.dequantize_linear(F.quantize_linear(F.erf(x * 0.70710677), 0.0078125, 128), 0.0078125, 128)
        gate = F.dequantize_linear(F.quantize_linear(gate + 1.0, 0.0078125), 0.0078125)
        half = F.dequantize_linear(F.quantize_linear(x * 0.5, 0.03125, 120), 0.03125, 120)
        return F.quantize_linear(half * gate, 0.05, 9)

    def rounded(x: Array, scale: float, zero: int) -> Array:
        return ((np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)

    x = ((q.astype(np.int32) - 130) * 0.0625).astype(np.float32)
    gate = rounded(erf(x * 0.70710677), 0.0078125, 128)
    product = rounded(x * np.float32(0.5), 0.03125, 120).astype(np.float64) * rounded(gate + 1, 0.0078125, 0)
    same(run(where, layer, q), *levels(product, 0.05, 9, np.uint8))


def test_functions_of_two_8_bit_tensors_are_of_both(where: str) -> None:
    a, b = np.random.default_rng(1).integers(0, 256, (2, 6, 40), np.uint8)

    def layer(a: Any, b: Any) -> Any:
        x, y = F.dequantize_linear(a, 0.03125, 128), F.dequantize_linear(b, 0.03125, 100)
        return F.quantize_linear(F.tanh(x) * y, 0.02, 128)

    x, y = (a.astype(float) - 128) / 32, (b.astype(float) - 100) / 32
    same(run(where, layer, a, b), *levels(np.tanh(x) * y, 0.02, 128, np.uint8))


@every("seed", range(12), share=3)
def test_pooling_and_joining_levels_is_exact(where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 256, (2, 1, 3, 12, 10), np.uint8)
    scales = [float(np.float32(s)) for s in rng.choice([0.03, 0.5, 1.7e-3], 2)]
    same_scale = scales[0] if seed % 2 else scales[1] * 1.5
    zero = int(rng.integers(0, 200))
    points = [zero if seed % 3 else 3, int(rng.integers(0, 200))]

    def layer(a: Any, b: Any) -> Any:
        x = F.dequantize_linear(a, scales[0], points[0])
        y = F.dequantize_linear(b, scales[1], points[1])
        if seed % 4 < 3:
            x, y = (F.max_pool(t, 3, stride=2, padding=seed % 2) for t in (x, y))
        return F.quantize_linear(emberlet.concat([x, y], axis=1), same_scale, zero)

    tensors = [emberlet.asarray(t, backend="python") for t in (a, b)]
    want = np.array(layer(*tensors).tolist(), np.uint8)
    np.testing.assert_array_equal(run(where, layer, a, b), want)


def test_levels_of_the_same_scale_are_kept_and_others_are_not(where: str) -> None:
    q = np.arange(256, dtype=np.uint8)
    large = float(np.float32(3e38))  # whose products are infinite
    for scale in (0.1, 3.7e-7, large):
        for zero in (None, 0, 131):
            again = F.quantize_linear(
                F.dequantize_linear(emberlet.asarray(q, backend="python"), scale, 131), scale, zero
            )

            def layer(q: Any, scale: float = scale, zero: Any = zero) -> Any:
                return F.quantize_linear(F.dequantize_linear(q, scale, 131), scale, zero)

            np.testing.assert_array_equal(run(where, layer, q), np.array(again.tolist(), np.uint8))


@pytest.mark.parametrize("scale", [0.07, -0.05, 0.0, math.inf])
@pytest.mark.parametrize("of", [0.05, -0.05, math.inf])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_the_largest_of_levels_of_any_scale(where: str, scale: float, of: float, as_tensors: bool) -> None:
    """The largest of numbers with NaN is NaN, which has the lowest level."""
    q = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 6)).astype(np.int8)
    given = [np.float32(of), np.int8(3), np.float32(scale), np.int8(3)]

    def layer(q: Any) -> Any:
        numbers = [emberlet.asarray(n, backend=q.backend) if as_tensors else n for n in given]
        x = F.max_pool2d(F.dequantize_linear(q, *numbers[:2]), 2)
        return F.quantize_linear(x, *numbers[2:], dtype="int8")

    with np.errstate(all="ignore"):
        real = (q.astype(np.float32) - 3) * np.float32(of)
        largest = real.reshape(1, 8, 3, 2, 3, 2).max((3, 5))
        quotient = np.rint(largest / np.float32(scale)) + 3
        want = np.where(np.isnan(quotient), -128, np.clip(quotient, -128, 127)).astype(np.int8)
    np.testing.assert_array_equal(run(where, layer, q), want)


CHANNELS: dict[str, Callable[[Any], Any]] = {
    "tabled": F.exp,
    "pooled": lambda x: F.max_pool2d(x, 2),
    "joined": lambda x: F.concat([x[:, :3], x[:, 3:]], 1),
    "as they are": lambda x: x,
}


@every("name", list(CHANNELS))
@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("scales", [True, False])
def test_numbers_for_each_channel_may_all_be_the_same(where: str, name: str, filled: bool, scales: bool) -> None:
    q = np.random.default_rng(0).integers(-128, 128, (1, 8, 4, 6)).astype(np.int8)

    def layer(q: Any) -> Any:
        def channels(n: float, dtype: str) -> Any:
            if filled:
                return F.full((8,), n, dtype=dtype, device=q.backend)
            return emberlet.asarray(np.full(8, n, dtype), device=q.backend)

        scale = channels(0.05, "float32") if scales else 0.05
        x = CHANNELS[name](F.dequantize_linear(q, 0.0125, 3))
        return F.quantize_linear(x, scale, channels(3, "int8"), axis=1)

    np.testing.assert_array_equal(run(where, layer, q), np.asarray(layer(emberlet.asarray(q, backend="numpy"))))


class Layers(nn.Module):
    """Dense and convolutional layers with packed weights between dequantized and float values."""

    def __init__(self, kind: str, channels: int, out: int) -> None:
        self.layer: Any = {
            "linear": lambda: nn.Linear(channels, out, bias=False),
            "conv": lambda: nn.Conv2d(channels, out, 3, padding=1, bias=False),
            "pixel": lambda: nn.Conv2d(channels, out, 1, bias=False),
            "depthwise": lambda: nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
        }[kind]()
        self.quantize_weights(bits=8)

    def forward(self, q: Any) -> Any:
        return self.layer(F.dequantize_linear(q, 0.0625, 99))


@every("seed", range(16), share=3)
def test_sums_of_layers_with_packed_weights_are_exact(where: str, seed: int) -> None:
    """All numbers are multiples of powers of two, and sums of integers beyond what float32 adds exactly."""
    rng = np.random.default_rng(seed)
    kind = ["linear", "conv", "pixel", "depthwise"][seed % 4]
    channels, out = int(rng.choice([8, 33, 700])), int(rng.choice([5, 40, 64]))
    height = [1, 2, 4, 7][seed // 4]
    model = Layers(kind, channels, out)
    weight = model.layer.weight
    values = rng.integers(1, 256, weight.values.shape, np.uint8)
    scale = 2.0 ** rng.integers(-6, 0, weight.scale.shape)
    weight.values.set(emberlet.asarray(values))
    weight.scale.set(emberlet.asarray(scale.astype(np.float32)))
    shape = (height, channels) if kind == "linear" else (1, channels, height, height)
    q = rng.integers(0, 256, shape, np.uint8)
    real = np.asarray(model.fork("numpy").layer.weight.val()).astype(np.float64)
    x = (q.astype(np.float64) - 99) / 16
    if kind == "linear":
        want = x @ real
    else:
        padded = np.pad(x, [(0, 0), (0, 0), *[(real.shape[2] // 2,) * 2] * 2])
        windows = np.lib.stride_tricks.sliding_window_view(padded, real.shape[2:], (2, 3))
        if kind == "depthwise":
            want = np.einsum("nchwij,cij->nchw", windows, real[:, 0])
        else:
            want = np.einsum("nchwij,ocij->nohw", windows, real)
    found = run(where, model.fork(where), q)
    np.testing.assert_array_equal(found, want.astype(np.float32))


@every("seed", range(12), share=3)
def test_floats_of_levels_are_the_integers_that_they_stand_for(where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((3, 37)) * 10.0 ** rng.integers(-2, 3)).astype(np.float32)
    x[0, :4] = np.nan, np.inf, -np.inf, 3e38
    scales = [float(np.float32(s)) for s in rng.random(2) * 0.1 + 1e-3]
    kind, first, second = ["uint8", "int8"][seed % 2], int(rng.integers(100)), int(rng.integers(100))

    def layers(x: Any) -> Any:
        q = F.quantize_linear(x, scales[0], first, dtype=kind)
        y = F.dequantize_linear(q, scales[0], [first, second][seed // 2 % 2])
        return F.quantize_linear(F.hard_swish(y), scales[1], second, dtype=kind), y, q

    want = layers(emberlet.asarray(x, backend="numpy"))
    given = emberlet.asarray(x, backend=where)
    for found in (layers(given), compiled(layers, given, backend=where)(given)):
        for y, exact in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.asarray(y), np.asarray(exact))


@pytest.mark.parametrize("less", [-16777217, 33554435, (1 << 30) + 1, -(1 << 31) + 7])
def test_floats_of_levels_less_a_large_integer_are_rounded_once(where: str, less: int) -> None:
    x = np.linspace(-40, 40, 192, dtype=np.float32)

    def moved(x: Any) -> Any:
        q = F.quantize_linear(x, 0.25, 10, dtype="uint8")
        return F.astype(F.astype(q, "int32") - less, "float32")

    q = np.clip(np.rint(x / 0.25) + 10, 0, 255).astype(np.int64)
    want = (q - less).astype(np.int32).astype(np.float32)  # wraps as int32 does
    np.testing.assert_array_equal(run(where, moved, x), want)
