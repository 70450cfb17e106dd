"""Products and convolutions of 8-bit integers in plans: kernels multiply four bytes of a word at once, and the sums are
NumPy's, exactly."""

from __future__ import annotations

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
from emberlet.wgpu_backend.record import byte_words
from emberlet.wgpu_backend.record.bounds import interval
from emberlet.wgpu_backend.record.host_evaluation import values_of
from support.rows import every

KINDS = (np.int8, np.uint8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products take the kernel, too."""
    monkeypatch.setattr(byte_words, "LEAST_WORK", 0)


def drawn(draw: np.random.Generator, kind: Any, shape: tuple[int, ...]) -> Any:
    """Integers of all sizes, the ends among them."""
    ends = [np.iinfo(kind).min, np.iinfo(kind).max]
    x = draw.integers(ends[0], ends[1] + 1, shape, kind)
    return np.where(draw.random(shape) < 0.1, draw.choice(ends, shape), x).astype(kind)


def zero_point(draw: np.random.Generator, kind: Any, shape: tuple[int, ...] = ()) -> Any:
    return np.zeros(shape, kind) if draw.random() < 0.3 else drawn(draw, kind, shape)


def convolved(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """The convolution of integers by its definition, in int64."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    reach = [dilation * (n - 1) + 1 for n in w.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    split = windows.reshape(len(x), groups, x.shape[1] // groups, *windows.shape[2:])
    found = np.einsum("ngcyxij,gocij->ngoyx", split, w.reshape(groups, -1, *w.shape[1:]))
    return found.reshape(len(x), len(w), *found.shape[3:])


def planned(gpu: Backend, function: Any, x: Any, **options: Any) -> Any:
    return compile(function, emberlet.asarray(x, backend=gpu), backend=gpu, **options)


def constant(gpu: Backend, x: Any) -> Tensor:
    return emberlet.asarray(x, backend=gpu)


@pytest.mark.parametrize("point", [100, np.arange(90, 106, dtype=np.uint8)], ids=["one", "each"])
@pytest.mark.parametrize("channels", [3, 5, 6, 8])
def test_borders_have_no_channels_beyond_the_last(gpu: Backend, channels: int, point: Any) -> None:
    draw = np.random.default_rng(channels)
    x, w = (drawn(draw, np.uint8, shape) for shape in ((1, channels, 7, 7), (16, channels, 3, 3)))

    def model(t: Tensor) -> Tensor:
        zero = point if isinstance(point, int) else constant(gpu, point)
        return F.conv_integer(t, constant(gpu, w), 10, zero, padding=1)

    less = np.reshape(point, (-1, 1, 1, 1))
    expected = convolved(x.astype(np.int64) - 10, w.astype(np.int64) - less, 1, 1, 1, 1)
    found = planned(gpu, model, x)(emberlet.asarray(x, backend=gpu))
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("again", [False, True])
def test_levels_are_read_alone_and_joined_with_others(gpu: Backend, again: bool) -> None:
    draw = np.random.default_rng(3)
    x = drawn(draw, np.uint8, (1, 8, 9, 9))
    weights = [drawn(draw, np.int8, shape) for shape in ((16, 8, 3, 3), (16, 16, 3, 3), (8, 32, 1, 1))]

    def model(t: Tensor) -> Tensor:
        def layer(t: Tensor, w: Any) -> Tensor:
            point = emberlet.asarray(np.uint8(99), backend=t.backend)
            weight = emberlet.asarray(w, backend=t.backend)
            return F.qlinear_conv(t, 1.0, 0, weight, 1.0, 0, 64.0, point, padding=w.shape[-1] // 2)

        a = layer(t, weights[0])
        b = layer(a, weights[1])
        return layer(F.concat([a, a if again else b], axis=1), weights[2])

    expected = np.asarray(model(emberlet.asarray(x, backend="numpy")))
    np.testing.assert_array_equal(np.asarray(planned(gpu, model, x)(emberlet.asarray(x, backend=gpu))), expected)


@every("seed", range(12), share=3)
def test_products_are_numpys(gpu: Backend, compiled: list[str], seed: int) -> None:
    draw = np.random.default_rng(seed)
    left, right = draw.choice(KINDS), draw.choice(KINDS)
    lead = [(), (3,), (2, 3)][seed % 3]
    m, k, n = int(draw.integers(7, 40)), int(draw.integers(50, 150)), int(draw.integers(90, 120))
    a, b = drawn(draw, left, (*lead, m, k)), drawn(draw, right, (k, n))
    z = zero_point(draw, left, [(), (*(1 for _ in lead), m, 1)][seed % 2])
    v = zero_point(draw, right, [(), (1, n)][seed // 2 % 2])
    weights = [constant(gpu, t) for t in (b, z, v)]
    run = planned(gpu, lambda x: F.matmul_integer(x, *weights), a)
    want = (a.astype(np.int64) - z) @ (b.astype(np.int64) - v)
    np.testing.assert_array_equal(np.asarray(run(a)), want)
    assert any("dot4I8Packed" in source for source in compiled)


@every("seed", range(16), share=3)
def test_convolutions_are_numpys(gpu: Backend, compiled: list[str], seed: int) -> None:
    draw = np.random.default_rng(100 + seed)
    left, right = draw.choice(KINDS), draw.choice(KINDS)
    groups = int(draw.choice([1, 1, 2]))
    channels, outputs = groups * int(draw.integers(3, 10)), groups * int(draw.integers(5, 20))
    taps = [(1, 1), (3, 3), (1, 5), (2, 3)][seed % 4]
    stride, padding, dilation = int(draw.integers(1, 3)), int(draw.integers(0, 3)), int(draw.integers(1, 3))
    x = drawn(draw, left, (2, channels, int(draw.integers(30, 40)), int(draw.integers(30, 41))))
    w = drawn(draw, right, (outputs, channels // groups, *taps))
    z = zero_point(draw, left)
    v = zero_point(draw, right, [(), (outputs,)][seed // 4 % 2])
    weights = [constant(gpu, t) for t in (w, z, v)]
    run = planned(gpu, lambda x: F.conv_integer(x, *weights, stride, padding, dilation, groups), x)
    of_output = v.reshape(-1, 1, 1, 1).astype(np.int64)
    want = convolved(x.astype(np.int64) - z, w.astype(np.int64) - of_output, stride, padding, dilation, groups)
    np.testing.assert_array_equal(np.asarray(run(x)), want)
    assert any("dot4I8Packed" in source for source in compiled)


@pytest.mark.parametrize("device_class", ["gpu", "swiftshader"])
@pytest.mark.parametrize("rows", [1, 3])
def test_other_classes_of_devices_sum_the_same(
    gpu: Backend, monkeypatch: pytest.MonkeyPatch, device_class: str, rows: int
) -> None:
    """Tiles there are others, and lanes share the steps of one."""
    monkeypatch.setattr(gpu, "_options", Options(device_class))
    draw = np.random.default_rng(rows)
    a, b = drawn(draw, np.int8, (rows, 515)), drawn(draw, np.uint8, (515, 40))
    x, w = drawn(draw, np.uint8, (1, 64, 7, 9)), drawn(draw, np.int8, (32, 64, 3, 3))
    matrix, weight = constant(gpu, b), constant(gpu, w)
    product = planned(gpu, lambda a: F.matmul_integer(a, matrix, 3, 100), a)
    np.testing.assert_array_equal(np.asarray(product(a)), (a.astype(np.int64) - 3) @ (b.astype(np.int64) - 100))
    convolution = planned(gpu, lambda x: F.conv_integer(x, weight, 9, padding=1), x)
    want = convolved(x.astype(np.int64) - 9, w.astype(np.int64), 1, 1, 1, 1)
    np.testing.assert_array_equal(np.asarray(convolution(x)), want)


def test_zero_points_may_come_with_the_call(gpu: Backend) -> None:
    draw = np.random.default_rng(1)
    x, w = drawn(draw, np.uint8, (1, 8, 20, 20)), drawn(draw, np.int8, (16, 8, 3, 3))
    weight = constant(gpu, w)

    def model(x: Tensor, z: Tensor) -> Tensor:
        return F.conv_integer(x, weight, z, padding=1)

    run = compile(model, constant(gpu, x), constant(gpu, np.uint8(7)), backend=gpu)
    for z in (0, 7, 255):
        want = convolved(x.astype(np.int64) - z, w.astype(np.int64), 1, 1, 1, 1)
        np.testing.assert_array_equal(np.asarray(run(x, np.array(z, np.uint8))), want)


def test_one_plan_serves_every_number_of_pictures(gpu: Backend) -> None:
    draw = np.random.default_rng(2)
    w = drawn(draw, np.int8, (16, 6, 3, 3))
    weight = constant(gpu, w)
    first = drawn(draw, np.uint8, (2, 6, 24, 24))
    run = planned(gpu, lambda x: F.conv_integer(x, weight, 3), first, dims={"x": {0: ("count", 5)}})
    for count in (1, 4):
        x = drawn(draw, np.uint8, (count, 6, 24, 24))
        want = convolved(x.astype(np.int64) - 3, w.astype(np.int64), 1, 0, 1, 1)
        np.testing.assert_array_equal(np.asarray(run(x)), want)


def test_a_device_without_the_language_feature_unpacks_by_shifts(gpu: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    a, b = drawn(draw, np.int8, (20, 61)), drawn(draw, np.int8, (61, 67))
    weight, texts = constant(gpu, b), []
    raw = gpu.device.raw
    made = raw.create_shader_module

    def create(**given: Any) -> Any:
        texts.append(given["code"])
        return made(**given)

    monkeypatch.setattr(gpu.device, "knows_dots", False)
    monkeypatch.setattr(raw, "create_shader_module", create)
    run = planned(gpu, lambda x: F.matmul_integer(x, weight), a)
    np.testing.assert_array_equal(np.asarray(run(a)), a.astype(np.int64) @ b)
    assert any("dot_bytes" in text for text in texts)
    assert not any("dot4I8Packed" in text for text in texts)


def test_dequantized_operands_are_summed_as_integers(gpu: Backend, compiled: list[str]) -> None:
    draw = np.random.default_rng(4)
    q, w = drawn(draw, np.uint8, (1, 16, 15, 15)), drawn(draw, np.int8, (24, 16, 1, 1))
    scales = draw.uniform(0.01, 0.02, 24).astype(np.float32)
    weight, scale = constant(gpu, w), constant(gpu, scales)

    def model(x: Tensor) -> Tensor:
        levels = F.dequantize_linear(weight, scale, axis=0)
        return F.conv(F.dequantize_linear(x, 0.5, constant(gpu, np.uint8(9))), levels)

    total = convolved(q.astype(np.int64) - 9, w.astype(np.int64), 1, 0, 1, 1)
    want = total.astype(np.float32) * (np.float32(0.5) * scales).reshape(-1, 1, 1)
    np.testing.assert_array_equal(np.asarray(planned(gpu, model, q)(q)), want)
    assert any("dot4I8Packed" in source for source in compiled)


def test_depthwise_convolutions_stay_products_of_floats(gpu: Backend, compiled: list[str]) -> None:
    """A word would hold one term."""
    draw = np.random.default_rng(6)
    x, w = drawn(draw, np.uint8, (1, 32, 20, 20)), drawn(draw, np.int8, (32, 1, 3, 3))
    weight = constant(gpu, w)

    def model(x: Tensor) -> Tensor:
        return F.conv(F.dequantize_linear(x, 0.5), F.dequantize_linear(weight, 0.25), groups=32)

    want = convolved(x.astype(np.int64), w.astype(np.int64), 1, 0, 1, 32) * 0.125
    np.testing.assert_array_equal(np.asarray(planned(gpu, model, x)(x)), want)
    assert not any("dot_bytes" in source for source in compiled)


@pytest.mark.parametrize("terms, kind", [(250, "f32"), (600, "i32")])
def test_small_sums_are_of_floats_where_these_hold_them(
    gpu: Backend, compiled: list[str], monkeypatch: pytest.MonkeyPatch, terms: int, kind: str
) -> None:
    monkeypatch.setattr(byte_words, "LEAST_WORK", 1 << 40)
    draw = np.random.default_rng(terms)
    x, w = np.full((1, terms, 3, 3), 255, np.uint8), np.full((4, terms, 1, 1), 255, np.uint8)
    x[0, :, 1:] = drawn(draw, np.uint8, (terms, 2, 3))
    w[1:] = drawn(draw, np.uint8, (3, terms, 1, 1))
    weight, matrix = constant(gpu, w), constant(gpu, w[:, :, 0, 0].T.copy())
    want = convolved(x.astype(np.int64), w.astype(np.int64), 1, 0, 1, 1)
    found = planned(gpu, lambda x: F.conv_integer(x, weight), x)(x)
    np.testing.assert_array_equal(np.asarray(found), want)
    rows = x[0].reshape(terms, 9).T.copy()
    found = planned(gpu, lambda x: F.matmul_integer(x, matrix), rows)(rows)
    np.testing.assert_array_equal(np.asarray(found), want.reshape(4, 9).T)
    sums = [source for source in compiled if "loop" in source or "for (" in source]
    assert any("f32" in source for source in sums) == (kind == "f32")


@pytest.mark.parametrize("bias", [77, (1 << 24) - 1, -(1 << 30) + 1])
def test_a_sum_of_floats_takes_a_bias_where_these_hold_it(gpu: Backend, bias: int) -> None:
    draw = np.random.default_rng(11)
    x, w = drawn(draw, np.uint8, (1, 2, 6, 8)), drawn(draw, np.int8, (4, 2, 3, 3))
    weight, added = constant(gpu, w), constant(gpu, np.arange(bias, bias + 4, dtype=np.int32))

    def model(x: Any) -> Any:
        total = F.conv_integer(x, weight, 7) + added.reshape((-1, 1, 1))
        return (total.astype(dtypes.float32) - float(np.float32(bias))).astype(dtypes.int32)

    total = convolved(x.astype(np.int64) - 7, w.astype(np.int64), 1, 0, 1, 1)
    total = (total + np.arange(bias, bias + 4)[:, None, None]).astype(np.float32) - np.float32(bias)
    np.testing.assert_array_equal(np.asarray(planned(gpu, model, x)(x)), total.astype(np.int32))


@pytest.mark.parametrize("point", [0, 100, 255])
def test_functions_between_levels_cut_numbers_as_numpy_does(gpu: Backend, point: int) -> None:
    draw = np.random.default_rng(point)
    x, w = drawn(draw, np.uint8, (1, 2, 6, 8)), drawn(draw, np.int8, (4, 2, 3, 3))

    def model(x: Any) -> Any:
        zero = emberlet.full((), point, dtype=dtypes.uint8, backend=x.backend)
        weight = emberlet.asarray(w, backend=x.backend)
        q = F.qlinear_conv(x, 0.25, 7, weight, 0.25, 0, 8.0, zero)
        y = F.dequantize_linear(q, 0.5, zero)
        y = y * F.clip(y + 2.0, 0.0, 40.0)
        return F.dequantize_linear(F.quantize_linear(y, 8.0, zero), 8.0, zero)

    found = np.asarray(planned(gpu, model, x)(x))
    np.testing.assert_array_equal(found, np.asarray(model(emberlet.asarray(x, backend=get_backend("numpy")))))


def test_the_host_sums_the_same_bytes() -> None:
    """A plan made without a GPU computes its constants there."""
    draw = np.random.default_rng(5)
    a, b = drawn(draw, np.int8, (3, 5, 4)), drawn(draw, np.int8, (5, 7, 4))
    backend = WgpuBackend(planning=True)
    words = [backend.from_bytes(x.tobytes(), dtypes.uint32, x.shape[:2]) for x in (a, b)]
    total = backend._record("dot_bytes", words, (), "dot_bytes", None, dtypes.int32, (3, 7))
    (found,) = values_of([total.data], backend.host)
    want = np.einsum("mkb,knb->mn", a.astype(np.int64), b.astype(np.int64))
    np.testing.assert_array_equal(np.asarray(found), want)


def test_sums_of_few_products_are_known_to_be_small(gpu: Backend) -> None:
    """Arithmetic in int64 with them need not look at their values."""
    draw = np.random.default_rng(4)
    a, b = drawn(draw, np.int8, (3, 5)), drawn(draw, np.uint8, (5, 4))
    sums = F.matmul_integer(constant(gpu, a), constant(gpu, b))
    low, high = interval(sums.data)
    wanted = a.astype(np.int64) @ b
    assert low <= wanted.min() and wanted.max() <= high <= 5 * 255 * 255
    found = sums.astype("int64") * 1000
    assert not sums.data.exact  # nobody looked
    assert np.array_equal(np.asarray(found), wanted * 1000)
