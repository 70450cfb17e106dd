"""Matrix products, convolutions and poolings of shapes drawn at random, against float64."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

Array = np.ndarray[Any, Any]


def close(found: Any, want: Array, terms: int) -> None:
    found = np.asarray(found)
    assert found.shape == want.shape
    size = float(np.abs(want).max(initial=1.0))
    assert np.abs(found - want).max(initial=0.0) <= 6e-8 * size * (4 + terms**0.5)


def compared(function: Any, arrays: list[Array], terms: int) -> None:
    """`function` gives on wasm, plain and compiled, what it gives on NumPy in float64."""
    want = np.asarray(function(*[emberlet.asarray(a.astype(np.float64), backend="numpy") for a in arrays]))
    tensors = [emberlet.asarray(a, backend="wasm") for a in arrays]
    close(function(*tensors), want, terms)
    from emberlet.wgpu_backend.compiled import compile as compiled

    close(compiled(function, *tensors, backend="wasm")(*tensors), want, terms)


@every("seed", range(40))
def test_matrix_product(seed: int) -> None:
    choose = random.Random(seed)
    m, k, n = (choose.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 17, 30, 64, 65, 100]) for _ in range(3))
    lead = choose.choice([(), (), (2,), (3, 2)])
    other = choose.choice([lead, ()])
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((*lead, m, k)), rng.standard_normal((*other, n, k) if seed % 3 == 0 else (*other, k, n))

    def product(x: Any, y: Any) -> Any:
        if seed % 3 == 0:
            y = F.swap_dims(y, -1, -2)
        out = x @ y
        return F.relu(out + 0.5) * 2.0 if seed % 2 else out

    compared(product, [a.astype(np.float32), b.astype(np.float32)], k)


@pytest.mark.parametrize(("m", "k", "n"), [(64, 600, 512), (50, 700, 300), (13, 2000, 260), (7, 5000, 100)])
def test_large_products_go_block_by_block(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n))]
    compared(lambda x, y: x @ y, arrays, k)


@every("seed", range(40))
def test_product_of_one_row(seed: int) -> None:
    choose = random.Random(seed)
    k = choose.choice([4, 5, 7, 8, 15, 64, 131, 1024, 2048, 2049, 3000, 4100])
    n = choose.choice([8, 9, 10, 13, 16, 24, 31, 32, 33, 50, 100, 127, 128, 129, 131, 260, 1021, 2000])
    lead = choose.choice([(), (), (2,), (3, 2)])
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((*lead, 1, k)), rng.standard_normal((*lead, k, n))

    def product(x: Any, y: Any) -> Any:
        return F.relu(x @ y + 0.5) * 2.0 if seed % 2 else x @ y

    compared(product, [a.astype(np.float32), b.astype(np.float32)], k)


@pytest.mark.parametrize("backend", ["wasm", "native"])
@pytest.mark.parametrize("columns", [129, 130, 145, 255])
def test_a_product_of_one_row_writes_nothing_behind_its_last_column(backend: str, columns: int) -> None:
    from emberlet.host.thresholds import poisoned
    from emberlet.wgpu_backend.compiled import compile as compiled

    x, w = np.ones((1, 9), np.float32), np.ones((9, columns), np.float32)
    with poisoned():
        found = np.asarray(compiled(lambda x, w: x @ w, backend=backend)(*map(emberlet.asarray, (x, w))))
    np.testing.assert_array_equal(found, x @ w)


def test_products_of_one_row_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import single_row

    made = []
    make = single_row.single_row
    monkeypatch.setattr(single_row, "single_row", lambda *given: made.append(make(*given)) or made[-1])
    for n in (32, 300):
        compared(lambda x, y: x @ y, [np.ones((1, 40), np.float32), np.ones((40, n), np.float32)], 40)
    assert made and all(made)


@every("seed", range(60))
def test_depthwise_convolution(seed: int) -> None:
    choose = random.Random(seed)
    channels = choose.choice([2, 3, 5, 8])
    spatial = choose.choice([1, 2, 2, 2])
    kernel = [choose.choice([1, 2, 3, 3, 5, 7]) for _ in range(spatial)]
    dilation = [choose.choice([1, 1, 1, 2]) for _ in range(spatial)]
    stride = [choose.choice([1, 1, 2, 3]) for _ in range(spatial)]
    padding = [choose.choice([0, 1, 3]) for _ in range(spatial)]
    size = [max((k - 1) * d + 1, choose.choice([1, 4, 7, 9, 16, 23])) for k, d in zip(kernel, dilation, strict=True)]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((choose.choice([1, 1, 3]), channels, *size)).astype(np.float32)
    w = rng.standard_normal((channels, 1, *kernel)).astype(np.float32)
    b = rng.standard_normal(channels).astype(np.float32)
    conv = F.conv1d if spatial == 1 else F.conv2d

    def layer(x: Any, w: Any, b: Any) -> Any:
        if seed % 5 == 0:
            x = F.swap_dims(F.swap_dims(x * 2.0, -1, 1), -1, 1)
        out = conv(x, w, b, stride=tuple(stride), padding=tuple(padding), dilation=tuple(dilation), groups=channels)
        return F.relu(out) + 0.5 if seed % 2 else out

    compared(layer, [x, w, b], w[0].size)


def test_depthwise_convolutions_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import depthwise

    made = []
    make = depthwise.depthwise
    monkeypatch.setattr(depthwise, "depthwise", lambda *given: made.append(make(*given)) or made[-1])
    x, w = np.ones((1, 4, 9, 9), np.float32), np.ones((4, 1, 3, 3), np.float32)
    for stride in (1, 2):
        compared(lambda x, w, s=stride: F.conv2d(x, w, stride=(s, s), padding=(1, 1), groups=4), [x, w], 9)
    assert made and all(made)


@every("seed", range(40))
def test_convolution_with_few_channels(seed: int) -> None:
    choose = random.Random(seed)
    groups, spatial = choose.choice([1, 1, 2, 3]), choose.choice([1, 2, 2, 3])
    channels, outputs = choose.choice([1, 2, 3, 5]), choose.choice([2, 4, 5, 6, 7, 8, 13, 16])
    kernel = [choose.choice([1, 2, 3, 3, 5, 11]) for _ in range(spatial)]
    kernel[choose.randrange(spatial)] = choose.choice([3, 5])
    dilation = [choose.choice([1, 1, 2]) for _ in range(spatial)]
    stride = [choose.choice([1, 2]) for _ in range(spatial - 1)] + [1]
    padding = tuple(choose.choice([0, 1]) for _ in range(spatial))
    size = [(k - 1) * d + choose.choice([1, 3, 5]) for k, d in zip(kernel, dilation, strict=True)]
    size[-1] = (kernel[-1] - 1) * dilation[-1] + choose.choice([8, 11, 15, 16, 17, 24])
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((choose.choice([1, 2]), groups * channels, *size)).astype(np.float32)
    w = rng.standard_normal((groups * outputs, channels, *kernel)).astype(np.float32)
    b = rng.standard_normal(groups * outputs).astype(np.float32)
    conv: Any = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[spatial]

    def layer(x: Any, w: Any, b: Any) -> Any:
        apart = [pair if spatial > 1 else pair[0] for pair in (tuple(stride), padding, tuple(dilation))]
        if seed % 5 == 0:
            x = F.swap_dims(x, 0, 1)
        out = conv(x, w, b, *apart, groups)
        return F.relu(out) + 0.5 if seed % 2 else out

    if seed % 5 == 0:
        x = np.ascontiguousarray(x.swapaxes(0, 1))
    compared(layer, [x, w, b], w[0].size)


def test_convolutions_with_few_channels_read_the_image_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.wasm.kernels import direct

    made = []
    make = direct.direct
    monkeypatch.setattr(direct, "direct", lambda *given: made.append(make(*given)) or made[-1])
    for taps in (3, 5):
        x, w = np.ones((1, 4, 12, 20), np.float32), np.ones((8, 4, taps, taps), np.float32)
        compared(lambda x, w: F.conv2d(x, w), [x, w], w[0].size)
    assert made and all(made)


@every("seed", range(60))
def test_convolution(seed: int) -> None:
    choose = random.Random(seed)
    groups = choose.choice([1, 1, 1, 2, 3])
    spatial = choose.choice([1, 2, 2, 2, 3])
    per_group = choose.choice([1, 2, 3, 4])
    outputs = groups * choose.choice([1, 2, 4, 6, 7, 9, 16])
    if choose.random() < 0.2:
        groups = outputs = choose.choice([4, 8, 5])
        per_group = 1
    kernel = [choose.choice([1, 1, 2, 3, 5]) for _ in range(spatial)]
    dilation = [choose.choice([1, 1, 2]) for _ in range(spatial)]
    padding = [choose.choice([0, 1, 2]) for _ in range(spatial)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [max(r, choose.choice([4, 5, 7, 9, 13, 16])) for r in reach]
    stride = [choose.choice([1, 1, 2, 3]) for _ in range(spatial)]
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((choose.choice([1, 1, 2]), groups * per_group, *size)).astype(np.float32)
    w = rng.standard_normal((outputs, per_group, *kernel)).astype(np.float32)
    b = rng.standard_normal(outputs).astype(np.float32)
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[spatial]

    def layer(x: Any, w: Any, b: Any) -> Any:
        one = spatial == 1
        out = conv(
            x,
            w,
            b,
            stride=stride[0] if one else tuple(stride),
            padding=padding[0] if one else tuple(padding),
            dilation=dilation[0] if one else tuple(dilation),
            groups=groups,
        )
        return F.relu(out) if seed % 2 else out

    compared(layer, [x, w, b], per_group * int(np.prod(kernel)))


@pytest.mark.parametrize("seed", range(20))
def test_pooling(seed: int) -> None:
    choose = random.Random(seed)
    kernel, stride, padding = choose.choice([1, 2, 3]), choose.choice([1, 2, 3]), choose.choice([0, 1])
    padding = min(padding, kernel // 2)
    x = np.random.default_rng(seed).standard_normal((2, 3, choose.choice([5, 8, 13]), choose.choice([4, 7, 16])))
    if seed % 4 == 0:
        x[0, 1, 2, 3] = np.nan
    pool = F.max_pool2d if seed % 2 else F.avg_pool2d

    def layer(t: Any) -> Any:
        return pool(t, kernel, stride=stride, padding=padding)

    x = x.astype(np.float32)
    want = np.asarray(layer(emberlet.asarray(x, backend="numpy")))
    np.testing.assert_allclose(np.asarray(layer(emberlet.asarray(x, backend="wasm"))), want, rtol=1e-6, atol=1e-6)


def test_a_nan_and_an_infinity_reach_the_results_that_read_them() -> None:
    a, b = np.ones((9, 12), np.float32), np.ones((12, 10), np.float32)
    a[2, 3], b[5, 7] = np.nan, np.inf
    want = a @ b
    found = np.asarray(emberlet.asarray(a, backend="wasm") @ emberlet.asarray(b, backend="wasm"))
    np.testing.assert_array_equal(found, want)
