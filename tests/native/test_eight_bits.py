"""8-bit integers in machine code, beside NumPy's exact integers."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.compiled import compile as compiled
from emberlet.wgpu_backend.llvm import processor
from emberlet.wgpu_backend.record import small_planes, zero_points
from emberlet.wgpu_backend.wasm.kernels import byte_products, integers, stored_panels
from emberlet.wgpu_backend.wasm.kernels.pictures import direct_integers
from support.rows import every

Array = np.ndarray[Any, Any]
SCALES = [1.0, 0.5, 0.059113365, 3.7e-7, 1.994355, 123.25, 1e-20, 7e19]
SCALES += [1317 * 2.0**-16, (2**20 - 1) * 2.0**-30, (2**20 - 3) * 2.0**-13, (2**21 - 1) * 2.0**-26]  # of 11 to 21 bits


def drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    info = np.iinfo(kind)
    values = rng.integers(info.min, info.max, shape, kind, endpoint=True)
    extreme = rng.random(shape) < 0.3
    return np.where(extreme, rng.choice([info.min, info.max], shape), values).astype(kind)


def both(backend: Any, function: Any, *arrays: Array) -> list[Array]:
    """The function's results on the backend, computed at once and by a plan."""
    tensors = [emberlet.asarray(a, backend=backend) for a in arrays]
    plan = compiled(function, *tensors, backend=backend)
    return [np.asarray(function(*tensors)), np.asarray(plan(*tensors))]


@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize(
    ("shape", "weight", "window"),
    [
        ((1, 1, 640), (258, 1, 256), {"stride": 128}),
        ((1, 129, 4), (128, 129, 3), {"padding": 1}),
        ((2, 33, 3), (40, 33, 3), {"padding": ((2, 0),), "stride": 2}),
        ((1, 7, 6, 5), (32, 7, 3, 2), {"dilation": (2, 3), "stride": (1, 2)}),
        ((1, 64, 1, 1), (96, 64, 1, 1), {}),
        ((3, 12, 2, 2), (17, 12, 2, 2), {}),
        ((1, 5, 9), (64, 5, 1), {"stride": 3}),
        ((2, 3, 32, 40), (48, 3, 4, 8), {"stride": (4, 8)}),
        ((1, 3, 32, 24), (48, 3, 8, 8), {"stride": 8, "padding": 4}),
        ((1, 4, 20, 18), (40, 4, 6, 6), {"stride": 6}),
        ((1, 4, 36, 36), (40, 4, 6, 6), {"stride": 6, "dilation": 2}),
        ((3, 8, 60), (33, 8, 5), {"stride": 5}),
    ],
)
def test_convolutions_of_few_pixels_are_exact(
    backend: Any, kinds: tuple[str, str], shape: tuple[int, ...], weight: tuple[int, ...], window: dict[str, Any]
) -> None:
    rng = np.random.default_rng(len(shape))
    x, w = drawn(rng, shape, kinds[0]), drawn(rng, weight, kinds[1])
    zero, points = drawn(rng, (1,), kinds[0]), drawn(rng, (weight[0],), kinds[1])

    def layers(x: Any, zero: Any) -> Any:
        constant, each = (emberlet.asarray(t, backend=x.backend) for t in (w, points))
        number = 128 if kinds[1] == "uint8" else None
        late = F.conv_integer(x, constant, zero, number, **window)
        return late.flatten(), F.conv_integer(x, constant, 3, each, **window).flatten()

    want = layers(*(emberlet.asarray(t, backend="numpy") for t in (x, zero)))
    tensors = [emberlet.asarray(t, backend=backend) for t in (x, zero)]
    for y, exact in zip(compiled(layers, *tensors, backend=backend)(*tensors), want, strict=True):
        np.testing.assert_array_equal(np.asarray(y), np.asarray(exact))


