"""Kernels store the bytes that the next product reads as words, so that no other kernel packs them: quantized networks
take as many dispatches as layers, and give NumPy's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import Tensor, dtypes
from emberlet import functional as F
from emberlet.backend import Backend, get_backend
from emberlet.wgpu_backend.backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.plan.traced import traced_for
from emberlet.wgpu_backend.record import byte_words
from emberlet.wgpu_backend.record.host_evaluation import _EVALUATE
from emberlet.wgpu_backend.record.node import Node

from .test_byte_products import convolved, drawn

CLASSES = ("gpu", "cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products multiply bytes, too, and do not compute those of their operands themselves."""
    monkeypatch.setattr(byte_words, "LEAST_WORK", 0)
    monkeypatch.setattr(Options, "little_words", 0)


@pytest.fixture(params=CLASSES)
def run(request: pytest.FixtureRequest, gpu: Backend, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """(the results of a compiled function of tensors, the dispatches of its plan), for a class of device."""
    monkeypatch.setattr(gpu, "_options", Options(request.param))

    def of(function: Callable[..., Any], *inputs: Any) -> tuple[Any, int]:
        planning = WgpuBackend(planning=True)
        traced, _ = traced_for(function, [emberlet.asarray(x, device="python") for x in inputs], planning)
        plan = make_plan(traced.roots, Options(request.param))[0]
        found = compile(function, *[emberlet.asarray(x, backend=gpu) for x in inputs], backend=gpu)(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        return [np.asarray(x) for x in found], len(plan.steps)

    return of


def constant(x: Tensor, value: Any) -> Tensor:
    return emberlet.asarray(value, backend=x.backend)


def levels(total: Any, scale: float, zero: int) -> Any:
    """int32 sums, requantized to uint8."""
    return np.clip(np.round(total.astype(np.float32) * np.float32(scale)) + zero, 0, 255).astype(np.uint8)


def quantized(x: Any, scale: float, zero: int) -> Any:
    return np.clip(np.round(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8)


def special(x: Any, kind: str) -> Any:
    """x of other signs or sizes, or with one element that is not finite."""
    if kind in ("nan", "infinite"):
        x.flat[2] = np.nan if kind == "nan" else np.inf
        return x
    made = {"zeros": x * 0, "negative": -np.abs(x) - 1, "positive": np.abs(x) + 1, "tiny": x * np.float32(1e-37)}
    return made.get(kind, x)


@pytest.mark.parametrize("rows", [1, 21])
def test_a_product_stores_the_words_of_the_next(run: Callable[..., Any], rows: int) -> None:
    draw = np.random.default_rng(rows)
    a = draw.normal(size=(rows, 36)).astype(np.float32)
    w, v = drawn(draw, np.int8, (36, 44)), drawn(draw, np.int8, (44, 20))

    def model(x: Tensor) -> Tensor:
        q = F.quantize_linear(x, 1 / 64, constant(x, np.uint8(128)))
        q = F.qlinear_matmul(q, 1 / 64, 128, constant(x, w), 1 / 64, 0, 1 / 2, constant(x, np.uint8(100)))
        return F.qlinear_matmul(q, 1 / 2, 100, constant(x, v), 1 / 64, 0, 4.0, constant(x, np.uint8(120)))

    (found,), dispatches = run(model, a)
    q = quantized(a, 1 / 64, 128).astype(np.int64)
    q = levels((q - 128) @ w.astype(np.int64), 1 / 2048, 100).astype(np.int64)
    np.testing.assert_array_equal(found, levels((q - 100) @ v.astype(np.int64), 1 / 512, 120))
    assert dispatches == 3


@pytest.mark.parametrize("size", [(1, 9, 11), (2, 6, 6)], ids=str)
def test_a_residual_block_takes_a_kernel_for_each_convolution(
    run: Callable[..., Any], size: tuple[int, int, int]
) -> None:
    """The sum at its end reads the same words as the first convolution."""
    draw = np.random.default_rng(size[1])
    x = drawn(draw, np.uint8, (size[0], 8, *size[1:]))
    first, second, third = [drawn(draw, np.int8, (n, 8, k, k)) for n, k in ((8, 1), (8, 3), (12, 1))]
    point = np.uint8(10)

    def convolution(x: Tensor, w: Any, padding: int) -> Tensor:
        return F.qlinear_conv(x, 1.0, 10, constant(x, w), 1.0, 0, 256.0, constant(x, point), padding=padding)

    def model(x: Tensor) -> Tensor:
        start = convolution(x, first, 0)
        y = F.dequantize_linear(convolution(start, second, 1), 1.0, constant(x, point))
        y = F.relu(y + F.dequantize_linear(start, 1.0, constant(x, point)))
        return convolution(F.quantize_linear(y, 1.0, constant(x, point)), third, 0)

    def want(x: Any, w: Any, padding: int) -> Any:
        return levels(convolved(x.astype(np.int64) - 10, w.astype(np.int64), 1, padding, 1, 1), 1 / 256, 10)

    (found,), dispatches = run(model, x)
    start = want(x, first, 0)
    y = np.maximum(want(start, second, 1).astype(np.int64) - 10 + start - 10, 0)
    np.testing.assert_array_equal(found, want(np.clip(y + 10, 0, 255).astype(np.uint8), third, 0))
    assert dispatches == 4  # one packs the input


@pytest.mark.parametrize("size", [(1, 9, 11), (2, 6, 6)], ids=str)
def test_a_sum_and_its_levels_take_one_kernel(run: Callable[..., Any], size: tuple[int, int, int]) -> None:
    """A shortcut adds the floats, the next convolution reads the words."""
    draw = np.random.default_rng(size[1])
    x = drawn(draw, np.uint8, (size[0], 8, *size[1:]))
    first, second = [drawn(draw, np.int8, (8, 8, k, k)) for k in (1, 3)]

    def block(x: Tensor, q: Tensor, w: Any, padding: int) -> Tensor:
        total = F.conv_integer(q, constant(x, w), 10, padding=padding)
        return F.relu(total.astype(dtypes.float32) * 0.125 + x)

    def model(x: Tensor) -> Tensor:
        y = x.astype(dtypes.float32)
        y = block(y, x, first, 0)
        return block(y, F.quantize_linear(y, 8.0, constant(x, np.uint8(10))), second, 1)

    def want(x: Any, q: Any, w: Any, padding: int) -> Any:
        total = convolved(q.astype(np.int64) - 10, w.astype(np.int64), 1, padding, 1, 1)
        return np.maximum(total.astype(np.float32) * np.float32(0.125) + x, 0)

    (found,), dispatches = run(model, x)
    y = want(x.astype(np.float32), x, first, 0)
    np.testing.assert_array_equal(found, want(y, quantized(y, 8.0, 10), second, 1))
    assert dispatches == 3  # one packs the input


@pytest.mark.parametrize("length", [40, 400])
def test_a_row_and_its_levels_take_one_kernel(run: Callable[..., Any], length: int) -> None:
    draw = np.random.default_rng(length)
    x = draw.integers(-400, 400, (33, length)).astype(np.float32)
    w = drawn(draw, np.int8, (length, length))

    def model(x: Tensor) -> Tensor:
        y = x - x.max(axis=-1, keepdims=True)
        q = F.quantize_linear(y, 4.0, constant(x, np.uint8(250)))
        return F.matmul_integer(q, constant(x, w), 250).astype(dtypes.float32) + y

    (found,), dispatches = run(model, x)
    y = x - x.max(-1, keepdims=True)
    total = (quantized(y, 4.0, 250).astype(np.int64) - 250) @ w.astype(np.int64)
    np.testing.assert_array_equal(found, total.astype(np.float32) + y)
    assert dispatches == 2


def test_a_pool_stores_words(run: Callable[..., Any]) -> None:
    draw = np.random.default_rng(10)
    x = drawn(draw, np.uint8, (2, 4, 9, 11))
    first, second = drawn(draw, np.int8, (8, 4, 3, 3)), drawn(draw, np.int8, (6, 8, 1, 1))

    def model(x: Tensor) -> Tensor:
        q = F.qlinear_conv(x, 1.0, 3, constant(x, first), 1.0, 0, 64.0, constant(x, np.uint8(99)))
        return F.conv_integer(F.max_pool(q, 3, stride=2, padding=1), constant(x, second), 99)

    (found,), dispatches = run(model, x)
    y = levels(convolved(x.astype(np.int64) - 3, first.astype(np.int64), 1, 0, 1, 1), 1 / 64, 99)
    y = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))  # with the lowest number
    y = np.lib.stride_tricks.sliding_window_view(y, (3, 3), (2, 3))[:, :, ::2, ::2].max((4, 5))
    np.testing.assert_array_equal(found, convolved(y.astype(np.int64) - 99, second.astype(np.int64), 1, 0, 1, 1))
    assert dispatches == 4  # one packs the input


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("channels", [4, 6])
def test_convolutions_compute_the_words_of_a_little_picture(
    run: Callable[..., Any], channels: int, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Options, "little_words", 1 << 22)
    draw = np.random.default_rng(17)
    x = draw.normal(size=(2, channels, 9, 11)).astype(np.float32)
    w = drawn(draw, np.int8, (5, channels, 3, 3))

    def model(x: Tensor) -> Tensor:
        q = F.quantize_linear(x, 1 / 32, constant(x, np.uint8(120)))
        return F.conv_integer(q, constant(x, w), 120, padding=padding)

    (found,), dispatches = run(model, x)
    q = quantized(x, 1 / 32, 120).astype(np.int64) - 120
    np.testing.assert_array_equal(found, convolved(q, w.astype(np.int64), 1, padding, 1, 1))
    assert dispatches == 1


@pytest.mark.parametrize("kind", ["average", "long average", "maximum", "mean", "greatest"])
def test_pools_of_floats_store_words(run: Callable[..., Any], kind: str) -> None:
    draw = np.random.default_rng(11)
    x = draw.integers(-128, 128, (2, 8, 8, 8)).astype(np.float32) / 16
    w = drawn(draw, np.int8, (6, 8, 1, 1))
    pools: dict[str, Callable[..., Any]] = {
        "average": lambda y: F.avg_pool(y, 2),
        "long average": lambda y: F.avg_pool(y, (8, 4)),
        "maximum": lambda y: F.max_pool(y, 2),
        "mean": lambda y: y.mean(axis=(2, 3), keepdims=True),
        "greatest": lambda y: y.max(axis=(2, 3), keepdims=True),
    }

    def model(x: Tensor) -> Tensor:
        q = F.quantize_linear(pools[kind](x), 1 / 8, constant(x, np.uint8(120)))
        return F.conv_integer(q, constant(x, w), 120)

    (found,), dispatches = run(model, x)
    tall, wide = {"long average": (8, 4), "mean": (8, 8), "greatest": (8, 8)}.get(kind, (2, 2))
    windows = x.reshape(2, 8, 8 // tall, tall, 8 // wide, wide)  # sums are exact: all numbers are sixteenths
    y = windows.max((3, 5)) if kind in ("maximum", "greatest") else windows.mean((3, 5))
    want = quantized(y, 1 / 8, 120).astype(np.int64) - 120
    np.testing.assert_array_equal(found, convolved(want, w.astype(np.int64), 1, 0, 1, 1))
    assert dispatches == 2


def test_convolutions_write_their_words_into_the_whole(run: Callable[..., Any]) -> None:
    draw = np.random.default_rng(5)
    x = drawn(draw, np.uint8, (1, 4, 8, 8))
    weights = [drawn(draw, np.int8, (n, c, k, k)) for n, c, k in ((4, 4, 1), (8, 4, 3), (4, 12, 1))]

    def convolution(x: Tensor, w: Any) -> Tensor:
        padding = w.shape[-1] // 2
        return F.qlinear_conv(x, 1.0, 0, constant(x, w), 1.0, 0, 64.0, constant(x, np.uint8(99)), padding=padding)

    def model(x: Tensor) -> Tensor:
        return convolution(F.concat([convolution(x, w) for w in weights[:2]], axis=1), weights[2])

    def want(x: Any, w: Any) -> Any:
        return levels(convolved(x.astype(np.int64), w.astype(np.int64), 1, w.shape[-1] // 2, 1, 1), 1 / 64, 99)

    (found,), dispatches = run(model, x)
    both = np.concatenate([want(x, w) for w in weights[:2]], axis=1)
    np.testing.assert_array_equal(found, want(both, weights[2]))
    assert dispatches == 4


@pytest.mark.parametrize("kind", ["layer norm", "attention", "gelu"])
def test_other_kernels_store_words(run: Callable[..., Any], kind: str) -> None:
    draw = np.random.default_rng(6)
    x = draw.normal(size=(1, 12, 32)).astype(np.float32)
    square = draw.normal(size=(32, 32)).astype(np.float32)
    w = drawn(draw, np.int8, (32, 24))

    def model(x: Tensor) -> Tensor:
        if kind == "layer norm":
            y = F.layer_norm(x, 32)
        elif kind == "attention":
            y = F.attention(x, x, x, num_heads=4)
        else:
            y = F.gelu(F.matmul(x, constant(x, square)))
        q = F.quantize_linear(y, 1 / 32, constant(x, np.uint8(128)))
        return F.matmul(F.dequantize_linear(q, 1 / 32, constant(x, np.uint8(128))),
                        F.dequantize_linear(constant(x, w), 1.0))  # fmt: skip

    (found,), dispatches = run(model, x)
    with np.errstate(all="ignore"):
        want = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy"))))
    # A float between two levels may be rounded to either.
    assert np.mean(found != want) < 0.05 and np.abs(found - want).max() <= 128 * 2 / 32
    assert dispatches == 2


def test_products_of_one_tensor_share_what_its_range_takes(
    run: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    """One kernel finds the range and the levels, and all products read these; on a GPU each product finds them."""
    draw = np.random.default_rng(7)
    x, square = [draw.normal(size=shape).astype(np.float32) for shape in ((12, 32), (32, 32))]
    weights = [drawn(draw, np.int8, (32, n)) for n in (16, 24, 32)]

    def model(x: Tensor) -> tuple[Tensor, ...]:
        y = F.matmul(x, constant(x, square))
        return tuple(F.dynamic_quantize_matmul(y, constant(x, w), constant(x, np.float32(0.5))) for w in weights)

    found, dispatches = run(model, x)
    y = x @ square
    low, high = min(y.min(), np.float32(0)), max(y.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    point = np.round(-low / scale)
    q = np.clip(np.round(y / scale) + point, 0, 255) - point
    for w, one in zip(weights, found, strict=True):
        want = (q @ w) * (scale * np.float32(0.5))
        np.testing.assert_allclose(one, want, rtol=1e-4, atol=float(scale) * 64)
    assert dispatches == (1 + 3 if request.node.callspec.params["run"] == "gpu" else 1 + 1 + 3)


RANGED = ["mixed", "zeros", "negative", "positive", "nan", "infinite"]


@pytest.mark.parametrize("kind", RANGED)
@pytest.mark.parametrize(("rows", "terms"), [(1, 64), (33, 200), (5, 1024)])
def test_products_find_the_range_of_their_operand(
    gpu: Backend, monkeypatch: pytest.MonkeyPatch, rows: int, terms: int, kind: str
) -> None:
    monkeypatch.setattr(gpu, "_options", Options("gpu"))
    draw = np.random.default_rng(rows)
    x = special(draw.normal(size=(rows, terms)).astype(np.float32), kind)
    w, scale = drawn(draw, np.int8, (terms, 320)), np.float32(0.25)

    def model(x: Tensor) -> Tensor:
        return F.dynamic_quantize_matmul(x + 0.0, constant(x, w), constant(x, scale))

    found = np.asarray(compile(model, emberlet.asarray(x, backend=gpu), backend=gpu)(x))
    with np.errstate(all="ignore"):
        want = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy"))))
    np.testing.assert_allclose(found, want, rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("kind", ["scalar", "row", "matrix"])
def test_a_tensor_of_one_element_is_as_good_as_a_number(run: Callable[..., Any], kind: str) -> None:
    """A scale and a zero point: the plan has no kernel more."""
    draw = np.random.default_rng(16)
    x = draw.normal(size=(1, 4, 12, 12)).astype(np.float32)
    weights = [drawn(draw, np.int8, (4, 4, 3, 3)) for _ in range(2)]

    def model(x: Tensor, alone: bool) -> Tensor:
        def one(value: Any) -> Any:
            shape = {"scalar": (), "row": (1,), "matrix": (1, 1)}[kind]
            return constant(x, np.reshape(value, shape)) if alone else value.item()

        def levels(x: Tensor) -> Tensor:
            q = F.quantize_linear(x, one(np.float32(0.0625)), one(np.uint8(120)))
            return F.dequantize_linear(q, one(np.float32(0.0625)), one(np.uint8(120)))

        y = x
        for w in weights:
            y = F.max_pool(F.hard_swish(levels(y)), 2)
            scale, zero = one(np.float32(2**-10)), one(np.int8(0))
            y = F.conv2d(levels(y), F.dequantize_linear(constant(x, w), scale, zero), padding=1)
        return levels(y)

    (wanted,), dispatches = run(lambda x: model(x, False), x)
    (found,), others = run(lambda x: model(x, True), x)
    np.testing.assert_array_equal(found, wanted)
    assert others == dispatches
    host = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy")), True))
    np.testing.assert_array_equal(found, host)


@pytest.mark.parametrize("kilobytes", [0, 200, 400, 800, 1600, 3200])
def test_tiles_are_so_large_that_workgroups_read_a_range_seldom(
    gpu: Backend, kilobytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Options, "most", (kilobytes << 10, 0))
    monkeypatch.setattr(gpu, "_options", Options("gpu"))
    draw = np.random.default_rng(15)
    x, w = draw.normal(size=(32, 96)).astype(np.float32), drawn(draw, np.int8, (96, 2000))

    def model(x: Tensor) -> Tensor:
        levels, scale, point = F.dynamic_quantize_linear(x)
        return F.matmul_integer(levels, constant(x, w), point).astype(dtypes.float32) * scale

    fast = compile(model, emberlet.asarray(x, backend=gpu), backend=gpu)
    want = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy"))))
    np.testing.assert_array_equal(np.asarray(fast(x)), want)
    steps = fast.plan().steps
    tiles = steps[-1].groups[0]
    assert len(steps) == 2 or tiles * x.nbytes <= kilobytes << 10
    if kilobytes in (0, 3200):
        assert len(steps) == (1 if kilobytes else 2)


def test_what_is_read_of_a_range_elsewhere_keeps_its_kernel(run: Callable[..., Any]) -> None:
    draw = np.random.default_rng(13)
    x, w = draw.normal(size=(12, 32)).astype(np.float32), drawn(draw, np.int8, (32, 16))

    def model(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2.0
        return F.dynamic_quantize_matmul(y, constant(x, w), constant(x, np.float32(1))), F.dynamic_quantize_linear(y)[1]

    (product, scale), dispatches = run(model, x)
    want = model(emberlet.asarray(x, backend=get_backend("numpy")))
    np.testing.assert_array_equal(scale, np.asarray(want[1]))
    np.testing.assert_allclose(product, np.asarray(want[0]), rtol=1e-6)
    assert dispatches == 3


@pytest.mark.parametrize(
    ("queries", "keys", "size", "depth"), [(17, 17, 12, 12), (5, 130, 8, 20), (128, 128, 32, 32), (1, 33, 16, 3)]
)
def test_attention_rounds_its_weights(run: Callable[..., Any], queries: int, keys: int, size: int, depth: int) -> None:
    draw = np.random.default_rng(keys)
    q, k = [draw.normal(size=(2, 3, n, size)).astype(np.float32) for n in (queries, keys)]
    v = np.zeros((2, 3, keys, depth), np.float32)
    v[:, :, :depth] = np.eye(depth, dtype=np.float32)  # the results are the weights of the first keys
    v = v[:, :, :keys]
    step = 1 / 200

    def model(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = F.softmax((q @ F.permute_dims(k, (0, 1, 3, 2))) * 0.4)
        return F.dequantize_linear(F.quantize_linear(weights, step), step) @ v

    (found,), dispatches = run(model, q, k, v)
    scores = 0.4 * q.astype(np.float64) @ np.swapaxes(k, -1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    real = (weights / weights.sum(-1, keepdims=True))[..., :depth] / step
    between = np.abs(real % 1 - 0.5) < 1e-3  # may be rounded to either
    levels = found / step
    np.testing.assert_allclose(levels[~between], np.clip(np.round(real), 0, 255)[~between], atol=1e-3)
    assert np.abs(levels - real).max() < 0.51
    assert dispatches == 1


def test_rounded_attention_keeps_a_mask_of_its_weights(run: Callable[..., Any]) -> None:
    draw = np.random.default_rng(16)
    q, k, v = draw.normal(size=(3, 1, 2, 9, 8)).astype(np.float32)
    kept = draw.random((1, 2, 9, 9)) < 0.5
    step = 1 / 255

    def model(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = F.softmax((q @ F.permute_dims(k, (0, 1, 3, 2))) * 0.4)
        levels = F.minimum(F.where(constant(q, kept), F.round(weights / step), 0.0), 255.0)
        return (levels.astype(dtypes.uint8).astype(dtypes.float32) * step) @ v

    (found,), _ = run(model, q, k, v)
    scores = 0.4 * q.astype(np.float64) @ np.swapaxes(k, -1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = np.round(weights / weights.sum(-1, keepdims=True) / step) * kept * step @ v
    np.testing.assert_allclose(found, want, atol=2 * step)  # a weight between two levels may be rounded to either


def test_levels_less_a_number_that_floats_cannot_hold(run: Callable[..., Any]) -> None:
    x = np.array([[-0.01, 0.01, 0.1, 25.5]], np.float32)
    (found,), _ = run(
        lambda x: (F.quantize_linear(x, 0.1, 0).astype(dtypes.int32) - 16777217).astype(dtypes.float32), x
    )
    np.testing.assert_array_equal(found, (np.array([[0, 0, 1, 255]]) - 16777217).astype(np.float32))


def test_levels_that_are_results_are_read_as_they_are(run: Callable[..., Any]) -> None:
    draw = np.random.default_rng(8)
    x, w = drawn(draw, np.uint8, (5, 16)), drawn(draw, np.int8, (16, 16))

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        q = F.qlinear_matmul(x, 1.0, 0, constant(x, w), 1.0, 0, 64.0, constant(x, np.uint8(128)))
        return q, F.matmul_integer(q, constant(x, w), 128)

    (first, second), _ = run(model, x)
    want = levels(x.astype(np.int64) @ w, 1 / 64, 128)
    np.testing.assert_array_equal(first, want)
    np.testing.assert_array_equal(second, (want.astype(np.int64) - 128) @ w)
    assert dtypes.uint8.name == str(first.dtype)


def test_attention_quantizes_few_operands_itself(run: Callable[..., Any]) -> None:
    x = np.random.default_rng(15).normal(size=(3, 2, 4, 9, 8)).astype(np.float32)

    def model(x: Tensor) -> Tensor:
        def coarse(x: Tensor, scale: float, zero: int | None = None) -> Tensor:
            return F.dequantize_linear(F.quantize_linear(x, scale, zero), scale, zero)

        q, k, v = coarse(x[0], 1 / 32, 128), coarse(F.permute_dims(x[1], (0, 1, 3, 2)), 1 / 32, 120), x[2]
        return coarse(F.softmax(q @ k), 1 / 255) @ coarse(v, 1 / 16, 100)

    (found,), dispatches = run(model, x)
    want = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy"))))
    assert np.mean(np.abs(found - want) > 1e-4) < 0.02  # a weight between two levels may be rounded to either
    assert dispatches == 1


@pytest.mark.parametrize("kind", ["mixed", "zeros", "negative", "positive", "tiny", "nan", "infinite"])
@pytest.mark.parametrize("shape", [(3, 8), (33, 200), (2, 5, 7), (260, 128)], ids=str)  # in one kernel, and two
def test_a_range_is_found_as_on_numpy(gpu: Backend, shape: tuple[int, ...], kind: str) -> None:
    draw = np.random.default_rng(9)
    x = special(draw.normal(size=shape).astype(np.float32), kind)

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return F.dynamic_quantize_linear(x * 1.0)

    found = compile(model, emberlet.asarray(x, backend=gpu), backend=gpu)(x)
    with np.errstate(all="ignore"):
        want = model(emberlet.asarray(x, backend=get_backend("numpy")))
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("kind", RANGED)
@pytest.mark.parametrize("window", [3, 8])  # of the second each result has a workgroup on a GPU
def test_convolutions_of_floats_find_the_range_of_their_picture(
    run: Callable[..., Any], window: int, kind: str
) -> None:
    draw = np.random.default_rng(14)
    x = special(draw.normal(size=(1, 2, 9, 12)).astype(np.float32), kind)
    w = drawn(draw, np.int8, (5, 2, window, window))

    def model(x: Tensor) -> Tensor:
        levels, scale, point = F.dynamic_quantize_linear(x * 1.0)
        return F.conv_integer(levels, constant(x, w), point, padding=1).astype(dtypes.float32) * scale

    (found,), dispatches = run(model, x)
    with np.errstate(all="ignore"):
        want = np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy"))))
    np.testing.assert_array_equal(found, want)
    assert dispatches == 1


@pytest.mark.parametrize(("channels", "length", "kernel", "stride"), [(1, 640, 64, 32), (2, 44, 8, 4), (1, 40, 40, 4)])
def test_windows_of_a_signal_are_words(
    run: Callable[..., Any], channels: int, length: int, kernel: int, stride: int
) -> None:
    draw = np.random.default_rng(length)
    x = drawn(draw, np.uint8, (2, channels, length))
    w = drawn(draw, np.int8, (6, channels, kernel))

    def model(x: Tensor) -> Tensor:
        return F.conv_integer(x, constant(x, w), 100, stride=stride)

    (found,), dispatches = run(model, x)
    want = model(emberlet.asarray(x, backend=get_backend("numpy")))
    np.testing.assert_array_equal(found, np.asarray(want))
    assert dispatches == 1 + 1  # one makes the bytes signed


def test_the_range_of_repeated_elements_is_found(gpu: Backend) -> None:
    x = np.random.default_rng(11).normal(size=(6, 1)).astype(np.float32)

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return F.dynamic_quantize_linear(F.broadcast_to(x, (6, 16)))

    found = compile(model, emberlet.asarray(x, backend=gpu), backend=gpu)(x)
    for one, other in zip(found, model(emberlet.asarray(x, backend=get_backend("numpy"))), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_the_host_lays_out_levels_scale_and_zero_point_as_the_kernel() -> None:
    host = get_backend("numpy")
    x = emberlet.asarray(np.random.default_rng(12).normal(size=(3, 8)).astype(np.float32), backend=host)
    node = Node("range_levels", (), None, dtypes.uint32, (8,))
    words = np.asarray(_EVALUATE["range_levels"](host, node, [x]))
    levels, scale, point = map(np.asarray, F.dynamic_quantize_linear(x))
    np.testing.assert_array_equal(words[:6].view(np.int8).astype(np.int32) + 128, levels.ravel())
    node = Node("range_levels", (), "floats", dtypes.uint32, (26,))
    floats = np.asarray(_EVALUATE["range_levels"](host, node, [x])).view(np.float32)
    np.testing.assert_array_equal(floats[:24], levels.ravel().astype(np.float32) - point)
    assert floats[24] == scale
    assert (words[6:7].view(np.float32)[0], words[7]) == (scale, point)
    view = emberlet.asarray(words[:6], backend=host)
    signed = _EVALUATE["bytes"](host, Node("bytes", (), None, dtypes.int8, (6, 4)), [view])
    np.testing.assert_array_equal(np.asarray(signed).astype(np.int32).ravel() + 128, levels.ravel())
    back = _EVALUATE["words"](host, Node("words", (), None, dtypes.uint32, (6,)), [signed])
    np.testing.assert_array_equal(np.asarray(back), words[:6])