@pytest.mark.parametrize("pixels", [1, 4, 8, 9])
def test_convolutions_of_few_pixels_are_products(backend: Any, monkeypatch: pytest.MonkeyPatch, pixels: int) -> None:
    taken: list[Any] = []
    seen = small_planes.seen
    monkeypatch.setattr(small_planes, "seen", lambda *given: taken.append(seen(*given)) or taken[-1])
    w = np.ones((64, 8, 1), np.int8)
    x = emberlet.asarray(np.ones((1, 8, pixels), np.uint8), backend=backend)
    compiled(lambda x: F.conv_integer(x, emberlet.asarray(w, backend=x.backend), 3), x, backend=backend)(x)
    assert [found is not None for found in taken] == [pixels <= min(backend.options.lanes, 8)]


@every("seed", range(24), share=2)
def test_convolutions_of_8_bits_are_exact(backend: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    grouped = seed % 3 == 0
    channels = int(rng.integers(1, 40))
    out = channels if grouped else int(rng.integers(1, 40))
    kernel = [int(rng.choice([1, 1, 3, 5])) for _ in range(2)]
    sizes = [int(rng.integers(k, 40)) for k in kernel]
    strides = [int(rng.choice([1, 1, 2])) for _ in range(2)]
    x = drawn(rng, (int(rng.integers(1, 3)), channels, *sizes), ["uint8", "int8"][seed % 2])
    w = drawn(rng, (out, 1 if grouped else channels, *kernel), ["int8", "int8", "uint8"][seed // 2 % 3])
    points = [np.asarray(rng.integers(0, 100), a.dtype) for a in (x, w)]
    if seed % 4 == 0:
        points[1] = drawn(rng, (out,), w.dtype.name)

    number = int(points[0])

    def layer(x: Any, w: Any, zero: Any, other: Any) -> Any:
        groups = channels if grouped else 1
        if seed % 5:  # a number is part of the kernels
            zero = number
        return F.conv_integer(x, w, zero, other, padding=[k // 2 for k in kernel], stride=strides, groups=groups)

    arrays = [emberlet.asarray(a, backend="numpy") for a in (x, w, *points)]
    want = np.asarray(layer(*arrays))
    for found in both(backend, layer, x, w, *points):
        np.testing.assert_array_equal(found, want)


@every("seed", range(24), share=2)
def test_convolutions_of_whole_vectors_are_exact(backend: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    direct = direct_integers.direct_integers
    monkeypatch.setattr(direct_integers, "direct_integers", lambda *given: made.append(direct(*given)) or made[-1])
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    rng = np.random.default_rng(seed)
    groups, channels, out = 1 + seed % 2, int(rng.integers(1, 9)), int(rng.integers(2, 11))
    kernel, stride = [(3, 3), (5, 5), (1, 3), (2, 2), (4, 5), (3, 1)][seed % 6], (1 + seed // 2 % 2, 1 + seed // 3 % 2)
    dilation = 1 + seed // 6 % 2
    reach = [dilation * (k - 1) for k in kernel]
    line = max(backend.options.lanes, 8) * int(rng.integers(1, 4))
    sizes = int(rng.integers(3, 8)) * stride[0] + reach[0], line * stride[1] + reach[1]
    x = drawn(rng, (2, groups * channels, *sizes), ["uint8", "int8"][seed // 2 % 2])
    w = drawn(rng, (groups * out, channels, *kernel), "int8")
    zero, point = int(rng.integers(0, 100)), int(rng.integers(-5, 5)) * (seed % 4 == 0)
    rows, columns = (sizes[0] - reach[0] - 1) // stride[0] + 1, line
    want = np.zeros((2, groups * out, rows, columns), np.int64)
    for g in range(groups):
        mine = w[g * out : (g + 1) * out].astype(int) - point
        for i, j in np.ndindex(*kernel):
            part = x[:, g * channels : (g + 1) * channels, i * dilation :: stride[0], j * dilation :: stride[1]]
            part = part[:, :, :rows, :columns].astype(int) - zero
            want[:, g * out : (g + 1) * out] += np.einsum("nchw,oc->nohw", part, mine[:, :, i, j])

    def layer(x: Any, w: Any) -> Any:
        return F.conv_integer(x, w, zero, point, stride=stride, dilation=dilation, groups=groups)

    for found in both(backend, layer, x, w):
        np.testing.assert_array_equal(found, want)
    if processor.current().dots == 2 and backend.options.lanes > 4 and line * rows >= 2 * backend.options.lanes:
        assert any(made)


@every("seed", range(16), share=2)
def test_products_of_8_bits_are_exact(backend: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k, n = (int(rng.choice([1, 2, 5, 13, 16, 31, 64, 100])) for _ in range(3))
    a, b = drawn(rng, (m, k), ["uint8", "int8"][seed % 2]), drawn(rng, (k, n), ["int8", "uint8"][seed // 2 % 2])
    zero, other = drawn(rng, (m,) if seed % 3 else (1,), a.dtype.name), drawn(rng, (n,), b.dtype.name)
    want = (a.astype(int) - zero.astype(int)[:, None]) @ (b.astype(int) - other.astype(int))
    for found in both(backend, F.matmul_integer, a, b, zero, other):
        np.testing.assert_array_equal(found, want)
    number = int(other[0])
    want = (a.astype(int) - zero.astype(int)[:, None]) @ (b.astype(int) - number)
    for found in both(backend, lambda a, b, zero: F.matmul_integer(a, b, zero, number), a, b, zero):
        np.testing.assert_array_equal(found, want)


@every("seed", range(12), share=2)
def test_integers_less_a_zero_point_of_the_call_meet_constant_weights_exactly(
    backend: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_points, "PIECE", [1, 100, 1 << 20][seed % 3])
    rng = np.random.default_rng(seed)
    channels, out = (int(n) for n in rng.integers(1, 40, 2))
    kind, other = ["uint8", "int8"][seed % 2], ["int8", "uint8"][seed // 2 % 2]
    x, a = drawn(rng, (2, channels, 9, 17), kind), drawn(rng, (seed % 3 * 9 + 1, 44), kind)
    w, b = drawn(rng, (out, channels, 3, 3), other), drawn(rng, (44, out + 40), other)
    zero, low = drawn(rng, (1,), kind), drawn(rng, (1,), other)
    zeros = drawn(rng, (len(a),), kind) if seed % 4 else zero
    padding = [(0, 0), (1, 1), (2, 0), (0, 1)][seed % 4], (1, seed % 2)

    def layers(x: Any, a: Any, zero: Any, zeros: Any) -> Any:
        weight, matrix, point = (emberlet.asarray(t, backend=x.backend) for t in (w, b, low))
        pixels = F.conv_integer(x, weight, zero, point, padding=padding, stride=seed % 2 + 1)
        return pixels.flatten(), F.matmul_integer(a, matrix, zeros, point).flatten()

    want = [np.asarray(y) for y in layers(*(emberlet.asarray(t, backend="numpy") for t in (x, a, zero, zeros)))]
    tensors = [emberlet.asarray(t, backend=backend) for t in (x, a, zero, zeros)]
    plan = compiled(layers, *tensors, backend=backend)
    for found in (layers(*tensors), plan(*tensors)):
        for y, exact in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.asarray(y), exact)


@every("seed", range(16), share=2)
def test_products_with_constant_matrices_of_whole_panels_are_exact(
    backend: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    if processor.current().dots == 4:
        original = stored_panels.panel_product
        monkeypatch.setattr(stored_panels, "panel_product", lambda *a: made.append(original(*a)) or made[-1])
    else:
        stored = integers._Integers._stored_panels
        monkeypatch.setattr(integers._Integers, "_stored_panels", lambda self: made.append(stored(self)) or made[-1])
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    rng = np.random.default_rng(seed)
    m, k, n = int(rng.choice([1, 2, 8, 33])), int(rng.choice([4, 36, 64, 288])), 32 * int(rng.choice([1, 2, 3, 9, 260]))
    kind, signed = ["uint8", "int8"][seed % 2], seed // 2 % 2
    a, b = drawn(rng, (m, k), kind), drawn(rng, (k, n), "int8" if signed else "uint8")
    zero = drawn(rng, ((1,), (m,))[seed // 4 % 2], kind)
    number, low = [0, 3, int(zero[0])][seed % 3], 0 if signed else 128

    def layers(a: Any, zero: Any) -> Any:
        matrix = emberlet.asarray(b, backend=a.backend)
        return [F.matmul_integer(a, matrix, point, low) for point in (zero, number)]

    tensors = [emberlet.asarray(t, backend=backend) for t in (a, zero)]
    plan = compiled(layers, *tensors, backend=backend)
    weight = b.astype(int) - low
    want = [(a.astype(int) - zero.astype(int)[:, None]) @ weight, (a.astype(int) - number) @ weight]
    for found, exact in zip(plan(*tensors), want, strict=True):
        np.testing.assert_array_equal(np.asarray(found), exact)
    assert made and all(made)


def test_layers_that_quantize_one_tensor_find_its_range_once(backend: Any) -> None:
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(7, 48)).astype(np.float32), [drawn(rng, (48, 64), "int8") for _ in range(3)]
    scale = np.float32(0.01)

    def layers(x: Any) -> Any:
        return [F.dynamic_quantize_matmul(x, emberlet.asarray(w, backend=x.backend), scale) for w in weights]

    tensor = emberlet.asarray(x, backend=backend)
    plan = compiled(layers, tensor, backend=backend)
    for found, exact in zip(plan(tensor), layers(emberlet.asarray(x, backend="numpy")), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(exact), rtol=1e-6, atol=1e-6)
    made = plan.planned().plan
    names = [made.kernels[step.kernel][0] for step in made.steps]
    assert len([name for name in names if "reduce" in name]) == 1
    assert len([name for name in names if "matmul" in name]) == 3


def test_products_with_a_matrix_whose_rows_lie_on_pages_of_their_own_are_exact(backend: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, zero = drawn(rng, (5, 257), "uint8"), drawn(rng, (257, 4101), "uint8"), drawn(rng, (1,), "uint8")

    def product(a: Any, zero: Any) -> Any:
        return F.matmul_integer(a, emberlet.asarray(b, backend=a.backend), zero, 119)

    want = (a.astype(int) - zero.astype(int)) @ (b.astype(int) - 119)
    for found in both(backend, product, a, zero):
        np.testing.assert_array_equal(found, want)


def test_products_of_known_8_bits_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    if processor.current().dots < 4:
        pytest.skip("this processor has no such instruction")
    made = []
    original = byte_products.byte_contraction
    monkeypatch.setattr(byte_products, "byte_contraction", lambda *a: made.append(original(*a)) or made[-1])
    rng = np.random.default_rng(0)
    x, w = drawn(rng, (1, 8, 30, 30), "uint8"), drawn(rng, (16, 8, 3, 3), "int8")
    monkeypatch.setenv("EMBERLET_CACHE", "off")
    zeros = drawn(rng, (16,), "int8")
    for given in ([], [zeros]):
        made.clear()
        both("native", lambda x, w, *z: F.conv_integer(x, w, 5, *z, padding=1), x, w, *given)
        assert any(made)
    made.clear()
    zero = drawn(rng, (1,), "uint8")
    both("native", lambda x, z: F.conv_integer(x, emberlet.asarray(w, backend="native"), z, padding=1), x, zero)
    assert any(made)


@every("high, zero", [(3000000.0, None), (2.0**20, None), (2.0**20 + 2, None), (100.0, -3000000.0), (3e6, 2e6)])
def test_a_clamp_of_any_width_is_exact(backend: Any, high: float, zero: float | None) -> None:
    x = np.linspace(-1, 2e6, 192).astype(np.float32)
    y = np.rint(x / np.float32(0.5)) + np.float32(zero or 0)
    want = np.minimum(np.where(y > 0, y, 0), np.float32(high)).astype(np.int32)

    def function(x: Any) -> Any:
        y = F.round(x / 0.5)
        y = y if zero is None else y + zero
        return F.astype(F.minimum(F.where(y > 0.0, y, 0.0), high), "int32")

    for found in both(backend, function, x):
        np.testing.assert_array_equal(found, want)


@every("scale", SCALES, share=3)
@every("dtype", ["int8", "uint8", "int16"])
def test_levels_are_quotients_rounded_half_to_even_and_saturated(backend: Any, scale: float, dtype: str) -> None:
    info = np.iinfo(dtype)
    zero = int(info.min) // 3 if info.min else 77
    halves = (np.arange(-700, 700) * 0.5 * float(np.float32(scale))).astype(np.float32)
    steps = [halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))]
    ends = np.float32([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -0.0, 32767.5 * scale, -32768.5 * scale])
    x = np.concatenate([*steps, np.repeat(ends, 16)])
    with np.errstate(over="ignore"):
        y = np.rint(x / np.float32(scale)) + np.float32(zero)
    want = np.where(y > info.min, np.minimum(y, np.float32(info.max)), np.float32(info.min)).astype(dtype)

    def levels(x: Any) -> Any:
        return F.quantize_linear(x, scale, zero, dtype=getattr(emberlet, dtype))

    def centered(x: Any) -> Any:
        return F.dequantize_linear(levels(x), 0.5, zero)

    for found in both(backend, levels, x):
        np.testing.assert_array_equal(found, want)
    for found in both(backend, centered, x):
        np.testing.assert_array_equal(found, (want.astype(np.float32) - zero) * 0.5)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("weight", [(1, 1, 1), (2, 1, 1), (1, 1, 2)])
@pytest.mark.parametrize("pixels", [1, 4])
def test_products_of_one_element_keep_their_axes(constant: bool, weight: tuple[int, ...], pixels: int) -> None:
    rng = np.random.default_rng(pixels)
    x, w, matrix = (drawn(rng, s, "uint8") for s in ((1, 1, pixels + weight[2] - 1), weight, (1, weight[0])))
    zero = np.uint8(7)
    want = [[[((x[0, 0, at : at + weight[2]].astype(int) - 7) * (row[0] - 1)).sum() for at in range(pixels)]
             for row in w.astype(int)]], (x[0, :, :1].astype(int) - 7) @ (matrix.astype(int) - 1)  # fmt: skip

    def layers(x: Any, zero: Any, *own: Any) -> Any:
        weight, right = own or [emberlet.asarray(a, backend=x.backend) for a in (w, matrix)]
        return F.conv_integer(x, weight, zero, 1), F.matmul_integer(x[0, :, :1], right, zero, 1)

    tensors = [emberlet.asarray(a, backend="native") for a in ((x, zero) if constant else (x, zero, w, matrix))]
    for found, exact in zip(compiled(layers, *tensors, backend="native")(*tensors), want, strict=True):
        np.testing.assert_array_equal(np.asarray(found), exact)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("weight", [(1, 1, 1), (2, 1, 1), (1, 1, 2)])
@pytest.mark.parametrize("pixels", [1, 4])
def test_dequantized_operands_of_one_element_keep_their_axes(
    constant: bool, weight: tuple[int, ...], pixels: int
) -> None:
    rng = np.random.default_rng(pixels)
    x, w, matrix = (drawn(rng, s, "uint8") for s in ((1, 1, pixels + weight[2] - 1), weight, (1, weight[0])))
    left, right, last = ((a.astype(np.float64) - z) * s for a, z, s in ((x, 7, 0.5), (w, 1, 0.25), (matrix, 1, 0.25)))
    want = [[[(left[0, 0, at : at + weight[2]] * row[0]).sum() for at in range(pixels)] for row in right]]

    def layers(x: Any, *own: Any) -> Any:
        weight, right = own or [emberlet.asarray(a, backend=x.backend) for a in (w, matrix)]
        x, weight, right = [
            F.dequantize_linear(a, s, z) for a, s, z in ((x, 0.5, 7), (weight, 0.25, 1), (right, 0.25, 1))
        ]
        wide = F.expand(x[:, :, :1], (1, 3, 1))
        return F.conv(x, weight, None, (1,), ((0, 0),), (1,), 1), x[0, :, :1] @ right, wide @ right

    tensors = [emberlet.asarray(a, backend="native") for a in ((x,) if constant else (x, w, matrix))]
    product = left[0, :, :1] @ last
    for found, exact in zip(compiled(layers, *tensors, backend="native")(*tensors),
                            (want, product, np.stack([np.repeat(product, 3, 0)])), strict=True):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(found), exact)
